"""What a tool may touch: the request's material, a folder, and a note of everything it read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chargehand.values.request import Material


@dataclass
class Reads:
    """What one call has read so far, by name; written only through `ToolContext`."""

    hashes: dict[str, str] = field(default_factory=dict[str, str])
    # How many lines the files have of which something was shown.
    lines: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class ToolContext:
    """Given to tool functions with a parameter annotated `ToolContext`; models never see that parameter."""

    material: Sequence[Material] = ()
    folder: Path | None = None
    # One per call: `call` gives each a fresh one.
    reads: Reads = field(default_factory=Reads, repr=False, compare=False)

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
