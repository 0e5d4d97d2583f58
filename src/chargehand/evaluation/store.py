"""Results on disk, one JSON object a line, each written before the next case begins, so that it survives `kill -9`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic_core import ValidationError

from chargehand.evaluation.result import Result
from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import storage


class Store:
    """One file of results. Several evaluations may append to it at once. For each key, the last result counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Result]:
        """Key -> result. An incomplete line after a crash is not a result."""
        with storage(self.path):
            data = self.path.read_bytes() if self.path.exists() else b""
        return {result.key: result for result in _results(data)}

    def append(self, result: Result) -> None:
        """The result is durable when this returns."""
        private_folder(self.path.parent)
        line = result.model_dump_json().encode() + b"\n"
        with storage(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    line = b"\n" + line  # the line before is incomplete
                os.write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)

    def drop(self, keys: Collection[str]) -> None:
        """Forget the results of these keys."""
        known = self.read()
        if known.keys().isdisjoint(keys):
            return
        kept = "".join(f"{result.model_dump_json()}\n" for key, result in known.items() if key not in keys)
        draft = self.path.with_suffix(".draft")
        with storage(self.path):
            draft.touch(mode=0o600)
            draft.write_text(kept, encoding="utf-8")
            draft.replace(self.path)


def _results(data: bytes) -> Iterator[Result]:
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            yield Result.model_validate_json(line)
        except ValidationError:
            continue
