"""One task through its attempts: work, check the criterion, decide by the ladder, act on the decision, until it ends.

Everything that depends on more than plan and outcomes is decided through the engine, by key, before it is acted on; so
a resumed run goes through the same rungs and pays for none of them again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from pydantic import TypeAdapter

from chargehand.dispatcher.attempt import Attempt
from chargehand.dispatcher.available_workers import AvailableWorkers
from chargehand.dispatcher.criterion import check_criterion
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
    recover,
)
from chargehand.dispatcher.split_parts import join_parts
from chargehand.dispatcher.supervisor_help import SupervisorHelp
from chargehand.dispatcher.time_limits import TimeLimits
from chargehand.engine.people import question_for_result
from chargehand.engine.port import Engine
from chargehand.limits import Ticket
from chargehand.text.json_schema import violations
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.outcome import Outcome, Usage, failed
from chargehand.values.plan import Plan, Task
from chargehand.values.recovery_policy import Condition, Policy
from chargehand.workers import Assignment
from chargehand.workers.human import outcome_of

# The worker named in an outcome that a person gave.
PERSON = "person"
_DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)

# Runs the smaller tasks that take a task's place, until the time when the whole's own is over.
InItsPlace = Callable[[Task, Plan, Mapping[str, Outcome], float | None], Awaitable[list[Outcome]]]
T = TypeVar("T")


@dataclass(slots=True)
class TaskAttempts:
    task: Task
    inputs: Mapping[str, Outcome]
    engine: Engine
    crew: AvailableWorkers
    policy: Policy
    help: SupervisorHelp
    time: TimeLimits
    may_split: bool = True
    # The tokens it may use if it states no budget of tokens.
    ceiling: int | None = None
    # The ids of all tasks of the run.
    tasks: frozenset[str] = frozenset()
    # One entry per failed attempt.
    history: list[Condition] = field(default_factory=lambda: [])
    failed_workers: list[str] = field(default_factory=lambda: [])
    usages: list[Usage] = field(default_factory=lambda: [])
    was_split: bool = False
    was_asked: bool = False
    # What the last attempt that had anything had.
    partial: JSON = None
    # The member of a pool whose room the attempt takes.
    bound: str | None = None

    async def run(self, in_its_place: InItsPlace) -> Outcome:
        """The task's one outcome, with what all attempts used."""
        task, first = self.task, self.engine.record.attempts(self.task.id)
        budget = task.budget or Budget()
        if self.ceiling is not None and budget.tokens is None:
            budget = budget.model_copy(update={"tokens": self.ceiling})
        if budget != Budget():
            self.engine.budget.allot(task.id, budget)
        self.time.limit(budget.seconds)
        number = first
        while True:
            number += 1
            ready = await self._ready(task, number)
            if isinstance(ready, Outcome):
                self._unbind()
                number, outcome = number - 1, ready
                break
            task, ticket = ready
            outcome = await self._attempt(task, number, ticket)
            if outcome is None:
                number -= 1
                continue
            self.usages.append(outcome.usage)
            if outcome.ok:
                break
            if outcome.partial:
                self.partial = outcome.output
            self.history.append(condition_of(outcome))
            self.failed_workers.append(task.worker)
            step = await self._recover(task, outcome, number, in_its_place)
            if isinstance(step, Outcome):
                outcome = step
                break
            task = step
        if not outcome.ok and not outcome.partial and self.partial is not None:
            # What an earlier attempt had found is better than nothing.
            outcome = outcome.model_copy(update={"output": self.partial, "partial": True})
        if self.usages == [outcome.usage] and outcome.attempts == number - first:
            return outcome
        return outcome.model_copy(update={"attempts": number - first, "usage": Usage.total(self.usages)})

    # -- one attempt -------------------------------------------------------------------------------------------------

    async def _ready(self, task: Task, number: int) -> tuple[Task, Ticket | None] | Outcome:
        """The task for who works on it, as an earlier session decided or as things are; or its time is over."""
        if (choice := self.engine.record.decided(_route(task, number))) is not None:
            task = task.model_copy(update={"worker": choice["worker"]})
        if self.engine.record.attempted(task.id, number) is not None:
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

    def _unbind(self, outcome: Outcome | None = None) -> None:
        if self.bound is not None:
            worker, self.bound = self.bound, None
            self.crew.pools.release(worker, outcome)

    async def _route(self, task: Task, number: int, *, handed: bool) -> tuple[Task, Ticket | None]:
        """The task for who may work on it now: its worker, or while that one is out its fallback, or the same later.

        No ticket when the worker is out for good. It is handed over once.
        """
        while (wait := self.crew.wait_for(task.worker, self.engine.clock.now())) is not None:
            stand_in = None if handed else self.crew.stand_in(task.worker, self.failed_workers, self.engine.clock.now())
            if stand_in is not None:
                task, handed = await self._handed_to(stand_in, task, number), True
            elif wait == float("inf"):
                return task, None
            else:
                await self.engine.clock.sleep(wait)
        return task, self.crew.begin(task.worker, self.engine.clock.now())

    async def _handed_to(self, worker: str, task: Task, number: int) -> Task:
        reason = f"{task.worker} is out after failing several tasks in a row"
        choice = await self.engine.decide(_route(task, number), "route", lambda: {"worker": worker}, reason)
        return task.model_copy(update={"worker": choice["worker"]})

    async def _attempt(self, task: Task, number: int, ticket: Ticket | None) -> Outcome | None:
        """What came of an attempt, in this session or before; None when it has not been made after all."""
        if (earlier := self.engine.record.attempted(task.id, number)) is not None:
            return earlier
        if self.bound != task.worker:
            self._unbind()
            self.crew.pools.bind(task.worker)
            self.bound = task.worker
        assignment = Assignment(task, number, self.inputs, tasks=self.tasks)
        outcome: Outcome | None = None
        try:
            outcome = await Attempt(assignment, ticket, self.engine, self.crew, self.help, self.time).run()
        finally:
            self._unbind(outcome)
        return outcome

    async def _in_time(self, work: Awaitable[T], task: Task, number: int, what: str) -> T | Outcome:
        """What is done between attempts, or the failure when the task's time is over first."""
        countdown = self.time.countdown()
        try:
            async with countdown:
                return await work
        except TimeoutError:
            if not countdown.expired:
                raise
            return countdown.verdict(task, number, f"{what}/{countdown.kind}")

    # -- after a failure ---------------------------------------------------------------------------------------------

    async def _recover(self, task: Task, outcome: Outcome, number: int, in_its_place: InItsPlace) -> Task | Outcome:
        """The task as it is to be tried next, or the outcome it ends with."""
        for turn in itertools.count(1):
            decision = await self._decide(task, outcome, number, turn)
            match decision:
                case GiveUp():
                    return outcome
                case Retry():
                    # An earlier session that began the next attempt has waited.
                    if not decision.after_s or self.engine.record.began(task.id, number + 1) is not None:
                        return task
                    pause = self.engine.clock.sleep(decision.after_s)
                    return await self._in_time(pause, task, number, "recovery") or task
                case Refine():
                    assert self.help.refine is not None
                    refined = self.help.refine(task, outcome, number, self.usages)
                    return await self._in_time(refined, task, number, "recovery")
                case Upgrade():
                    return task.model_copy(update={"tier": decision.tier})
                case Reassign():
                    worker = await self._choose_worker(decision, task, outcome, number)
                    return worker if isinstance(worker, Outcome) else task.model_copy(update={"worker": worker})
                case Split():
                    self.was_split = True
                    if (replaced := await self._split(task, outcome, number, in_its_place)) is not None:
                        return replaced
                case Ask():
                    self.was_asked = True
                    if len(self.history) >= self.policy.attempts:
                        return await self._asked_for_result(task, outcome, number)
                    answer = await self._ask(task, outcome)
                    return task.model_copy(update={"context": _with_answer(task, outcome, answer)})
                case _:
                    assert_never(decision)
        raise AssertionError("giving up ends it")

    async def _choose_worker(self, to: Reassign, task: Task, outcome: Outcome, number: int) -> str | Outcome:
        """Whom a router chooses of those who have not failed the task, or who is next."""
        if self.help.reroute is None or not to.among:
            return to.worker
        chosen = self.help.reroute(task, outcome, to.among, number, self.usages)
        return await self._in_time(chosen, task, number, "recovery")

    async def _decide(self, task: Task, outcome: Outcome, number: int, turn: int) -> Decision:
        worker = self.crew.worker(task.worker)

        def choose() -> JSON:
            situation = Situation(
                outcome=outcome,
                history=tuple(self.history),
                tier=task.tier or worker.tier,
                fallback=self.crew.fallback_for(task.worker, self.failed_workers),
                others=self.crew.others(task.worker, self.failed_workers),
                refine=self.help.refine is not None,
                split=self.help.split is not None and self.may_split and not self.was_split,
                ask=self.help.ask is not None and not self.was_asked,
                affordable=self.engine.budget.affordable() and self.time.time_left()[0] != 0,
                in_service=not self.crew.is_out(task.worker),
            )
            return recover(situation, self.policy, self.engine.clock.chance()).to_json()

        key = f"{task.id}/{number}/recovery" + (f"/{turn}" if turn > 1 else "")
        return _DECISION.validate_python(await self.engine.decide(key, "recovery", choose, outcome.summary))

    async def _split(self, task: Task, outcome: Outcome, number: int, in_its_place: InItsPlace) -> Outcome | None:
        """What the smaller tasks came to, as one outcome; None when there is no way to split it."""
        assert self.help.split is not None
        planned = self.help.split(task, outcome, number, self.usages)
        plan = await self._in_time(planned, task, number, "recovery")
        if plan is None or isinstance(plan, Outcome):
            return plan
        parts = await in_its_place(task, plan, self.inputs, self.time.of_parts())
        self.usages.extend(part.usage for part in parts)
        return await self._held_to_criterion(task, join_parts(task, parts), number, "split")

    async def _asked_for_result(self, task: Task, outcome: Outcome, number: int) -> Outcome:
        """No attempt is left: what the person says is the result, held to what a worker's is held to."""
        schema = self.crew.worker(task.worker).output_schema
        answer = await self.engine.ask(f"{task.id}/ask", question_for_result(task, outcome, schema))
        return await self._held_to_criterion(task, outcome_of(task.id, PERSON, answer), number, "ask")

    async def _held_to_criterion(self, task: Task, outcome: Outcome, number: int, after: str) -> Outcome:
        """A result that no single attempt gave, or why it does not do; what was there stays as a partial result."""
        if not outcome.ok:
            return outcome
        worker = self.crew.worker(task.worker)
        if worker.output_schema is not None and (wrong := violations(outcome.output, worker.output_schema)):
            message = f"The result does not have the agreed shape: {'; '.join(wrong)}"
            return failed(task.id, outcome.worker, "contract", message, output=outcome.output)
        assignment = Assignment(task, number, self.inputs, self.usages, within=after)
        checking = check_criterion(assignment, outcome, worker, self.engine, self.help.score)
        held = await self._in_time(checking, task, number, after)
        if held.ok or held.output is not None:
            return held
        return held.model_copy(update={"output": outcome.output, "partial": True})

    async def _ask(self, task: Task, outcome: Outcome) -> str:
        assert self.help.ask is not None
        answer = await self.engine.ask(f"{task.id}/ask", self.help.ask(task, outcome))
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _route(task: Task, number: int) -> str:
    """Under which key it is decided who stands in."""
    return f"{task.id}/{number}/route"


def _with_answer(task: Task, outcome: Outcome, answer: str) -> JSON:
    """The task's context with what a person said about it."""
    return {"context": task.context, "asked of a person": outcome.summary, "their answer": answer}
