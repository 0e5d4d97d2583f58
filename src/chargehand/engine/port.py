"""The port between the supervisor's code and the world, in small parts.

    engine.step                          what is carried out as a whole, wherever the engine wants: a plan, an attempt
    engine.perform, decide, ask, emit    what happens, by key and on the record
    engine.outcomes                      what steps came to, by ref; only steps and what reads the report know it
    engine.record                        what earlier sessions left
    engine.budget                        what calls may use
    engine.clock                         time and chance
    engine.orders                        what people order while it runs

Keys say where the supervisor is (`t3/2/model/4`: task t3, attempt 2, fourth model call) and never depend on the order
in which things finish, so replay needs no deterministic scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar, overload

from chargehand.events import EventBody, PlanApproved
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    ModelCall,
    ModelResult,
    ProgramResult,
    ProgramRun,
    Question,
    ToolCall,
    ToolResult,
)
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.step import Head, StepKind, StepRefs

if TYPE_CHECKING:
    from chargehand.values.order import Restart
    from chargehand.values.plan import Task
    from chargehand.values.report import Report

T = TypeVar("T")


class RunRecord(Protocol):
    """What earlier sessions of this run left. Reading it changes nothing."""

    def decision(self, key: str) -> JSON:
        """What an earlier session decided here; None when nothing."""
        ...

    def plan(self, within: str = "") -> PlanApproved | None:
        """The plan an earlier session recorded as the one that runs: it is not planned again.

        `within` is the attempt whose team plans, such as `t3/1`; without it, the run itself.
        """
        ...

    def end_of(self, task: str) -> Head | None:
        """How a task ended in an earlier session: it stays ended."""
        ...

    def end_of_attempt(self, task: str, attempt: int) -> Head | None:
        """How an unsuccessful attempt ended in an earlier session: it is not made again."""
        ...

    def began(self, task: str, attempt: int | None = None) -> float | None:
        """When an earlier session began this attempt, or the task's first one, as `clock.now(task)` counts."""
        ...

    def attempts(self, task: str) -> int:
        """How many attempts of a task were closed before it was reopened; new ones are numbered from here."""
        ...

    def restart_of(self, task: str) -> Restart | None:
        """With which instruction and model a person restarted a task; None when nobody did."""
        ...

    def has_sent(self, task: str, attempt: int) -> bool:
        """Whether an effect of this attempt was sent, in any session; until then it has cost nothing."""
        ...

    def take_broken_off(self, task: str, attempt: int) -> float:
        """The seconds of the calls of this attempt that were broken off since this was last asked."""
        ...

    def urls(self) -> Collection[str]:
        """The urls in what tools of this run returned, in their normal form."""
        ...


class RunBudget(Protocol):
    """What the calls of this run may use. Calls reserve by themselves; here the supervisor distributes the budget."""

    def hold(self, tokens: int) -> None:
        """Hold this much back for the synthesis; workers' calls do not get it."""
        ...

    def release(self) -> None:
        """The answer is written: nothing is held back for it any more."""
        ...

    def allot(self, task: str, budget: Budget) -> None:
        """Keep a task's calls, and those of its parts, within a budget of their own."""
        ...

    def affordable(self, tokens: int = 0) -> bool:
        """Whether the budget has room for another attempt at any task, or at a task that used this many tokens."""
        ...

    def expect(self, tasks: int, within: str = "") -> None:
        """How many tasks are not ended: what is left of the budget is shared between them and those of nested teams."""
        ...


class RunClock(Protocol):
    """Time and chance. No other clock and no other randomness is used above the port."""

    def now(self, task: str | None = None) -> float:
        """Seconds this run has been running, over all its sessions; a task's leave out its own waits for people."""
        ...

    def until_deadline(self) -> float | None:
        """Seconds until the time that this engine was given is over, by the time of day; None without a limit."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def compute(self, work: Callable[[], T]) -> T:
        """The result of long work, done outside the loop. Until it is there, the run does not wait for people alone."""
        ...

    def timeout(self, task: str, left: Callable[[], float | None]) -> AbstractAsyncContextManager[asyncio.Timeout]:
        """Cancel what is inside after `left()` seconds. The time does not pass while the task waits for a person.

        After the person's answer `left` is asked again.
        """
        ...

    def gate(self, gate: Callable[[], Awaitable[None]]) -> AbstractContextManager[None]:
        """Inside, an effect whose result is not on the record begins only once `gate()` has returned."""
        ...

    def chance(self) -> float:
        """A number in [0, 1). Whatever is made of it is decided on the record."""
        ...


class RunOrders(Protocol):
    """What people ordered of this run, in this session or before: it is on the record before it is seen here."""

    def stop_reason(self, task: str) -> str | None:
        """Why a person stopped this task, or a task that contains it; None when nobody did. Its timeouts then fire."""
        ...

    def words(self, task: str, call: str) -> list[str]:
        """A person's words to the worker of a task, which come before the model call of this key.

        On the record with the call, which has the same words in every session. Each conversation gets them once.
        """
        ...


class Outcomes(Protocol):
    """The outcomes, the report and the words behind heads. Only code in steps, and what ends a run, reads them."""

    def keep(self, ref: str, outcome: Outcome) -> Head:
        """Keep an outcome under a ref, and give its head."""
        ...

    def at(self, ref: str) -> Outcome:
        """The outcome kept under a ref."""
        ...

    def keep_report(self, ref: str, report: Report, usage: Usage) -> Head:
        """Keep the report of a run, or of a team within it, under a ref, and give its head. The step used `usage`."""
        ...

    def report_at(self, ref: str) -> Report:
        """The report kept under a ref."""
        ...

    def keep_tasks(self, ref: str, tasks: Iterable[Task]) -> None:
        """Keep tasks with their texts under a ref: a reworded task, or tasks that were added or replaced another."""
        ...

    def tasks_at(self, ref: str) -> tuple[Task, ...]:
        """The tasks kept under a ref."""
        ...


class Steps(Protocol):
    """The work inside the steps of a run, or of a team within it."""

    async def run(self, key: str, kind: StepKind, refs: StepRefs) -> Head: ...

    def recall(self, key: str) -> None: ...


class StepEngine(Protocol):
    """What the code above steps may touch: it sees heads and no texts."""

    @property
    def run(self) -> str:
        """The run's id."""
        ...

    @property
    def record(self) -> RunRecord: ...

    @property
    def budget(self) -> RunBudget: ...

    @property
    def clock(self) -> RunClock: ...

    @property
    def orders(self) -> RunOrders: ...

    async def step(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        """Carry out a step, here or elsewhere. Expected failures are heads, never exceptions."""
        ...

    def recall(self, key: str) -> None:
        """Stop a step of which nothing was sent yet: it ends as skipped. One that has sent something continues."""
        ...

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        """What the record says was decided here, else `choose()`, recorded before it is returned."""
        ...

    def emit(self, body: EventBody, *, task: str | None = None, attempt: int | None = None) -> None:
        """Put something on the record; durable no later than the next effect that returns."""
        ...

    def end_task(self, head: Head) -> None:
        """Put on the record how a task ended, and keep its outcome under the task's id."""
        ...


class Engine(StepEngine, Protocol):
    """What the work inside steps may touch. Each method may be repeated after a crash: the record answers first."""

    @property
    def outcomes(self) -> Outcomes: ...

    def serve(self, steps: Steps) -> None:
        """Let this code do the work inside the steps from now on."""
        ...

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

    async def ask(self, key: str, question: Question) -> JSON:
        """A person's answer; the run parks when nothing else can continue."""
        ...
