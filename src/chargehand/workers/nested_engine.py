"""The engine as a team within a run sees it: the same record, slots, ledger and clock, all keys below its task.

`t1/1/model/1` inside becomes `t3/1/t1/1/model/1`, and what the team's supervisor puts on the record is of `t3`. So one
run has one record, and a resumed one finds each nested step where it left it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, overload

from chargehand.engine.port import Engine
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    Effect,
    ModelCall,
    ModelResult,
    Question,
    ToolCall,
    ToolResult,
    usage_of,
)
from chargehand.values.event import EventKind
from chargehand.values.key import within
from chargehand.values.outcome import Outcome, Usage
from chargehand.workers import Assignment


class NestedEngine:
    """Made for one attempt of a delegate. What the assignment has used grows with all that returns or is recorded."""

    def __init__(self, engine: Engine, assignment: Assignment, began: float) -> None:
        self._engine = engine
        self._task, self._attempt = assignment.task.id, assignment.attempt
        self._scope = f"{self._task}/{self._attempt}"
        self._used = assignment.used
        # When the attempt began, on the clock of the run around it.
        self._began = began

    @staticmethod
    async def open(engine: Engine, assignment: Assignment, team: str) -> NestedEngine:
        """The same beginning in every session."""
        started = await engine.decide(
            assignment.key("@start"), "delegate", lambda: {"team": team, "at": engine.now()}, f"{team} does it"
        )
        return NestedEngine(engine, assignment, started["at"])

    def close(self) -> None:
        """What was expected and is not done any more shares no budget."""
        self._engine.expect(0, self._scope)

    @property
    def run(self) -> str:
        return self._engine.run

    # -- effects -----------------------------------------------------------------------------------------------------

    @overload
    async def perform(
        self, key: str, effect: ModelCall, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult: ...
    @overload
    async def perform(self, key: str, effect: ToolCall) -> ToolResult: ...
    @overload
    async def perform(self, key: str, effect: Analysis) -> AnalysisResult: ...

    async def perform(
        self, key: str, effect: Effect, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult | ToolResult | AnalysisResult:
        if isinstance(effect, ModelCall):
            reply = await self._engine.perform(self._key(key), effect, on_text=on_text)
            self._used.append(usage_of(reply, effect.model))
            return reply
        if isinstance(effect, ToolCall):
            result = await self._engine.perform(self._key(key), effect)
        else:
            result = await self._engine.perform(self._key(key), effect)
        self._used.append(Usage(seconds=result.seconds, waiting_s=result.waiting_s))
        return result

    async def ask(self, key: str, question: Question) -> JSON:
        named = question.model_copy(update={"id": f"{self._task}.{question.id}"})
        return await self._engine.ask(self._key(key), named)

    async def sleep(self, seconds: float) -> None:
        await self._engine.sleep(seconds)

    # -- the record --------------------------------------------------------------------------------------------------

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        return await self._engine.decide(self._key(key), decision, choose, reason)

    def recorded_decision(self, key: str) -> JSON:
        return self._engine.recorded_decision(self._key(key))

    def emit(self, kind: EventKind, *, task: str | None = None, attempt: int | None = None, **data: Any) -> None:
        for name in ("key", "within"):
            if name in data:
                data[name] = self._key(data[name])
        if task is None or kind == "gap_found":
            # Of the team's supervisor, and so of the task it does.
            self._engine.emit(kind, task=self._task, attempt=self._attempt, **{"within": self._scope, **data})
        else:
            self._engine.emit(kind, task=self._id(task), attempt=attempt, **data)

    def approved_plan(self, within: str = "") -> dict[str, JSON] | None:
        recorded = self._engine.approved_plan(self._key(within) if within else self._scope)
        if recorded is not None and not within:
            self._used.append(Usage.model_validate(recorded.get("usage") or {}))
        return recorded

    def ended_outcome(self, task: str) -> Outcome | None:
        return self._count_usage(self._engine.ended_outcome(self._id(task)))

    def attempted_outcome(self, task: str, attempt: int) -> Outcome | None:
        return self._count_usage(self._engine.attempted_outcome(self._id(task), attempt))

    def _count_usage(self, outcome: Outcome | None) -> Outcome | None:
        if outcome is not None:
            self._used.append(outcome.usage)
        return outcome

    def began(self, task: str, attempt: int | None = None) -> float | None:
        began = self._engine.began(self._id(task), attempt)
        return None if began is None else began - self._began

    def has_sent(self, task: str, attempt: int) -> bool:
        return self._engine.has_sent(self._id(task), attempt)

    def attempts(self, task: str) -> int:
        return self._engine.attempts(self._id(task))

    def tool_texts(self) -> Iterable[str]:
        return self._engine.tool_texts()

    # -- budget and time ---------------------------------------------------------------------------------------------

    def hold(self, tokens: int) -> None:
        """Nothing: the run's own answer comes first. A nested one is written from what is left, or by code."""

    def release(self) -> None:
        """Nothing: the run's own answer is not written yet."""

    def allot(self, task: str, budget: Budget) -> None:
        self._engine.allot(self._id(task), budget)

    def affordable(self, tokens: int = 0) -> bool:
        return self._engine.affordable(tokens)

    def expect(self, tasks: int, within: str = "") -> None:
        self._engine.expect(tasks, self._key(within) if within else self._scope)

    def chance(self) -> float:
        return self._engine.chance()

    def now(self, task: str | None = None) -> float:
        return self._engine.now(None if task is None else self._id(task)) - self._began

    def timeout(self, task: str, left: Callable[[], float | None]) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self._engine.timeout(self._id(task), left)

    def gate(self, gate: Callable[[], Awaitable[None]]) -> AbstractContextManager[None]:
        return self._engine.gate(gate)

    # -- names -------------------------------------------------------------------------------------------------------

    def _key(self, key: str) -> str:
        return f"{self._scope}/{key}" if key.startswith("@") else within(self._scope, key)

    _id = _key
