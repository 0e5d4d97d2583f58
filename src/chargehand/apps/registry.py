"""The record of a run -> the app that began it, with its options."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from chargehand.record.replay import Replay
from chargehand.record.storage_errors import reading
from chargehand.text.plan_json import parse
from chargehand.values.request import Request

if TYPE_CHECKING:
    from chargehand.apps.app_port import App

# Each module has `recall(options)`, which returns an App.
_MODULES = {"review": "chargehand.apps.review.run_review", "testgen": "chargehand.apps.testgen.run_testgen"}


def find_app(state: Replay) -> App | None:
    """The app; None without an app, with an unknown app, or for a run stopped before anything was recorded."""
    if not state.start:
        return None
    with reading(f"of run {state.run}"):
        asked = Request.model_validate(state.start["request"])
        if "app" not in asked.model_fields_set:
            return _recall_old_review(state)
        if asked.app is None or asked.app.name not in _MODULES:
            return None
        return import_module(_MODULES[asked.app.name]).recall(asked.app.options)


def _recall_old_review(state: Replay) -> App | None:
    """For old records, which do not name the app: a review kept its options in its plan."""
    written = state.plan or state.drafted
    if written is None or written.get("team") != "review":
        return None
    from chargehand.apps.review.options_from_plan import recall_from_plan

    return recall_from_plan(parse(written))
