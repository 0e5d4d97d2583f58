"""The head of a GGUF file -> the kind of its model, how much the model can read, and whether the file is complete."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
# The types of values: plain ones with their struct format, and two that have a length.
_PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class GgufHead:
    """What a file says about its model."""

    architecture: str
    # How many tokens the model was made for; None when the file does not say.
    window: int | None
    # Whether the beginning of every tensor is in the file.
    whole: bool


def read_head(path: Path) -> GgufHead:
    """The head of the file; UsageError when there is no such file or it is not a GGUF file."""
    try:
        status = path.stat()
        return _read_head(str(path), status.st_size, status.st_mtime_ns)
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(f"embedded:{path} cannot be read: {why}. Give the path of a .gguf file.") from None


@lru_cache(maxsize=8)
def _read_head(path: str, size: int, _changed: int) -> GgufHead:
    if Path(path).is_dir():
        raise UsageError(f"embedded:{path} is a folder: give the path of a .gguf file.")
    with open(path, "rb") as file:
        start = file.read(8)
        if start[:4] != _MAGIC:
            raise UsageError(
                f"embedded:{path} is not a GGUF file: give one, such as a download whose name ends in .gguf."
            )
        version = int.from_bytes(start[4:], "little")
        if version not in _VERSIONS:
            known = " and ".join(map(str, _VERSIONS))
            raise UsageError(f"embedded:{path} is GGUF version {version}; {known} are supported: convert it.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _parse(data, size)
            except (struct.error, UnicodeDecodeError, KeyError, OverflowError):
                return GgufHead("unknown", None, whole=False)


def _parse(data: mmap.mmap, size: int) -> GgufHead:
    reader = _Reader(data)
    reader.at = 8
    tensors, fields = reader.plain("Q"), reader.plain("Q")
    known = {reader.text(): reader.value(reader.plain("I")) for _ in range(fields)}
    last = 0
    for _ in range(tensors):
        reader.text()
        dimensions = reader.plain("I")
        reader.at += 8 * dimensions + 4  # their sizes, and the tensor's type
        last = max(last, reader.plain("Q"))
    alignment = known.get("general.alignment") or _DEFAULT_ALIGNMENT
    start = -(-reader.at // alignment) * alignment
    architecture = str(known.get("general.architecture", "unknown"))
    window = known.get(f"{architecture}.context_length")
    return GgufHead(architecture, window if isinstance(window, int) else None, whole=start + last < size)


class _Reader:
    """Reads one value after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def plain(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return value

    def text(self) -> str:
        length = self.plain("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind: int) -> Any:
        """A value; for a list, only the fact that it is a list."""
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.plain(_PLAIN[kind])
        inner, count = self.plain("I"), self.plain("Q")
        if inner in _PLAIN:
            self.at += count * struct.calcsize(f"<{_PLAIN[inner]}")
        else:
            for _ in range(count):
                if inner == _TEXT:
                    self.at += 8 + struct.unpack_from("<Q", self.data, self.at)[0]
                else:
                    self.value(inner)
        return None
