"""One task through its attempts: work, decide by the ladder, act on the decision, until it ends.

Everything that depends on more than plan and outcomes is decided through the engine, by key, before it is acted on; so
a resumed run goes through the same rungs and pays for none of them again.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, NamedTuple, TypeVar, assert_never

from chargehand.dispatcher.available_workers import AvailableWorkers
from chargehand.dispatcher.recovery import (
    Ask,
    Decision,
    GiveUp,
    Reassign,
    Refine,
    Retry,
    Situation,
    Split,
    Upgrade,
    condition_of,
    read_decision,
    recover,
)
from chargehand.dispatcher.time_limits import TimeLimits
from chargehand.dispatcher.try_task import Attempt
from chargehand.engine.port import StepEngine
from chargehand.limits import Ticket
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.outcome import Usage
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task
from chargehand.values.recovery_policy import Condition, Policy
from chargehand.values.step import Head, StepKind, StepRefs

# Runs the smaller tasks that replace a task, until the time of the whole task is over.
InItsPlace = Callable[[Task, tuple[Task, ...], float | None], Awaitable[list[Head]]]
T = TypeVar("T")


class Rungs(NamedTuple):
    """Which rungs of the ladder the supervisor can take for a run: a rung that it cannot take is skipped."""

    refine: bool = False
    split: bool = False
    ask: bool = False
    # Without it the next worker in order is taken.
    reroute: bool = False


@plain_class()
class TaskAttempts:
    """One task under way: its attempts, and recovery between them."""

    task: Task
    engine: StepEngine
    crew: AvailableWorkers
    policy: Policy
    rungs: Rungs
    time: TimeLimits
    may_split: bool = True
    # The tokens it may use if it states no budget of tokens.
    ceiling: int | None = None
    # One entry per failed attempt.
    history: list[Condition] = field(default_factory=lambda: [])
    failed_workers: list[str] = field(default_factory=lambda: [])
    usages: list[Usage] = field(default_factory=lambda: [])
    was_split: bool = False
    was_asked: bool = False
    # The current words of the task, if they are not those of the plan.
    words: str | None = None
    # The last attempt with a partial result.
    partial: str | None = None
    # The member of a pool whose room the attempt takes.
    bound: str | None = None

    async def run(self, in_its_place: InItsPlace) -> Head:
        """How the task ended, with what all attempts used."""
        task, number = self.task, self.engine.record.attempts(self.task.id)
        budget = task.budget or Budget()
        if self.ceiling is not None and budget.tokens is None:
            budget = budget.model_copy(update={"tokens": self.ceiling})
        if budget != Budget():
            self.engine.budget.allot(task.id, budget)
        self.time.limit(budget.seconds)
        while True:
            number += 1
            ready = await self._ready(task, number)
            if isinstance(ready, Head):
                self._unbind()
                number, head = number - 1, ready
                break
            task, ticket = ready
            head = await self._attempt(task, number, ticket)
            if head is None:
                number -= 1
                continue
            self.usages.append(head.usage)
            if head.ok:
                break
            if head.partial:
                self.partial = head.ref
            self.history.append(condition_of(head))
            self.failed_workers.append(task.worker)
            step = await self._recover(task, head, number, in_its_place)
            if isinstance(step, Head):
                head = step
                break
            task = step
        changes: dict[str, Any] = {}
        if not head.ok and not head.partial and self.partial is not None:
            # The partial result of an earlier attempt is better than nothing.
            changes = {"output_of": self.partial, "partial": True}
        if self.usages != [head.usage] or head.attempts != number:
            changes |= {"attempts": number, "usage": Usage.total(self.usages)}
        return head.model_copy(update=changes) if changes else head

    # -- one attempt -------------------------------------------------------------------------------------------------

    async def _ready(self, task: Task, number: int) -> tuple[Task, Ticket | None] | Head:
        """The task for its worker, as an earlier session decided or as it is decided now; or its time is over."""
        if (choice := self.engine.record.decision(_route(task, number))) is not None:
            task = task.model_copy(update={"worker": choice["worker"]})
        if self.engine.record.end_of_attempt(task.id, number) is not None:
            return task, None
        if task.worker in self.crew.pools:
            return await self._in_time(self._from_pool(task, number), task, number, "route")
        if self.engine.record.has_sent(task.id, number):
            return task, self.crew.rejoin(task.worker, self.engine.clock.now())
        if self.crew.wait_for(task.worker, self.engine.clock.now()) is None:
            return task, self.crew.begin(task.worker, self.engine.clock.now())
        return await self._in_time(self._route(task, number, handed=choice is not None), task, number, "route")

    async def _from_pool(self, task: Task, number: int) -> tuple[Task, Ticket | None]:
        """The task for the member of its pool that is least busy, once one has room; on the record before it begins."""
        pool, pools, waited = task.worker, self.crew.pools, False
        while (worker := self.crew.member(pool, self.failed_workers, self.engine.clock.now())) is None:
            await pools.wait(again=waited)
            waited = True
        pools.bind(worker)
        self.bound = worker
        reason = f"{worker} has the least expected wait in {pool}"
        choice = {"worker": worker, "pool": pool}
        await self.engine.decide(_route(task, number), "route", lambda: choice, reason)
        return await self._route(task.model_copy(update={"worker": worker}), number, handed=False)

    def _unbind(self, head: Head | None = None) -> None:
        if self.bound is not None:
            worker, self.bound = self.bound, None
            self.crew.pools.release(worker, head)

    async def _route(self, task: Task, number: int, *, handed: bool) -> tuple[Task, Ticket | None]:
        """The task for its worker or, while that worker is out, for its fallback, or for the same worker later.

        There is no ticket when the worker is out for good. A task is handed over once.
        """
        while (wait := self.crew.wait_for(task.worker, self.engine.clock.now())) is not None:
            stand_in = None if handed else self.crew.stand_in(task.worker, self.failed_workers, self.engine.clock.now())
            if stand_in is not None:
                task, handed = await self._hand_to(stand_in, task, number), True
            elif wait == float("inf"):
                return task, None
            else:
                await self.engine.clock.sleep(wait)
        return task, self.crew.begin(task.worker, self.engine.clock.now())

    async def _hand_to(self, worker: str, task: Task, number: int) -> Task:
        reason = f"{task.worker} is out after failing several tasks in a row"
        choice = await self.engine.decide(_route(task, number), "route", lambda: {"worker": worker}, reason)
        return task.model_copy(update={"worker": choice["worker"]})

    async def _attempt(self, task: Task, number: int, ticket: Ticket | None) -> Head | None:
        """How an attempt ended, in this session or before; None when it has not been made after all."""
        if (earlier := self.engine.record.end_of_attempt(task.id, number)) is not None:
            return earlier
        if self.bound != task.worker:
            self._unbind()
            self.crew.pools.bind(task.worker)
            self.bound = task.worker
        refs = self._refs(task, number, refused=self.crew.refusal(task.worker) if ticket is None else None)
        head: Head | None = None
        try:
            head = await Attempt(refs, ticket, self.engine, self.crew).run()
        finally:
            self._unbind(head)
        return head

    def _refs(self, task: Task, number: int, **more: Any) -> StepRefs:
        return StepRefs(
            task=task.id,
            attempt=number,
            worker=task.worker,
            tier=task.tier,
            words=self.words,
            inputs=task.depends_on,
            stop_at=self.time.stop_at,
            ends_at=self.time.ends_at,
            **more,
        )

    async def _in_time(self, work: Awaitable[T], task: Task, number: int, what: str) -> T | Head:
        """The result of a wait between attempts, or the failure when the task's time is over first."""
        countdown = self.time.countdown()
        try:
            async with countdown:
                return await work
        except TimeoutError:
            if not countdown.expired:
                raise
            why = countdown.record_expiry(task, number, f"{what}/{countdown.kind}")
            return Head.failed(task.id, task.worker, countdown.kind, why)

    # -- after a failure ---------------------------------------------------------------------------------------------

    async def _recover(self, task: Task, head: Head, number: int, in_its_place: InItsPlace) -> Task | Head:
        """The task as it is to be tried next, or how it ends."""
        for turn in itertools.count(1):
            decision = await self._decide(task, head, number, turn)
            match decision:
                case GiveUp():
                    return head
                case Retry():
                    # An earlier session that began the next attempt has waited.
                    if not decision.after_s or self.engine.record.began(task.id, number + 1) is not None:
                        return task
                    pause = self.engine.clock.sleep(decision.after_s)
                    return await self._in_time(pause, task, number, "recovery") or task
                case Refine():
                    refined = await self._step("refine", task, head, number)
                    return self._with_words(task, refined)
                case Upgrade():
                    return task.model_copy(update={"tier": decision.tier})
                case Reassign():
                    return await self._reassign(decision, task, head, number)
                case Split():
                    self.was_split = True
                    if (replaced := await self._split(task, head, number, in_its_place)) is not None:
                        return replaced
                case Ask():
                    self.was_asked = True
                    if len(self.history) >= self.policy.attempts:
                        return await self._step("ask_result", task, head, number)
                    return self._with_words(task, await self._step("ask", task, head, number))
                case _:
                    assert_never(decision)
        raise AssertionError("giving up ends it")

    async def _step(self, kind: StepKind, task: Task, head: Head, number: int, **more: Any) -> Head:
        """A step after a failed attempt; its usage counts for the task."""
        refs = self._refs(task, number, outcome=head.ref, **more)
        made = await self.engine.step(f"{task.id}/{number}/{kind}", kind, refs)
        if made.usage != Usage():
            self.usages.append(made.usage)
        return made

    def _with_words(self, task: Task, made: Head) -> Task | Head:
        if not made.ok:
            return made
        self.words = made.words
        return task

    async def _reassign(self, to: Reassign, task: Task, head: Head, number: int) -> Task | Head:
        """The task for the worker that a router chooses among those that have not failed it, or for the next worker."""
        if not self.rungs.reroute or not to.among:
            return task.model_copy(update={"worker": to.worker})
        made = await self._step("reroute", task, head, number, among=to.among)
        return task.model_copy(update={"worker": made.worker}) if made.ok else made

    async def _decide(self, task: Task, head: Head, number: int, turn: int) -> Decision:
        def choose() -> JSON:
            situation = Situation(
                outcome=head,
                history=tuple(self.history),
                tier=task.tier or self.crew.tier(task.worker),
                fallback=self.crew.fallback_for(task.worker, self.failed_workers),
                others=self.crew.others(task.worker, self.failed_workers),
                refine=self.rungs.refine,
                split=self.rungs.split and self.may_split and not self.was_split,
                ask=self.rungs.ask and not self.was_asked,
                affordable=self.engine.budget.affordable() and self.time.time_left()[0] != 0,
                in_service=not self.crew.is_out(task.worker),
            )
            return recover(situation, self.policy, self.engine.clock.chance()).to_json()

        key = f"{task.id}/{number}/recovery" + (f"/{turn}" if turn > 1 else "")
        return read_decision(await self.engine.decide(key, "recovery", choose, head.why))

    async def _split(self, task: Task, head: Head, number: int, in_its_place: InItsPlace) -> Head | None:
        """The joined outcome of the smaller tasks; None when the task cannot be split."""
        made = await self._step("split", task, head, number)
        if not made.ok:
            return made
        if not made.parts:
            return None
        parts = await in_its_place(task, made.parts, self.time.of_parts())
        self.usages.extend(part.usage for part in parts)
        return await self._step("join", task, head, number, parts=tuple(part.task for part in parts))


def _route(task: Task, number: int) -> str:
    """Under which key it is decided which worker takes over."""
    return f"{task.id}/{number}/route"
