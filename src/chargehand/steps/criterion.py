"""A worker's outcome, checked against its criterion: by the worker's own check, then by a scorer if there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from chargehand.engine.port import Engine
from chargehand.errors import ChargehandError
from chargehand.events import Warned
from chargehand.values.effect import ToolCall
from chargehand.values.outcome import Outcome, Score, Usage, failed
from chargehand.values.plan import Task
from chargehand.workers import Assignment, WorkerPort

# None when the scorer gave no score, which proves nothing. What it uses joins what the assignment has used.
Scorer = Callable[[Assignment, Outcome], Awaitable[Score | None]]


async def work_and_check(assignment: Assignment, worker: WorkerPort, engine: Engine, score: Scorer | None) -> Outcome:
    """The outcome of a worker's assignment, checked against its criterion."""
    outcome = await worker.work(assignment, engine)
    return await check_criterion(assignment, outcome, worker, engine, score) if outcome.ok else outcome


def failed_by_bug(task: Task, error: Exception) -> Outcome:
    return failed(task.id, task.worker, "internal", f"{type(error).__name__} in {task.worker}: {error}")


def is_workers_own(error: Exception) -> bool:
    """Whether an exception is the worker's own; the record's and the owner's errors end the run instead."""
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        return all(is_workers_own(inner) for inner in group.exceptions)
    return not isinstance(error, ChargehandError)


async def check_criterion(
    assignment: Assignment, outcome: Outcome, worker: WorkerPort, engine: Engine, score: Scorer | None
) -> Outcome:
    """The outcome, or criterion_not_met with the result so far as a partial result. "No exception" is not success."""
    task = assignment.task
    if worker.check is not None:
        effect = ToolCall(worker=task.worker, tool=worker.check, arguments={"output": outcome.output}, effect="read")
        result = await engine.perform(assignment.key("check"), effect)
        problem = result.error.message if result.error else result.text.strip()
        if problem and problem not in ("true", "null"):
            return _not_met(outcome, "its check failed" if problem == "false" else problem)
    if score is not None:
        before = len(assignment.used)
        found = await score(assignment, outcome)
        used = Usage.total([outcome.usage, *assignment.used[before:]])
        outcome = outcome.model_copy(update={"usage": used})
        if found is None:
            message = f"The result of {task.id} was not scored: the scorer gave no readable answer."
            engine.emit(Warned(message=message), task=task.id, attempt=assignment.attempt)
        elif not found.met:
            return _not_met(outcome, f"scored {found.score}: {found.reason}")
    return outcome


def _not_met(outcome: Outcome, why: str) -> Outcome:
    message = f"The success criterion is not met: {why}"
    result = failed(outcome.task, outcome.worker, "criterion_not_met", message, output=outcome.output)
    return result.model_copy(update={"usage": outcome.usage})
