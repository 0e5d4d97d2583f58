"""Plan -> Outcomes, as dependencies allow: pure dataflow, no waves, one outcome per task whatever happens.

One coroutine per task waits for the tasks it depends on, then pursues the task. For `a`, `b<-a`, `c`, `d<-b,c` with `a`
failing for good:

    task   waits for   sees                       becomes      ends when
    a      -           its instruction            failed       the ladder has no rung left for it
    c      -           its instruction            done         its attempt has ended, whatever a does
    b      a           a failed, says "skip"      skipped      a has ended
    d      b, c        b skipped, says "proceed"  done         its attempt with b's gap stated has ended

State, all of it in `_Dispatch`: `outcomes` holds a task's outcome from the moment it ends and never changes after;
`over[id]` is set in the same loop turn. A task is in exactly one of: waiting, under way, in `outcomes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chargehand.dispatcher.available_workers import AvailableWorkers, out_key
from chargehand.dispatcher.pool import Pools
from chargehand.dispatcher.supervisor_help import SupervisorHelp
from chargehand.dispatcher.task_attempts import TaskAttempts
from chargehand.dispatcher.time_limits import TimeLimits
from chargehand.engine.port import Engine
from chargehand.engine.side_by_side import abreast
from chargehand.values.outcome import Outcome, skipped
from chargehand.values.plan import Plan, Task
from chargehand.values.recovery_policy import Policy
from chargehand.workers import Roster

__all__ = ["SupervisorHelp", "assemble", "dispatch"]


def assemble(
    roster: Roster,
    engine: Engine,
    *,
    fallbacks: Mapping[str, str] | None = None,
    pools: Mapping[str, Sequence[str]] | None = None,
    width: int = 8,
    ask: bool = False,
) -> AvailableWorkers:
    """The crew of a run, with who was taken out in an earlier session.

    `width` is how many calls the run may have in flight, for the members of pools to share. With `ask` a person may be
    given what nobody else could do.
    """
    crew = AvailableWorkers(roster, fallbacks or {}, ask, Pools(pools or {}, width))
    for name in roster:
        crew.restore(name, engine.record.decided(out_key(name)))
    return crew


async def dispatch(
    plan: Plan,
    crew: AvailableWorkers,
    engine: Engine,
    *,
    stop_at: float | None = None,
    policy: Policy | None = None,
    help: SupervisorHelp | None = None,
    ceiling: int | None = None,
    earlier: Mapping[str, Outcome] | None = None,
) -> dict[str, Outcome]:
    """Exactly one outcome per task, in plan order. Work still under way at `stop_at` fails with `deadline`.

    `earlier` are outcomes of a plan that this one extends: its tasks may depend on them. `ceiling` is how many tokens a
    task may use that states no budget of tokens.
    """
    engine.budget.expect(len(plan.tasks))
    dispatching = _Dispatch(plan, engine, crew, policy or Policy(), help or SupervisorHelp(), stop_at, ceiling)
    dispatching.outcomes.update(earlier or {})
    return await dispatching.run()


@dataclass(slots=True)
class _Dispatch:
    plan: Plan
    engine: Engine
    crew: AvailableWorkers
    policy: Policy
    help: SupervisorHelp
    stop_at: float | None
    ceiling: int | None = None
    # The task whose place this plan takes, when it is one split into smaller ones.
    parent: Task | None = None
    # When that task's own time is over.
    ends_at: float | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    over: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    unfinished: int = 0
    # The ids of all tasks there are: of this plan, of the one it extends, and of the one around it.
    known: frozenset[str] = frozenset()

    async def run(self) -> dict[str, Outcome]:
        self.unfinished = len(self.plan.tasks)
        self.over = {task.id: asyncio.Event() for task in self.plan.tasks}
        self.known |= self.over.keys() | self.outcomes.keys()
        await abreast((self._settle(task) for task in self.plan.tasks), alone_inline=False)
        return {task.id: self.outcomes[task.id] for task in self.plan.tasks}

    async def _settle(self, task: Task) -> None:
        for dependency in task.depends_on:
            if dependency in self.over:  # else it was over before this began
                await self.over[dependency].wait()
        outcome = self.engine.record.ended(task.id)
        if outcome is None:
            outcome = await self._outcome(task)
            self.engine.emit("task_ended", task=task.id, attempt=outcome.attempts, outcome=outcome.to_json())
        self.outcomes[task.id] = outcome
        self.over[task.id].set()
        if self.parent is None:
            self.unfinished -= 1
            self.engine.budget.expect(self.unfinished)

    async def _outcome(self, task: Task) -> Outcome:
        inputs = {dependency: self.outcomes[dependency] for dependency in task.depends_on}
        missing = [id for id, outcome in inputs.items() if not outcome.ok]
        if missing and task.on_dependency_failure == "skip":
            return skipped(task.id, task.worker, missing)
        self.engine.emit("task_ready", task=task.id, attempt=0, worker=task.worker)
        time = TimeLimits(self.engine, task.id, self.stop_at, self.ends_at)
        pursuit = TaskAttempts(task, inputs, self.engine, self.crew, self.policy, self.help, time)
        pursuit.may_split = self.parent is None
        pursuit.ceiling = self.ceiling
        pursuit.tasks = self.known
        return await pursuit.run(self._in_its_place)

    async def _in_its_place(
        self, task: Task, plan: Plan, inputs: Mapping[str, Outcome], ends_at: float | None
    ) -> list[Outcome]:
        """The outcomes of the smaller tasks that take a task's place; they see what it would have seen."""
        # Its parts are within its own limits.
        inner = _Dispatch(plan, self.engine, self.crew, self.policy, self.help, self.stop_at, None, task, ends_at)
        inner.outcomes.update(inputs)
        inner.known = self.known
        return list((await inner.run()).values())
