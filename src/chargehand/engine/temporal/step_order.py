"""The input and output of an activity, as JSON: an order for one step, and the head of its result.

Both become part of the history of a workflow, so neither holds a text of the user, of a model or of a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from chargehand.values.outcome import Usage
from chargehand.values.step import Head, StepKind, StepRefs

# The step that ends a run, after the steps of its flow: it records the report and what no other step carried.
CLOSE = "close"
# The first steps of a run that has run before: they read its record, a page at a time.
RECALL = "recall"
# A person has ordered something: the verdict goes on the record.
TAKE_ORDERS = "orders"
# What the workflow puts on the record, where no other step is about to carry it.
CARRY = "carry"
# The segment of what concerns a run as a whole: orders of people, and the beginning of each execution but the first.
RUN = "@run"
# Turns and tries are counted within an opening of the run, tries within a turn: together they make a token.
MOST_TURNS, MOST_TRIES = 100_000, 10_000

JsonObject = dict[str, Any]


@dataclass
class StepOrder:
    """One step of a run. `turn` counts the steps of its segment; with the try of the activity it makes the token."""

    run: str
    key: str
    kind: str
    segment: str
    turn: int
    refs: JsonObject = field(default_factory=dict[str, Any])
    # Seconds of the run at `at`, which is a time of day; and how long its task has waited for people.
    now: float = 0.0
    at: float = 0.0
    waited: float = 0.0
    # What the whole segment may use, in all its steps, or, for the last step, the whole run; and what the task may.
    tokens: int | None = None
    usd: float | None = None
    task_budget: JsonObject | None = None
    # Whether it may ask for more, once.
    may_get_more: bool = False
    # Task -> the attempt that it ended with, or the head that it ended with.
    ends: dict[str, Any] = field(default_factory=dict[str, Any])
    # Where tasks are kept that were added to the plan, and what planning them used.
    added: list[str] = field(default_factory=list[str])
    planning: list[JsonObject] = field(default_factory=list[JsonObject])
    # Events of the workflow that this step puts on the record: kind, task, attempt, fields.
    notes: list[list[Any]] = field(default_factory=list[list[Any]])
    # An attempt that is done ends its task: what the attempts before it used.
    ends_task: bool = False
    used: list[JsonObject] = field(default_factory=list[JsonObject])
    # When the run's time is over, on its own clock; it may have been given more.
    deadline_s: float | None = None
    # Whether people restarted tasks, perhaps with other words or another model.
    restarted: bool = False
    # Whether the task, or what the supervisor made of all, is done again: the run was continued with more.
    reopens: bool = False
    # For the last step: how the run ended, the ref of its report, and what the run spent in addition to its outcomes.
    status: str | None = None
    extras: list[JsonObject] = field(default_factory=list[JsonObject])


@dataclass
class StepResult:
    """How a step ended; or, while it waits, for what."""

    head: JsonObject | None = None
    # What its segment has spent in all its steps.
    tokens: int = 0
    usd: float = 0.0
    # What was spent but is not in the head: interrupted calls, and calls that did not report their usage.
    extra: JsonObject | None = None
    # `person`, `provider` until a time of day, `hold` while the run is held, or `budget` for a larger part of it.
    waits: str | None = None
    until: float | None = None
    # Whether the attempt ended its task, as ordered.
    ended: bool = False
    page: JsonObject | None = None


def pack(value: StepOrder | StepResult) -> JsonObject:
    """The fields for a history: those that differ from their default."""
    blank = _BLANK[type(value)]
    return {name: each for name, each in vars(value).items() if each != blank[name]}


def pack_refs(refs: StepRefs) -> JsonObject:
    return {name: value for name, value in refs._asdict().items() if value != StepRefs._field_defaults[name]}


def read_refs(data: JsonObject) -> StepRefs:
    fields: JsonObject = {}
    for name, value in data.items():
        fields[name] = tuple(cast("list[str]", value)) if isinstance(value, list) else value
    return StepRefs(**fields)


def pack_head(head: Head) -> JsonObject:
    """A head without default values, and without its texts."""
    data = head.model_dump(mode="json", exclude_defaults=True)
    if "why" in data:
        data["why"] = why_mark(head.ref) if head.ref else ""
    return data


def read_head(data: JsonObject) -> Head:
    return Head.model_validate(data)


def why_mark(ref: str) -> str:
    """Stands for the words of the outcome under a ref, where only the ref may be known."""
    return f"\x02{ref}\x03"


def order_mark(key: str) -> str:
    """Stands for the words of the order under a key."""
    return why_mark(f"order:{key}")


ORDER_MARK = re.compile("\x02order:([^\x03]*)\x03")


def segment_of(kind: StepKind, key: str, refs: StepRefs) -> str:
    """Which segment of the record a step is written to: its task's, or one of the supervisor's own."""
    if refs.task:
        return refs.task
    if kind == "plan":
        return "@plan"
    return key if kind == "extend" and refs.draft is None else "@synthesis"


def total_usage(data: list[JsonObject]) -> Usage:
    return Usage.total([Usage.model_validate(each) for each in data])


_BLANK: dict[type, JsonObject] = {
    StepOrder: vars(StepOrder(run="", key="", kind="", segment="", turn=0)),
    StepResult: vars(StepResult()),
}
