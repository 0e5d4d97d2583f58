"""What happens in a run, as typed values, to JSON and back: `events/kinds.py` has one class for each kind of event.

An event is a head (run, seq, at, task, attempt) and a body. A body holds its fields as they are in JSON: a field
without a default is always written, one with a default only where it was given.

    engine.emit(TaskReady(worker="writer"), task="t1", attempt=0)

    match event.body:
        case TaskEnded(outcome=outcome): ...
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from chargehand.events.body import BODIES, JSON, Data, shape_problem
from chargehand.events.kinds import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    BudgetReserved,
    BudgetSettled,
    ContradictionFound,
    Control,
    Critiqued,
    Decided,
    DraftDiscarded,
    EventBody,
    Extended,
    GapFound,
    ModelCalled,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    PlanRejected,
    Progressed,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    RunEnded,
    RunStarted,
    SynthesisStarted,
    TaskEnded,
    TaskReady,
    ToolCalled,
    ToolRefused,
    ToolReturned,
    Unknown,
    Unreadable,
    Warned,
)

# What users may import; the rest is for the package itself.
__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "BreakerChanged",
    "BudgetReserved",
    "BudgetSettled",
    "ContradictionFound",
    "Control",
    "Critiqued",
    "Decided",
    "DraftDiscarded",
    "Event",
    "EventBody",
    "Extended",
    "GapFound",
    "ModelCalled",
    "ModelReplied",
    "PlanApproved",
    "PlanDrafted",
    "PlanRejected",
    "Progressed",
    "QuestionAnswered",
    "QuestionAsked",
    "Reused",
    "RunEnded",
    "RunStarted",
    "SynthesisStarted",
    "TaskEnded",
    "TaskReady",
    "ToolCalled",
    "ToolRefused",
    "ToolReturned",
    "Unknown",
    "Unreadable",
    "Warned",
]

VERSION = 1


class Event(NamedTuple):
    """One thing that happened. `seq` counts from 1 without holes; `at` is seconds since 1970."""

    run: str
    seq: int
    at: float
    task: str | None
    attempt: int | None
    body: EventBody

    @property
    def kind(self) -> str:
        return type(self.body).kind

    @property
    def data(self) -> Data:
        """The fields of the body as they are in JSON."""
        return vars(self.body)

    @property
    def outside(self) -> bool:
        """Put there by a command while no process ran the run, as `answer` does: its time is not the run's own."""
        match self.body:
            case QuestionAnswered(by=by) | RunEnded(by=by):
                return by == "command"
            case _:
                return False

    def with_data(self, data: Mapping[str, JSON]) -> Event:
        """The same event with other values in the fields of its body."""
        return self._replace(body=remake(self.body, data))

    def to_json(self) -> Data:
        head: Data = {"v": VERSION, "run": self.run, "seq": self.seq, "at": self.at, "kind": self.kind}
        if self.task is not None:
            head["task"] = self.task
        if self.attempt is not None:
            head["attempt"] = self.attempt
        return head | self.data


def remake(body: EventBody, data: Mapping[str, JSON]) -> EventBody:
    """A body of the same kind with these fields, in this order."""
    return type(body)(**data)


def read_body(kind: str, data: Data) -> EventBody:
    """The body of an event from its JSON: Unknown and Unreadable keep what cannot be read, and their kind."""
    body = BODIES.get(kind)
    if body is None:
        return _unread(Unknown, kind)(**data)
    if shape_problem(body, data):
        return _unread(Unreadable, kind)(**data)
    made = object.__new__(body)
    # The fields as they were read, not a copy: a record has many events.
    object.__setattr__(made, "__dict__", data)
    return cast("EventBody", made)


@lru_cache(64)
def _unread(sort: type[Unknown] | type[Unreadable], kind: str) -> type[Unknown] | type[Unreadable]:
    """The class with a kind of its own, which is not in the table."""
    return cast("type[Unknown] | type[Unreadable]", type(sort.__name__, (sort,), {"kind": kind}))
