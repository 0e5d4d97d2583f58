"""One line of a suite as a value: the question, the worker or team it is for, and what is expected of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias, cast

from chargehand.values.base import JSON, Field, Value
from chargehand.values.field_schema import Before
from chargehand.values.outcome import Outcome, Status
from chargehand.values.plan import Plan
from chargehand.values.status_words import RunStatus

Kind = Literal["routing", "plan", "worker", "synthesis", "run"]
KINDS: tuple[Kind, ...] = ("routing", "plan", "worker", "synthesis", "run")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_number(value: Any) -> Any:
    return {"value": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_count(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"min": value, "max": value}
    return {"tasks": cast("list[Any]", value)} if isinstance(value, list) else value


Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Before(_as_list)]
Text = Annotated[str, Field(pattern=r"\S")]
CaseId = Annotated[str, Field(pattern=r"^[^\s/][^\n\r]{0,99}$")]


class Number(Value):
    """A figure and how far off it may be; `field` is the path to it in an output that is an object."""

    value: float
    tolerance: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0)
    field: str | None = None

    def allows(self, given: float) -> bool:
        return abs(given - self.value) <= max(self.tolerance, self.relative * abs(self.value), 1e-9)


class Count(Value):
    """How many there may be, and the tasks that they must include."""

    min: int = Field(default=0, ge=0)
    max: int | None = Field(default=None, ge=0)
    tasks: tuple[str, ...] = ()

    def allows(self, given: int) -> bool:
        return self.min <= given and (self.max is None or given <= self.max)


Counted = Annotated[Count, Before(_as_count)]


class _Expectation(Value):
    def check_together(self) -> None:
        if not self.model_fields_set:
            raise ValueError(f"expects nothing: give one of {', '.join(type(self).model_fields)}")


class WorkerExpectation(_Expectation):
    """The golden answer of a worker: the status it should end with (done by default) and its content."""

    status: Annotated[tuple[Status, ...], Before(_as_list)] = ("done",)
    exact: JSON = None
    contains: Words = ()
    lacks: Words = ()
    numeric: Annotated[Number, Before(_as_number)] | None = None
    rubric: Text | None = None


class AnswerExpectation(_Expectation):
    """What a synthesis should say. Contradictions and gaps are counted as the report lists them."""

    contains: Words = ()
    lacks: Words = ()
    cites: Words = ()
    contradictions: Counted | None = None
    gaps: Counted | None = None
    rubric: Text | None = None


class RunExpectation(AnswerExpectation):
    """How a whole run should end, and what it may cost."""

    status: Annotated[tuple[RunStatus, ...], Before(_as_list)] = ()
    max_usd: Annotated[float, Field(gt=0)] | None = None
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    max_seconds: Annotated[float, Field(gt=0)] | None = None


class _Case(Value):
    id: CaseId = ""
    # Why the case exists, for readers of the suite.
    note: str = ""


class RoutingCase(_Case):
    """A request and the worker it is for. A secondary worker is checked if the case names one, else counted."""

    kind: Literal["routing"] = "routing"
    request: Text
    primary: Text
    secondary: Text | None = None

    def workers(self) -> Iterator[tuple[str, str]]:
        yield "primary", self.primary
        if self.secondary is not None:
            yield "secondary", self.secondary


class PlanCase(_Case):
    """A request and a good plan for it. It passes with a score of `at_least` or more."""

    kind: Literal["plan"] = "plan"
    request: Text
    material: tuple[str, ...] = Field(default=(), alias="with")
    plan: Plan
    at_least: float = Field(default=0.7, ge=0, le=1)


class WorkerCase(_Case):
    """One task for one worker, with its golden answer."""

    kind: Literal["worker"] = "worker"
    worker: Text
    instruction: Text
    context: JSON = None
    criterion: Text = "The instruction is followed, and what it asks for is given."
    material: tuple[str, ...] = Field(default=(), alias="with")
    expect: WorkerExpectation


class SynthesisCase(_Case):
    """Fixed outcomes, one for each task of the plan, to combine into one answer."""

    kind: Literal["synthesis"] = "synthesis"
    request: str = ""
    plan: Plan
    outcomes: tuple[Outcome, ...]
    expect: AnswerExpectation


class RunCase(_Case):
    """A request from end to end. If a plan is given, it is run unchanged."""

    kind: Literal["run"] = "run"
    request: Text
    material: tuple[str, ...] = Field(default=(), alias="with")
    plan: Plan | None = None
    expect: RunExpectation

    def for_plain_call(self) -> RunCase | None:
        """The case for one plain call, which has no tasks to cite or to compare; None if no answer is expected."""
        of_a_team = {"cites": (), "contradictions": None, "gaps": None}
        expect = self.expect.model_copy(update=of_a_team)
        stated = expect.contains or expect.lacks or expect.rubric
        return self.model_copy(update={"plan": None, "expect": expect}) if stated else None


Case: TypeAlias = RoutingCase | PlanCase | WorkerCase | SynthesisCase | RunCase
SHAPES: dict[Kind, type[Case]] = {
    "routing": RoutingCase,
    "plan": PlanCase,
    "worker": WorkerCase,
    "synthesis": SynthesisCase,
    "run": RunCase,
}
