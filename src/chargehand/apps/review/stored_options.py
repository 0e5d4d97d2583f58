"""The plan of a review that was made -> what it was a review of, and how its findings were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from chargehand.apps.review.change import Change
from chargehand.apps.review.patch import Ranges
from chargehand.values.base import Value
from chargehand.values.plan import Plan


class ReviewOptions(Value):
    """How the findings of a review are chosen, and what else its report says. Kept in the plan's first task."""

    min_confidence: int = 80
    baseline: tuple[str, ...] = ()
    all: bool = False
    # Whether a model writes the answer.
    written: bool = False
    home: str = ""
    fragments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def choice(change: Change, *, min_confidence: int, baseline: frozenset[str], all: bool, written: bool) -> ReviewOptions:
    return ReviewOptions(
        min_confidence=min_confidence,
        baseline=tuple(sorted(baseline)),
        all=all,
        written=written,
        home=str(change.home),
        fragments=tuple(sorted(change.fragments)),
        notes=change.notes,
    )


def recall_review(plan: Plan) -> tuple[Change, ReviewOptions] | None:
    """None for a plan that is no review's, or one from before reviews kept this."""
    contexts = list(_contexts(plan))
    if plan.team != "review" or not contexts or "review" not in contexts[0]:
        return None
    kept = ReviewOptions.model_validate(contexts[0]["review"])
    files: dict[str, int] = {}
    changed: dict[str, Ranges] | None = None
    for context in contexts:
        files |= dict.fromkeys(context["files"], 0)
        if context["changed"] is not None:
            own = {path: tuple((a, b) for a, b in each) for path, each in context["changed"].items()}
            changed = {**(changed or {}), **own}
    root = Path(contexts[0]["root"])
    change = Change(
        root,
        Path(kept.home),
        dict(sorted(files.items())),
        changed,
        fragments=frozenset(kept.fragments),
        notes=kept.notes,
    )
    return change, kept


def _contexts(plan: Plan) -> Iterator[dict[str, Any]]:
    """Those of the analyzers' tasks."""
    for task in plan.tasks:
        context = cast("dict[str, Any]", task.context) if isinstance(task.context, dict) else {}
        if "root" in context:
            yield context
