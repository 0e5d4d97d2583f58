"""Plan -> Outcomes, as dependencies allow: pure dataflow, no waves, one outcome per task whatever happens.

One coroutine per task waits for the tasks it depends on, then works. For `a`, `b<-a`, `c`, `d<-b,c` with `a` failing:

    task   waits for   sees                       becomes      ends when
    a      -           its instruction            failed       its attempt has ended
    c      -           its instruction            done         its attempt has ended, whatever a does
    b      a           a failed, says "skip"      skipped      a has ended
    d      b, c        b skipped, says "proceed"  done         its attempt with b's gap stated has ended

State, all of it in `_Dispatch`: `outcomes` holds a task's outcome from the moment it ends and never changes after;
`over[id]` is set in the same loop turn. A task is in exactly one of: waiting, under way, in `outcomes`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from chargehand.engine import Engine
from chargehand.errors import ChargehandError, ErrorKind
from chargehand.outcome import Outcome, Usage, failed, skipped
from chargehand.plan import Plan, Task
from chargehand.workers import Assignment, Roster

# Of a wide fan this many start in one turn of the loop, so that the first calls are under way while the rest start.
STARTED_AT_ONCE = 64


async def dispatch(plan: Plan, roster: Roster, engine: Engine, *, stop_at: float | None = None) -> dict[str, Outcome]:
    """Exactly one outcome per task, in plan order. Work still under way at `stop_at` fails with `deadline`."""
    state = _Dispatch(plan, roster, engine, stop_at)
    async with asyncio.TaskGroup() as group:
        for number, task in enumerate(plan.tasks, 1):
            group.create_task(state.settle(task), name=task.id)
            if not number % STARTED_AT_ONCE:
                await asyncio.sleep(0)
    return {task.id: state.outcomes[task.id] for task in plan.tasks}


@dataclass(slots=True)
class _Dispatch:
    plan: Plan
    roster: Roster
    engine: Engine
    stop_at: float | None
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    over: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def __post_init__(self) -> None:
        self.over = {task.id: asyncio.Event() for task in self.plan.tasks}
        self.engine.expect(len(self.plan.tasks))

    async def settle(self, task: Task) -> None:
        for dependency in task.depends_on:
            await self.over[dependency].wait()
        outcome = self.engine.ended(task.id)
        if outcome is None:
            outcome = await self._outcome(task)
            self.engine.emit("task_ended", task=task.id, attempt=outcome.attempts, outcome=outcome.to_json())
        self.outcomes[task.id] = outcome
        self.over[task.id].set()
        self.engine.expect(len(self.plan.tasks) - len(self.outcomes))

    async def _outcome(self, task: Task) -> Outcome:
        inputs = {dependency: self.outcomes[dependency] for dependency in task.depends_on}
        missing = [id for id, outcome in inputs.items() if not outcome.ok]
        if missing and task.on_dependency_failure == "skip":
            return skipped(task.id, task.worker, missing)
        self.engine.emit("task_ready", task=task.id, attempt=0, worker=task.worker)
        number = self.engine.attempts(task.id) + 1
        return await self._attempt(Assignment(task, number, inputs))

    async def _attempt(self, assignment: Assignment) -> Outcome:
        task, attempt = assignment.task, assignment.attempt
        worker = self.roster[task.worker]
        self.engine.emit(
            "attempt_started",
            task=task.id,
            attempt=attempt,
            worker=task.worker,
            tier=task.tier,
            model=worker.model_for(task.tier),
        )
        seconds, kind = self._time_for(task)
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                outcome = await worker.work(assignment, self.engine)
        except Exception as error:  # recorded: a worker's bug is its task's failure, never its siblings'
            if isinstance(error, TimeoutError) and clock.expired():
                outcome = self._out_of_time(assignment, kind, seconds)
            elif not _is_workers_own(error):
                raise
            else:
                outcome = failed(task.id, task.worker, "internal", f"{type(error).__name__} in {task.worker}: {error}")
            outcome = outcome.model_copy(update={"usage": Usage.total(assignment.used)})
        outcome = outcome.model_copy(update={"attempts": attempt})
        fault = outcome.error.to_json() if outcome.error else None
        self.engine.emit("attempt_ended", task=task.id, attempt=attempt, status=outcome.status, error=fault)
        return outcome

    def _time_for(self, task: Task) -> tuple[float | None, ErrorKind]:
        """The seconds an attempt has, and what it is called when they are over."""
        limits: list[tuple[float, ErrorKind]] = []
        if task.timeout_s is not None:
            limits.append((task.timeout_s, "timeout"))
        if task.budget is not None and task.budget.seconds is not None:
            limits.append((task.budget.seconds, "timeout"))
        if self.stop_at is not None:
            limits.append((max(self.stop_at - self.engine.now(), 0.0), "deadline"))
        return min(limits, default=(None, "timeout"), key=lambda limit: limit[0] or 0.0)

    def _out_of_time(self, assignment: Assignment, kind: ErrorKind, seconds: float | None) -> Outcome:
        """On the record in the same batch as the end of the attempt, so that resume never decides it again."""
        task = assignment.task
        what = "its time of" if kind == "timeout" else "the run's deadline, with"
        reason = f"{task.worker} was stopped at {what} {seconds or 0:g} s{' left' if kind == 'deadline' else ''}."
        self.engine.emit(
            "decision",
            task=task.id,
            attempt=assignment.attempt,
            key=assignment.key(kind),
            decision=kind,
            value={"after_s": seconds},
            reason=reason,
        )
        return failed(task.id, task.worker, kind, reason)


def _is_workers_own(error: Exception) -> bool:
    """Whether an exception is the worker's own; the record's and the owner's errors end the run instead."""
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        return all(_is_workers_own(inner) for inner in group.exceptions)
    return not isinstance(error, ChargehandError)
