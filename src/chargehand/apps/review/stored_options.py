"""What a review keeps on the record of its run: what it is a review of, and how its findings are chosen."""

from __future__ import annotations

from pathlib import Path

from chargehand.apps.review.change import Change
from chargehand.apps.review.patch import Ranges
from chargehand.values.base import Value


class ReviewOptions(Value):
    min_confidence: int = 80
    baseline: tuple[str, ...] = ()
    all: bool = False
    # Whether a model writes the answer.
    written: bool = False
    # The change, as in Change.
    root: str
    home: str
    files: dict[str, int]
    changed: dict[str, Ranges] | None = None
    fragments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def change(self) -> Change:
        """Without what only a plan is made from."""
        return Change(
            Path(self.root),
            Path(self.home),
            self.files,
            self.changed,
            fragments=frozenset(self.fragments),
            notes=self.notes,
        )


def options_for(
    change: Change, *, min_confidence: int, baseline: frozenset[str], all: bool, written: bool
) -> ReviewOptions:
    return ReviewOptions(
        min_confidence=min_confidence,
        baseline=tuple(sorted(baseline)),
        all=all,
        written=written,
        root=str(change.root),
        home=str(change.home),
        files=dict(change.files),
        changed=None if change.changed is None else dict(change.changed),
        fragments=tuple(sorted(change.fragments)),
        notes=change.notes,
    )
