"""The worker port: a task and the outcomes it depends on -> one outcome. The kind of worker changes nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import field
from typing import NamedTuple, Protocol, TypeAlias

from chargehand.engine.port import Engine
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task, Tier
from chargehand.values.recovery_policy import EvidenceRule
from chargehand.values.report import Report
from chargehand.values.request import Request

__all__ = ["Assignment", "Roster", "RunTerms", "TeamRun", "WorkerFacts", "WorkerPort"]

# How the team of a worker is run.
TeamRun: TypeAlias = Callable[[Request, Engine], Awaitable[Report]]


@plain_class(frozen=True)
class Assignment:
    """Everything a worker may see: its task, which attempt this is, and the outcomes the task depends on."""

    task: Task
    attempt: int
    inputs: Mapping[str, Outcome]
    # What the worker has used so far; it is counted even when the worker is stopped.
    used: list[Usage] = field(default_factory=list[Usage])
    # Which part of the attempt this is: a member of a best_of (`b2`), or the joined result of a split task.
    within: str | None = None
    # The ids of all tasks of the run: a worker's sources are checked against them. No worker sees them.
    tasks: Collection[str] = frozenset()

    @property
    def is_member(self) -> bool:
        """Whether it is one of several copies of the same attempt, as members of a best_of."""
        return self.within is not None and self.within.startswith("b")

    def key(self, *parts: object) -> str:
        """`t3/2/model/4`: where this assignment is."""
        where = (self.attempt,) if self.within is None else (self.attempt, self.within)
        return "/".join([self.task.id, *map(str, where), *map(str, parts)])

    async def ask(self, engine: Engine, key: str, question: Question) -> JSON:
        """A person's answer; the time it takes while the run continues is waiting, not work."""
        began = engine.clock.now()
        answer = await engine.ask(key, question)
        self.used.append(Usage(waiting_s=max(engine.clock.now() - began, 0.0)))
        return answer


class RunTerms(NamedTuple):
    """What a run means for its workers: its request, when they stop on its clock, how their results are checked."""

    request: Request
    stop_at: float | None = None
    evidence: EvidenceRule = "normal"


class WorkerFacts(Protocol):
    """What a dispatch has to know about a worker to choose one: the work itself is inside steps."""

    @property
    def tier(self) -> Tier:
        """The tier it works at when the task names none."""
        ...

    @property
    def waits_for_person(self) -> bool:
        """Whether a person does its work: it has no time limit, and it gets no task unless people may be asked."""
        ...


class WorkerPort(WorkerFacts, Protocol):
    """Stateless between assignments; expected failures are outcomes, never exceptions."""

    @property
    def output_schema(self) -> dict[str, JSON] | None:
        """What its output must satisfy, if anything."""
        ...

    @property
    def check(self) -> str | None:
        """The tool that checks whether an output is good, if it has one."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether doing one task several times in parallel is useful, and safe because no `once` tool is in it."""
        ...

    def bind(self, terms: RunTerms) -> WorkerPort:
        """The same worker for the tasks of one run."""
        ...

    def model_for(self, tier: Tier | None) -> str | None:
        """The model an attempt at this tier uses; None for workers without one."""
        ...

    def with_model(self, model: str) -> WorkerPort:
        """The same worker with another model at every tier; itself where it has none."""
        ...

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome: ...


Roster = Mapping[str, WorkerPort]
