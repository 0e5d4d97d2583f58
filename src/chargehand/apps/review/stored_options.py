"""The options of a review in the record of its run: what is reviewed, and how findings are selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chargehand.apps.review.change import Change
from chargehand.apps.review.choices import MIN_CONFIDENCE
from chargehand.apps.review.patch import Ranges
from chargehand.values.base import Field, Value
from chargehand.values.outcome import Severity


class ReviewOptions(Value):
    min_confidence: int = MIN_CONFIDENCE
    baseline: tuple[str, ...] = ()
    all: bool = False
    fail_on: Severity | None = None
    # Whether a model writes the answer.
    written: bool = False
    # The folder for findings of readers, and task -> path -> key in it.
    cache: str = ""
    reading_keys: dict[str, dict[str, str]] = Field(default_factory=dict)
    # The number of files that models read before, and of files that are too many for them.
    known: int = 0
    unread: int = 0
    # Whether linters that run code of the project may check it.
    trusted: bool = False
    # The change, as in Change.
    root: str
    home: str
    files: dict[str, int]
    changed: dict[str, Ranges] | None = None
    beside_removed: dict[str, Ranges] = Field(default_factory=dict)
    fragments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def change(self) -> Change:
        """The change without the parts that only the plan needs."""
        return Change(
            Path(self.root),
            Path(self.home),
            self.files,
            self.changed,
            beside_removed=self.beside_removed,
            fragments=frozenset(self.fragments),
            notes=self.notes,
        )


def stored_change(change: Change) -> dict[str, Any]:
    """The fields of ReviewOptions that come from the change."""
    return {
        "root": str(change.root),
        "home": str(change.home),
        "files": change.files,
        "changed": change.changed,
        "beside_removed": change.beside_removed,
        "fragments": tuple(sorted(change.fragments)),
        "notes": change.notes,
    }
