"""Reviews recorded before records named the app: their options are in the context of the plan's first task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from chargehand.apps.review.run_review import ReviewApp
from chargehand.apps.review.stored_options import ReviewOptions
from chargehand.values.plan import Plan


def recall_from_plan(plan: Plan) -> ReviewApp | None:
    """None for a plan that no review made."""
    contexts = list(_analyzer_contexts(plan))
    if not contexts or "review" not in contexts[0]:
        return None
    files: dict[str, int] = {}
    changed: dict[str, Any] | None = None
    for context in contexts:
        files |= dict.fromkeys(context["files"], 0)
        if context["changed"] is not None:
            changed = {**(changed or {}), **context["changed"]}
    change = {"root": contexts[0]["root"], "files": dict(sorted(files.items())), "changed": changed}
    return ReviewApp(ReviewOptions.model_validate({**contexts[0]["review"], **change}))


def _analyzer_contexts(plan: Plan) -> Iterator[dict[str, Any]]:
    for task in plan.tasks:
        context = cast("dict[str, Any]", task.context) if isinstance(task.context, dict) else {}
        if "root" in context:
            yield context
