"""The engine as a team within a run sees it: the same record, slots, ledger and clock, all keys below its task.

`t1/1/model/1` inside becomes `t3/1/t1/1/model/1`, and what the team's supervisor puts on the record is of `t3`. So one
run has one record, and a resumed one finds each nested step where it left it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TypeVar, overload

from chargehand.engine.outcomes import KeptOutcomes
from chargehand.engine.port import Engine, Outcomes, RunBudget, RunClock, RunOrders, Steps
from chargehand.events import EventBody, GapFound, PlanApproved, TaskEnded, remake
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    Effect,
    ModelCall,
    ModelResult,
    ProgramResult,
    ProgramRun,
    Question,
    Result,
    ToolCall,
    ToolResult,
    usage_of,
    usage_of_program,
)
from chargehand.values.key import within
from chargehand.values.order import Restart
from chargehand.values.outcome import Usage
from chargehand.values.step import Head, StepKind, StepRefs
from chargehand.workers import Assignment

T = TypeVar("T")


class NestedEngine:
    """Made for one attempt of a delegate. What the assignment has used grows with all that returns or is recorded."""

    def __init__(self, engine: Engine, assignment: Assignment, began: float) -> None:
        self._engine = engine
        self._task, self._attempt = assignment.task.id, assignment.attempt
        self._scope = _Scope(f"{self._task}/{self._attempt}")
        self._used = assignment.used
        self.run = engine.run
        # `began`: when the attempt began, on the clock of the run around it.
        self.outcomes = KeptOutcomes()
        self.record = _NestedRecord(engine, self._scope, self.outcomes, assignment.used, began)
        self._steps: Steps | None = None
        self.budget = _NestedBudget(engine.budget, self._scope)
        self.clock = _NestedClock(engine.clock, self._scope, began)
        self.orders = _NestedOrders(engine.orders, self._scope)

    @staticmethod
    async def open(engine: Engine, assignment: Assignment, team: str) -> NestedEngine:
        """The same beginning in every session."""
        started = await engine.decide(
            assignment.key("@start"), "delegate", lambda: {"team": team, "at": engine.clock.now()}, f"{team} does it"
        )
        return NestedEngine(engine, assignment, started["at"])

    def close(self) -> None:
        """Tasks that were expected and will not run any more get no share of the budget."""
        self.budget.expect(0)

    @overload
    async def perform(
        self, key: str, effect: ModelCall, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult: ...
    @overload
    async def perform(self, key: str, effect: ToolCall) -> ToolResult: ...
    @overload
    async def perform(self, key: str, effect: Analysis) -> AnalysisResult: ...
    @overload
    async def perform(self, key: str, effect: ProgramRun) -> ProgramResult: ...

    async def perform(self, key: str, effect: Effect, *, on_text: Callable[[str], None] | None = None) -> Result:
        key = self._scope.key(key)
        if isinstance(effect, ModelCall):
            reply = await self._engine.perform(key, effect, on_text=on_text)
            self._used.append(usage_of(reply, effect.model))
            return reply
        if isinstance(effect, ProgramRun):
            made = await self._engine.perform(key, effect)
            self._used.append(usage_of_program(made))
            return made
        if isinstance(effect, ToolCall):
            result = await self._engine.perform(key, effect)
        else:
            result = await self._engine.perform(key, effect)
        self._used.append(Usage(seconds=result.seconds, waiting_s=result.waiting_s))
        return result

    def serve(self, steps: Steps) -> None:
        self._steps = steps

    async def step(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        """Inline: the attempt that the team does is a step of the run as a whole."""
        assert self._steps is not None, "serve() comes before the first step"
        return await self._steps.run(key, kind, refs)

    def recall(self, key: str) -> None:
        assert self._steps is not None, "serve() comes before the first step"
        self._steps.recall(key)

    def end_task(self, head: Head) -> None:
        outcome = self.outcomes.end(head.task, head)
        self.emit(TaskEnded(outcome=outcome.to_json()), task=head.task, attempt=head.attempts)

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        return await self._engine.decide(self._scope.key(key), decision, choose, reason)

    async def ask(self, key: str, question: Question) -> JSON:
        named = question.model_copy(update={"id": f"{self._task}.{question.id}"})
        return await self._engine.ask(self._scope.key(key), named)

    def emit(self, body: EventBody, *, task: str | None = None, attempt: int | None = None) -> None:
        keys = {name: self._scope.key(key) for name, key in vars(body).items() if name in ("key", "within")}
        if task is None or isinstance(body, GapFound):
            # It belongs to the team's supervisor, and so to the task of the team.
            named = {"within": self._scope.path, **vars(body), **keys}
            self._engine.emit(remake(body, named), task=self._task, attempt=self._attempt)
        else:
            self._engine.emit(remake(body, {**vars(body), **keys}), task=self._scope.key(task), attempt=attempt)


class _Scope:
    """The attempt the team works on, such as `t3/1`: what its keys and tasks are called in the run around it."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def key(self, key: str) -> str:
        """A key or a task of the team, as the run has it; the team itself is the empty one."""
        if not key:
            return self.path
        return f"{self.path}/{key}" if key.startswith("@") else within(self.path, key)


