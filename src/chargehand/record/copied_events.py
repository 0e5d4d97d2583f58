"""The events of a run -> the events that a fork of it begins with: finished work is taken over and costs nothing again.

For kept tasks, everything that a resume reads is copied: attempts, decisions, people's answers, parts, nested teams,
and each committed result as `reused`. For other tasks, only the calls of tools marked `once` are copied: they have
already happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    Decided,
    Event,
    EventBody,
    Extended,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    PlanRejected,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    TaskEnded,
    TaskReady,
    ToolCalled,
    ToolReturned,
)
from chargehand.events.body import Data
from chargehand.record.replay import Replay

_OF_PLAN = ("@plan", "@route")


class Copied(NamedTuple):
    """An event without run, number and time: the run it is copied to sets them."""

    body: EventBody
    task: str | None
    attempt: int | None


class Kept(NamedTuple):
    """What a fork keeps from its source run."""

    # Tasks of the plan, by id.
    tasks: Collection[str]
    # Whether its plan is kept, and how many rounds of added tasks are kept.
    plan: bool
    rounds: int


def copy_events(events: Iterable[Event], state: Replay, kept: Kept) -> Iterator[Copied]:
    """`state` is the fold of the events."""
    for event in events:
        if (body := _copy(event, state, kept)) is not None:
            yield Copied(body, event.task, event.attempt)


def root_task(path: str) -> str:
    """The task of the run's own plan that a task is a part of, or is nested in."""
    return path.partition("/")[0].partition(".s.")[0]


def round_of(task: str) -> int:
    """In which round a task was added to the plan; 0 for a task of the approved plan."""
    head, dot, _ = task.partition(".")
    return int(head[1:]) if dot and head[:1] == "x" and head[1:].isdigit() else 0


def _copy(event: Event, state: Replay, kept: Kept) -> EventBody | None:
    """The event as it is in the fork; None if the fork does not have it."""
    body = event.body
    within: str | None = getattr(body, "within", None)
    task = within or event.task
    if task is None:
        return _copy_of_supervisor(body, state, kept)
    if root_task(task) not in kept.tasks:
        return _copy_once(body, state)
    match body:
        case TaskReady() | AttemptStarted() | Decided() | PlanDrafted() | Extended() | QuestionAsked():
            return body
        case PlanApproved():
            return _with(body, usage=_unpaid(body.usage or {}))
        case AttemptEnded(outcome=dict(outcome)):
            return _with(body, outcome=outcome | {"usage": _unpaid(outcome["usage"])})
        case AttemptEnded():
            return body
        case TaskEnded(outcome=outcome) if event.task in state.ended:
            return _with(body, outcome=outcome | {"usage": _unpaid(outcome["usage"])})
        case QuestionAnswered():
            return QuestionAnswered(key=body.key, answer=body.answer, by=state.run)
        case ToolCalled(key=key) if key in state.intents:
            return body  # it may have happened
        case ModelReplied() | ToolReturned() | Reused():
            return _reuse(body, state)
        case _:
            return None


def _copy_of_supervisor(body: EventBody, state: Replay, kept: Kept) -> EventBody | None:
    match body:
        case PlanDrafted() | PlanRejected() if kept.plan:
            return body
        case PlanApproved() if kept.plan:
            return _with(body, usage=_unpaid(body.usage or {}))
        case Extended(round=number) if (number or 1) <= kept.rounds:
            return body
        case Decided(key=key) if _keeps(key, kept) and key in state.decisions:
            # Tasks that were added for a draft exist before the answer that is written now.
            key = f"{key.removesuffix('gaps')}whether" if key.endswith("/gaps") else key
            return _with(body, key=key)
        case ModelReplied(key=key) | Reused(key=key) if _keeps(key, kept):
            return _reuse(body, state)
        case _:
            return None


def _keeps(key: str, kept: Kept) -> bool:
    if key.startswith("@extend/"):
        number = key.split("/")[1]
        return number.isdigit() and int(number) <= kept.rounds
    return kept.plan and key.startswith(_OF_PLAN)


def _copy_once(body: EventBody, state: Replay) -> EventBody | None:
    """What a tool marked `once` did, or may have done, in a task that runs again: the call is not repeated."""
    match body:
        case ToolCalled(key=key, effect="once") if key in state.intents:
            return body
        case ToolReturned(key=key) | Reused(key=key) if "/once/" in key:
            return _reuse(body, state)
        case _:
            return None


def _reuse(body: ModelReplied | ToolReturned | Reused, state: Replay) -> Reused | None:
    """A committed result, paid for in the source run."""
    if state.committed.get(body.key) != body:
        return None  # cut off, or made again since
    result = {name: value for name, value in body.result.items() if name not in ("seconds", "waiting_s", "estimated")}
    reply: Data | None = result.get("reply")
    if reply is not None:
        result |= {"reply": reply | {"usage": {}}, "usd": 0.0, "sent": False}
    return Reused(key=body.key, fingerprint=body.fingerprint, result=result, source=state.run)


def _unpaid(usage: Data) -> Data:
    return {"usd": 0.0, "models": usage.get("models", [])}


def _with(body: Any, **fields: Any) -> Any:
    return type(body)(**{**vars(body), **fields})
