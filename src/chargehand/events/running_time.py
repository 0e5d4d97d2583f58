"""Events -> for how many seconds a process has run the run, and whether its clock is stopped now.

Its clock is stopped while no process has it, while it is paused and no call is in flight, and while it only waits for
a person. All readers of a record count its time here; a session counts it on its own loop (`engine/local/clock.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from chargehand.events import Event
from chargehand.events.kinds import (
    AttemptEnded,
    Control,
    Decided,
    ModelCalled,
    ModelReplied,
    QuestionAnswered,
    QuestionAsked,
    Reused,
    RunEnded,
    RunStarted,
    TaskEnded,
    ToolCalled,
    ToolReturned,
)

# As in `values.status_words`, which is not known here.
_FINISHED = ("complete", "partial", "failed")


class RunningTime:
    """A fold over the events of one run. Only `apply` writes it, and `set` for a record that is a part of a run."""

    def __init__(self) -> None:
        # At the last event.
        self.seconds = 0.0
        # When the session began and when its last event was; None before the first event.
        self._began: float | None = None
        self._last = 0.0
        # The seconds of earlier sessions, less those in which this one did nothing.
        self._before = 0.0
        self._paused = False
        # Open questions -> the task that asks.
        self._questions: dict[str, str | None] = {}
        # Task of the plan, or "" for the supervisor -> its calls that have not returned, and the task of each.
        self._calls: dict[str, dict[str, str | None]] = {}
        # Calls that hold nothing: they wait for a provider for long, or, in a paused run, to be sent again.
        self._waiting: set[str] = set()
        self._sent_later: set[str] = set()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunningTime) and vars(self) == vars(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- it changes

    def apply(self, event: Event) -> None:
        body = event.body
        if self._began is None or isinstance(body, RunStarted):
            self._began, self._before = event.at, self.seconds
            self._end_calls()
        if isinstance(body, QuestionAnswered | Control | RunEnded):
            self._before -= body.parked_s or 0.0
        if not event.outside:
            self.seconds, self._last = self._before + max(0.0, event.at - self._began), event.at
        self._note(event)

    def set(self, seconds: float) -> None:
        self.seconds = seconds

    def until(self, now: float) -> float:
        """The seconds at a time of day, for a run that a process has."""
        return self.seconds if self.is_still else self.seconds + max(now - self._last, 0.0)

    @property
    def is_still(self) -> bool:
        """Whether the clock is stopped, for a run that a process has."""
        return self.calls_in_flight == 0 if self._paused else bool(self._questions) and not any(self._under_way())

    @property
    def calls_in_flight(self) -> int:
        """How many calls are in flight. While the run is paused, a call that was refused is not sent again."""
        return sum(not self._paused or key not in self._sent_later for key in self._under_way())

    def _under_way(self) -> Iterator[str]:
        return (key for calls in self._calls.values() for key in calls if key not in self._waiting)

    def _note(self, event: Event) -> None:
        match event.body:
            case ModelCalled(key=key) | ToolCalled(key=key):
                self._calls.setdefault(_whole(event.task), {})[key] = event.task
                self._waiting.discard(key)
            case ModelReplied(key=key) | ToolReturned(key=key) | Reused(key=key):
                self._return(_whole(event.task), [key])
            case AttemptEnded() | TaskEnded():
                self._end_task(event.task or "", ended=isinstance(event.body, TaskEnded))
            case QuestionAsked(key=key):
                self._questions[key] = event.task
            case QuestionAnswered(key=key):
                self._questions.pop(key, None)
            case Decided(decision="wait", key=key) if not key.startswith("@wait/"):
                self._waiting.add(key.rpartition("/wait/")[0])
            case Decided(decision="transport_retry", key=key) if self._paused:
                self._sent_later.add(key.rpartition("/retry/")[0])
            case Control(order="pause", verdict="accepted", value=value):
                self._paused, self._sent_later = True, set(_texts((value or {}).get("waiting")))
            case Control(order="continue", verdict="accepted"):
                self._paused = False
            case RunEnded(status=status):
                self._paused = self._paused and status not in _FINISHED
                self._end_calls()
            case _:
                pass

    def _end_task(self, task: str, *, ended: bool) -> None:
        """Calls of a task that were broken off do not return; questions of a task that has ended are closed."""
        whole = _whole(task)
        self._return(whole, [key for key, each in self._calls.get(whole, {}).items() if _is_within(each, task)])
        if ended:
            self._questions = {key: each for key, each in self._questions.items() if not _is_within(each, task)}

    def _return(self, whole: str, keys: Iterable[str]) -> None:
        calls = self._calls.get(whole, {})
        for key in keys:
            calls.pop(key, None)
            self._waiting.discard(key)
        if not calls:
            self._calls.pop(whole, None)

    def _end_calls(self) -> None:
        self._calls, self._waiting, self._sent_later = {}, set(), set()


def _whole(task: str | None) -> str:
    return (task or "").partition("/")[0].partition(".s.")[0]


def _is_within(task: str | None, whole: str) -> bool:
    return task is not None and (task == whole or task.startswith((f"{whole}/", f"{whole}.s.")))


def _texts(value: object) -> list[str]:
    return [each for each in cast("list[Any]", value) if isinstance(each, str)] if isinstance(value, list) else []