class _NestedRecord:
    """The run's record below the attempt. What is found there counts as used by it."""

    def __init__(self, engine: Engine, scope: _Scope, outcomes: Outcomes, used: list[Usage], began: float) -> None:
        self._record = engine.record
        self._around = engine.outcomes
        self._outcomes = outcomes
        self._key = scope.key
        self._used = used
        self._began = began

    def decision(self, key: str) -> JSON:
        return self._record.decision(self._key(key))

    def plan(self, within: str = "") -> PlanApproved | None:
        recorded = self._record.plan(self._key(within))
        if recorded is not None and not within:
            self._used.append(Usage.model_validate(recorded.usage or {}))
        return recorded

    def end_of(self, task: str) -> Head | None:
        return self._keep(task, self._record.end_of(self._key(task)))

    def end_of_attempt(self, task: str, attempt: int) -> Head | None:
        return self._keep(f"{task}/{attempt}", self._record.end_of_attempt(self._key(task), attempt))

    def _keep(self, ref: str, head: Head | None) -> Head | None:
        if head is None or head.ref is None:
            return head
        self._used.append(head.usage)
        return self._outcomes.keep(ref, self._around.at(head.ref))

    def began(self, task: str, attempt: int | None = None) -> float | None:
        began = self._record.began(self._key(task), attempt)
        return None if began is None else began - self._began

    def attempts(self, task: str) -> int:
        return self._record.attempts(self._key(task))

    def restart_of(self, task: str) -> Restart | None:
        return self._record.restart_of(self._key(task))

    def has_sent(self, task: str, attempt: int) -> bool:
        return self._record.has_sent(self._key(task), attempt)

    def take_broken_off(self, task: str, attempt: int) -> float:
        seconds = self._record.take_broken_off(self._key(task), attempt)
        self._used.append(Usage(seconds=seconds))
        return seconds

    def urls(self) -> Collection[str]:
        return self._record.urls()


class _NestedBudget:
    """The run's budget. Nothing is held back for a nested answer: the run's own answer comes first."""

    def __init__(self, budget: RunBudget, scope: _Scope) -> None:
        self._budget = budget
        self._key = scope.key

    def hold(self, tokens: int) -> None:
        """Nothing: a nested answer is written from what is left, or by code."""

    def release(self) -> None:
        """Nothing: the run's own answer is not written yet."""

    def allot(self, task: str, budget: Budget) -> None:
        self._budget.allot(self._key(task), budget)

    def affordable(self, tokens: int = 0) -> bool:
        return self._budget.affordable(tokens)

    def expect(self, tasks: int, within: str = "") -> None:
        self._budget.expect(tasks, self._key(within))


class _NestedClock:
    """The run's clock, from when the attempt began."""

    def __init__(self, clock: RunClock, scope: _Scope, began: float) -> None:
        self._clock = clock
        self._key = scope.key
        self._began = began

    def now(self, task: str | None = None) -> float:
        return self._clock.now(None if task is None else self._key(task)) - self._began

    def until_deadline(self) -> float | None:
        return self._clock.until_deadline()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def compute(self, work: Callable[[], T]) -> T:
        return await self._clock.compute(work)

    def timeout(self, task: str, left: Callable[[], float | None]) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self._clock.timeout(self._key(task), left)

    def gate(self, gate: Callable[[], Awaitable[None]]) -> AbstractContextManager[None]:
        return self._clock.gate(gate)

    def chance(self) -> float:
        return self._clock.chance()


class _NestedOrders:
    """The orders to the run, about tasks of the team."""

    def __init__(self, orders: RunOrders, scope: _Scope) -> None:
        self._orders = orders
        self._key = scope.key

    def stop_reason(self, task: str) -> str | None:
        return self._orders.stop_reason(self._key(task))

    def words(self, task: str, call: str) -> list[str]:
        return self._orders.words(self._key(task), self._key(call))
