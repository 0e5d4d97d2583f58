"""What a rule found at a place, before it has a category: light enough for a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """One match of a rule; `rule` is `tool:code`, as in a finding's sources."""

    rule: str
    path: str
    line: int
    message: str
    end_line: int | None = None
    suggestion: str | None = None
    # What this very match is worth when the rule's own figure does not fit it.
    confidence: int | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of one analysis and what it could not look at."""

    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    # Path -> why it could not be checked.
    unchecked: Mapping[str, str] = field(default_factory=dict[str, str])

    def to_json(self) -> dict[str, Any]:
        hits = [asdict(hit) for hit in self.hits]
        return {"hits": hits, "notes": list(self.notes), "unchecked": dict(self.unchecked)}

    @classmethod
    def from_json(cls, data: Any) -> Hits:
        return cls(tuple(Hit(**hit) for hit in data["hits"]), tuple(data["notes"]), dict(data["unchecked"]))
