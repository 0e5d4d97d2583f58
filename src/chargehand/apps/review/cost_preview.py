"""The plan of a review -> a sentence about what its models will cost, before any is called."""

from __future__ import annotations

from chargehand.apps.review.model_readers import INTENT, READERS
from chargehand.apps.review.reading_plan import ReadingPlan
from chargehand.planner.preview import preview
from chargehand.runs.roster import roster
from chargehand.runs.supervisor import Supervisor
from chargehand.trace.number_text import several
from chargehand.values.plan import Plan
from chargehand.values.request import Request

# `review` has no option for it.
_RAISE_LIMIT = "tokens = {tokens} under [budget] in chargehand.toml; to read less, use --diff or a smaller PATH"
_RATED = " The scorer is asked once more for each thing found."


def preview_cost(plan: Plan, door: Supervisor, readings: ReadingPlan) -> str:
    """An estimate, from earlier reviews with the same models if there are any."""
    if not door.settings.has_model:
        return "No model is asked: this review costs nothing."
    settings = door.team_settings()
    read = {path for task in plan.tasks if task.worker in READERS for path in task.context["code"]}
    asked = Request(text=plan.goal, budget=settings.budget, max_concurrent=settings.max_concurrent)
    files = f"Models read {several(len(read), 'file')}"
    known = f"; {several(readings.known, 'file')} known from an earlier review" if readings.known else ""
    if not any(task.worker in {INTENT, *READERS} for task in plan.tasks):
        return f"{files}{known}: one call, for the summary."
    writer, judge = settings.model_for("synthesizer").model, settings.model_for("judge").model
    past = door.home.past_runs(door.team.name, settings.models_key)
    estimate = preview(plan, door.team, roster(door.team, settings), writer, asked, None, judge, past, _RAISE_LIMIT)
    return f"{files}{known}. {estimate}{'' if past else _RATED}"
