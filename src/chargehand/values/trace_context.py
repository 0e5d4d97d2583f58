"""W3C trace context: the caller of a run, and the ids of the run's own trace and spans.

Ids are made from the run and the keys in it, so that the code that makes a call and the code that writes its span get
the same id, and so that reading a record again gives the same ids.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_HEADER = re.compile(r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceCaller(NamedTuple):
    """The calling span, as a `traceparent` header names it."""

    trace: str
    span: str
    sampled: bool

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"

    @classmethod
    def parse(cls, header: str | None) -> TraceCaller | None:
        """None for a header that does not follow the standard: a caller's mistake must not fail the run."""
        found = _HEADER.fullmatch(header.strip()) if header else None
        # Version 00 ends with the flags.
        if found is None or (found[1] == "00" and found[5] is not None):
            return None
        return cls(found[2], found[3], bool(int(found[4], 16) & 1))


def trace_id_of(run: str) -> str:
    """The trace of a run without a caller."""
    return _digest(run, 16)


def span_id_of(run: str, key: str, number: int = 1) -> str:
    """The span of the effect or step with this key; `number` counts those with the same key, over all sessions."""
    return _digest(f"{run} {key} {number}", 8)


def _digest(text: str, size: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * size]
