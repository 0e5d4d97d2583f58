"""An answer and a rubric -> a check by a model: the scorer, which also judges results by criteria."""

from __future__ import annotations

from chargehand.engine.port import Engine
from chargehand.evaluation.result import Check
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.steps.score import score
from chargehand.values.base import JSON
from chargehand.values.outcome import done
from chargehand.values.plan import Task
from chargehand.workers import Assignment

NO_JUDGE = "The judge gave no usable answer."


async def judge_output(rubric: str, asked: str, output: JSON, engine: Engine, model: SupervisorModel) -> Check | None:
    """None when the judge gave no usable answer: that proves nothing either way."""
    task = Task(id="case", worker="candidate", instruction=asked, success_criterion=rubric)
    assignment = Assignment(task, 1, {})
    found = await score(assignment, done("case", "candidate", summary="", output=output), engine, model)
    if found is None:
        return None
    return Check(name="rubric", passed=found.met, by="judge", score=found.score / 100, said=found.reason)
