"""The order of a run: plan -> heads of outcomes -> the head of its report. Only this module knows it.

All work is done in steps of the engine. Nothing here reads a text or imports a model, a prompt or an engine, so an
engine may also run this where only plain, deterministic code may run.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial

from chargehand.dispatcher import Rungs, assemble, dispatch
from chargehand.dispatcher.available_workers import AvailableWorkers
from chargehand.engine.port import StepEngine
from chargehand.planner.worth_extending import worth_extending
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Plan, Task
from chargehand.values.step import Head, PlanHead, StepRefs


async def run(engine: StepEngine) -> Head:
    """The head of the report, which is kept under its `ref`."""
    planned = await engine.step("@plan", "plan", StepRefs())
    if planned.plan is None:
        return planned
    plan, width = planned.plan, planned.plan.max_concurrent
    crew = assemble(plan.workers, engine, fallbacks=plan.fallbacks, pools=plan.pools, width=width, ask=plan.ask)
    work = _Work(engine, plan, crew, plan.extensions)
    await work.run_tasks(planned.parts)
    written = await work.write()
    while written.lacks:
        if await work.extend(written):
            written = await work.write(written)
        else:
            written = await engine.step(f"{written.ref}/rest", "finish", work.refs(written))
    return written


@plain_class()
class _Work:
    """Dispatches the tasks, and adds tasks a limited number of times if the plan was made here."""

    engine: StepEngine
    plan: PlanHead
    crew: AvailableWorkers
    # How many more rounds may add tasks, and how many rounds there were.
    left: int
    rounds: int = 0
    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    # Tasks without a result that other tasks have replaced.
    filled: frozenset[str] = frozenset()
    # The tokens of the results in a draft that may have to be written again.
    to_read: int = 0

    async def run_tasks(self, tasks: tuple[Task, ...]) -> None:
        self._hold(len(self.heads) + len(tasks))
        plan, rungs = self.plan, Rungs(**self.plan.rungs)
        ready = partial(dispatch, Plan(tasks=tasks), self.crew, self.engine, stop_at=plan.stop_at, earlier=self.heads)
        self.heads |= await ready(policy=plan.policy, rungs=rungs, ceiling=plan.ceiling)

    async def extend(self, draft: Head | None = None) -> bool:
        """Whether tasks were added and run, because of earlier outcomes or of what a draft of the answer lacks."""
        number = self.rounds + 1
        if not self.left or len(self.heads) >= self.plan.max_tasks or not await self._may_extend(number, draft):
            return False
        added = await self.engine.step(f"@extend/{number}", "extend", self.refs(draft, number))
        if not added.parts:
            # The planner has nothing to add, or no time for it: it is not asked again.
            self.left = 0
            if draft is not None:
                self.engine.budget.release()
            return False
        self.rounds, self.left = number, self.left - 1
        await self.run_tasks(added.parts)
        self.filled |= {gap for gap, tasks in added.fills.items() if all(self.heads[id].ok for id in tasks)}
        return True

    async def _may_extend(self, number: int, draft: Head | None) -> bool:
        """Whether something is missing that more tasks could give, and there are budget and time for them.

        Decided once. If there is a draft, the budget for writing another one is set aside first.
        """
        engine, stop_at = self.engine, self.plan.stop_at
        key = f"@extend/{number}/{'whether' if draft is None else 'gaps'}"
        if draft is None and engine.record.decision(key) is None and not worth_extending(self.heads, self.filled):
            return False
        if draft is not None:
            self.to_read = draft.tokens_read
            self._hold(len(self.heads))
        in_hand = engine.budget.affordable() and (stop_at is None or engine.clock.now() < stop_at)
        why = "tasks failed or are thin" if draft is None else "a draft of the answer lacks something"
        reason = f"{why}, and another way might do" if in_hand else "no budget or time is left for more tasks"
        may = bool(await engine.decide(key, "extend", lambda: in_hand, reason))
        if draft is not None and not may:
            engine.budget.release()
        return may

    async def write(self, before: Head | None = None) -> Head:
        """The head of the report; or, where tasks may still be added, of a first draft that lacks something.

        Before that, tasks are added for what failed or is thin, as long as there are some and rounds are left.
        """
        while await self.extend():
            pass
        key = "@synthesis" if before is None else f"@synthesis/x{self.rounds}"
        return await self.engine.step(key, "write", self.refs(before, self.rounds))

    def refs(self, draft: Head | None = None, number: int = 0) -> StepRefs:
        return StepRefs(
            inputs=tuple(self.heads),
            filled=tuple(sorted(self.filled)),
            draft=None if draft is None else draft.ref,
            round=number,
            may_lack=self.left > 0,
            stop_at=self.plan.stop_at,
        )

    def _hold(self, tasks: int) -> None:
        """Hold back the budget for the answer; a single task needs no synthesis."""
        self.engine.budget.hold((0 if tasks == 1 else self.plan.synthesis_tokens) + self.to_read)
