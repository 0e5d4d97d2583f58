"""The record of a run -> the app that began it, with the options it began it with."""

from __future__ import annotations

from importlib import import_module

from chargehand.apps.port import App
from chargehand.record.disk import reading
from chargehand.runs.life import RunLife

# Each module has `recall(options)`, which gives an App.
_MODULES = {"review": "chargehand.apps.review.app", "testgen": "chargehand.apps.testgen.app"}


def find_app(door: RunLife, run: str) -> App | None:
    """None for a run that no app began, or one that is not known here."""
    asked = door.request(run)
    if asked is None:
        return None
    if "app" not in asked.model_fields_set:
        return _recall_old_review(door, run)
    if asked.app is None or asked.app.name not in _MODULES:
        return None
    with reading(f"of run {run}"):
        return import_module(_MODULES[asked.app.name]).recall(asked.app.options)


def _recall_old_review(door: RunLife, run: str) -> App | None:
    """Records from before they named the app: a review kept its options in its plan."""
    plan = door.report(run).plan
    if plan is None or plan.team != "review":
        return None
    from chargehand.apps.review.old_record import recall_from_plan

    with reading(f"of run {run}"):
        return recall_from_plan(plan)
