"""What a tool may touch: the request's material, a folder, and a note of everything it read.

A tool reads the material with `context.read(name)` and `context.open(name)`: nothing else can be reached by a name, and
a rerun calls the tool again if what it read has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chargehand.errors import ToolError

if TYPE_CHECKING:
    from io import BufferedReader

    from chargehand.tools.mcp_connections import McpConnections
    from chargehand.values.request import Material


_CHUNK = 1 << 20


@dataclass
class Reads:
    """What one call has read so far, by name; written only through `ToolContext`."""

    hashes: dict[str, str] = field(default_factory=dict[str, str])
    # The number of lines of each file that was shown, whole or in part.
    lines: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class ToolContext:
    """Given to tool functions with a parameter annotated `ToolContext`; models never see that parameter."""

    material: Sequence[Material] = ()
    folder: Path | None = None
    # The home of runs: tools do not see its content, unless it was given as material.
    hidden: Path | None = None
    # Connections to MCP servers, if the run has tools of one.
    servers: McpConnections | None = field(default=None, repr=False, compare=False)
    # The W3C trace context of the call, where its run is part of a trace.
    traceparent: str | None = field(default=None, repr=False, compare=False)
    # Stores a document where all machines of a run find it, instead of in the folder; returns whether it replaced one.
    keep_document: Callable[[str, bytes], bool] | None = field(default=None, repr=False, compare=False)
    # One per call: `call` gives each a fresh one.
    reads: Reads = field(default_factory=Reads, repr=False, compare=False)

    def read(self, name: str) -> str:
        """The text of a file of the material, as `NAME` or `NAME/folder/file`; ToolError where there is none."""
        from chargehand.tools import encoding, material_files  # only tools that read need them

        place = material_files.locate(name, self)
        data = material_files.read(place)
        self.record_read(place.name, data)
        if not encoding.is_text(data):
            shown = material_files.one_line_name(place.name)
            raise ToolError(
                f"{shown} is a binary file of {len(data):,} bytes: open it with context.open(name).", "not_readable"
            )
        return encoding.decode_text(data)[0]

    def open(self, name: str) -> BufferedReader:
        """The bytes of a file of the material, for `with`: data of up to 200 MB that need not be text."""
        from chargehand.tools import material_files

        place = material_files.locate(name, self)
        file = material_files.open_file(place, material_files.MAX_DATA)
        # Through the open file, so that the recorded hash is that of the data read.
        whole, lines, last = hashlib.sha256(), 0, b""
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
        file.seek(0)
        self.record_hash(place.name, whole.hexdigest())
        self.record_lines(place.name, lines + (last not in (b"", b"\n")))
        return file

    def record_read(self, name: str, data: bytes) -> None:
        """Note that the result depends on `data`, so that a rerun can check whether it still holds."""
        self.record_hash(name, hashlib.sha256(data).hexdigest())
        self.record_lines(name, data.count(b"\n") + (not data.endswith(b"\n")))

    def record_hash(self, name: str, digest: str) -> None:
        """The same for data whose SHA-256 is known."""
        self.reads.hashes[name] = digest

    def record_lines(self, name: str, count: int) -> None:
        """Note that the worker is shown something of a file of so many lines: it may name them as its source."""
        self.reads.lines[name] = count
