"""Plan -> heads of outcomes, as dependencies allow: pure dataflow, no waves, one outcome per task whatever happens.

One coroutine per task waits for the tasks it depends on, then pursues the task. For `a`, `b<-a`, `c`, `d<-b,c` with `a`
failing for good:

    task   waits for   sees                       becomes      ends when
    a      -           its instruction            failed       the ladder has no rung left for it
    c      -           its instruction            done         its attempt has ended, whatever a does
    b      a           a failed, says "skip"      skipped      a has ended
    d      b, c        b skipped, says "proceed"  done         its attempt with b's gap stated has ended

State, all of it in `_Dispatch`: `heads` holds the head of a task's outcome from the moment it ends, and the head never
changes after that; `over[id]` is set in the same loop turn. A task is in exactly one of: waiting, under way, in
`heads`.

Nothing here reads a text or imports a model, a tool or an engine: attempts and recovery are steps of the engine, which
may carry them out elsewhere. So an engine may also run a dispatch where only plain, deterministic code may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field

from chargehand.dispatcher.available_workers import AvailableWorkers, out_key
from chargehand.dispatcher.pool import Pools
from chargehand.dispatcher.task_attempts import Rungs, TaskAttempts
from chargehand.dispatcher.time_limits import TimeLimits, stopped_by_person
from chargehand.engine.port import StepEngine
from chargehand.engine.run_parallel import run_parallel
from chargehand.events import TaskReady
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Plan, Task
from chargehand.values.recovery_policy import Policy
from chargehand.values.step import Head
from chargehand.workers import WorkerFacts

__all__ = ["Rungs", "assemble", "dispatch"]


def assemble(
    roster: Mapping[str, WorkerFacts],
    engine: StepEngine,
    *,
    fallbacks: Mapping[str, str] | None = None,
    pools: Mapping[str, Sequence[str]] | None = None,
    width: int = 8,
    ask: bool = False,
) -> AvailableWorkers:
    """The crew of a run, without the workers that were taken out in an earlier session.

    `width` is how many calls the run may have in flight, for the members of pools to share. With `ask` a person may get
    a task that no other worker could do.
    """
    crew = AvailableWorkers(roster, fallbacks or {}, ask, Pools(pools or {}, width))
    for name in roster:
        crew.restore(name, engine.record.decision(out_key(name)))
    return crew


async def dispatch(
    plan: Plan,
    crew: AvailableWorkers,
    engine: StepEngine,
    *,
    stop_at: float | None = None,
    policy: Policy | None = None,
    rungs: Rungs | None = None,
    ceiling: int | None = None,
    earlier: Mapping[str, Head] | None = None,
) -> dict[str, Head]:
    """Exactly one head per task, in plan order. Work still under way at `stop_at` fails with `deadline`.

    `earlier` are heads of a plan that this one extends: its tasks may depend on them. `ceiling` is how many tokens a
    task without a token budget may use.
    """
    engine.budget.expect(len(plan.tasks))
    dispatching = _Dispatch(plan, engine, crew, policy or Policy(), rungs or Rungs(), stop_at, ceiling)
    dispatching.heads.update(earlier or {})
    return await dispatching.run()


@plain_class()
class _Dispatch:
    """One plan under way: which of its tasks have ended, and which may begin."""

    plan: Plan
    engine: StepEngine
    crew: AvailableWorkers
    policy: Policy
    rungs: Rungs
    stop_at: float | None
    ceiling: int | None = None
    # The task whose place this plan takes, when it is one split into smaller ones.
    parent: Task | None = None
    # When that task's own time is over.
    ends_at: float | None = None
    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    over: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    unfinished: int = 0

    async def run(self) -> dict[str, Head]:
        self.unfinished = len(self.plan.tasks)
        self.over = {task.id: asyncio.Event() for task in self.plan.tasks}
        await run_parallel((self._settle(task) for task in self.plan.tasks), alone_inline=False)
        return {task.id: self.heads[task.id] for task in self.plan.tasks}

    async def _settle(self, task: Task) -> None:
        # A task that is not here had ended before this began.
        if before := [self.over[each] for each in task.depends_on if each in self.over]:
            await self._wait_for(before, task)
        head = self.engine.record.end_of(task.id)
        if head is None:
            head = self._unless_stopped(task, await self._pursue(task))
            self.engine.end_task(head)
        self.heads[task.id] = head
        self.over[task.id].set()
        if self.parent is None:
            self.unfinished -= 1
            self.engine.budget.expect(self.unfinished)

    async def _wait_for(self, tasks: list[asyncio.Event], task: Task) -> None:
        """Wait until all of these have ended, or the task itself is stopped."""
        countdown = TimeLimits(self.engine, task.id, None).endless()
        try:
            async with countdown:
                for over in tasks:
                    await over.wait()
        except TimeoutError:
            if not countdown.expired:
                raise

    def _unless_stopped(self, task: Task, head: Head) -> Head:
        """A task that a person stopped has failed, however far it had come."""
        reason = self.engine.orders.stop_reason(task.id)
        if reason is None or head.error == "cancelled":
            return head
        return Head(
            task=task.id,
            worker=head.worker,
            status="failed",
            why=stopped_by_person(task.id, reason),
            error="cancelled",
            attempts=head.attempts,
            usage=head.usage,
        )

    async def _pursue(self, task: Task) -> Head:
        if self.engine.orders.stop_reason(task.id) is not None and self.engine.record.began(task.id) is None:
            # A failure without another attempt, once it is marked as stopped.
            made = self.engine.record.attempts(task.id)
            return Head.skipped(task.id, task.worker, ()).model_copy(update={"attempts": made})
        missing = tuple(id for id in dict.fromkeys(task.depends_on) if not self.heads[id].ok)
        if missing and task.on_dependency_failure == "skip":
            return Head.skipped(task.id, task.worker, missing)
        self.engine.emit(TaskReady(worker=task.worker), task=task.id, attempt=0)
        time = TimeLimits(self.engine, task.id, self.stop_at, self.ends_at)
        attempts = TaskAttempts(task, self.engine, self.crew, self.policy, self.rungs, time)
        attempts.may_split = self.parent is None
        attempts.ceiling = self.ceiling
        return await attempts.run(self._run_parts)

    async def _run_parts(self, task: Task, parts: tuple[Task, ...], ends_at: float | None) -> list[Head]:
        """How the smaller tasks that take a task's place ended; they see what it would have seen."""
        # Its parts are within its own limits.
        plan = Plan(tasks=parts)
        inner = _Dispatch(plan, self.engine, self.crew, self.policy, self.rungs, self.stop_at, None, task, ends_at)
        inner.heads.update({dependency: self.heads[dependency] for dependency in task.depends_on})
        return list((await inner.run()).values())
