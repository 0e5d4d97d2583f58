"""The order for an analyzer, and the match of a rule at a place before it has a category.

Child processes import it too: both are sent as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.engine.analyzer_port import Ranges, Scope

if TYPE_CHECKING:
    from chargehand.values.outcome import Severity


@dataclass(frozen=True, slots=True)
class AnalysisOrder:
    """A scope in the form that a child gets."""

    root: Path
    files: tuple[str, ...]
    changed: dict[str, Ranges] | None
    options: dict[str, Any]

    def changed_ranges(self, path: str) -> Ranges:
        """The changed ranges of a file; nothing when a whole tree is reviewed."""
        return () if self.changed is None else self.changed.get(path, ())

    @classmethod
    def of(cls, scope: Scope) -> AnalysisOrder:
        changed = None if scope.changed is None else dict(scope.changed)
        return cls(scope.root, scope.files, changed, dict(scope.options))

    def to_json(self) -> dict[str, Any]:
        return {"root": str(self.root), "files": self.files, "changed": self.changed, "options": self.options}

    @classmethod
    def from_json(cls, data: Any) -> AnalysisOrder:
        changed: dict[str, Ranges] | None = data["changed"]
        if changed is not None:
            changed = {path: tuple((first, last) for first, last in each) for path, each in changed.items()}
        return cls(Path(data["root"]), tuple(data["files"]), changed, data["options"])


@dataclass(frozen=True, slots=True)
class Hit:
    """One match of a rule; `rule` is `tool:code`, as in a finding's sources."""

    rule: str
    path: str
    line: int
    message: str
    end_line: int | None = None
    suggestion: str | None = None
    # The confidence of this match, if it differs from that of the rule.
    confidence: int | None = None
    # As in a finding.
    column: int | None = None
    end_column: int | None = None
    patch: str | None = None
    # The severity is not higher than this: `info` where the hit is correct, but nobody would act on it.
    at_most: Severity | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of one analysis and what it could not check."""

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
