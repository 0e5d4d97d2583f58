"""Events -> for how many seconds a process has run the run, whether its clock is stopped now, and how long calls
without a result took.

Its clock is stopped while no process has it, while it is paused and no call is in flight, and while it only waits for
a person. All readers of a record count its time here; a session counts it on its own loop (`engine/local/clock.py`).

A call without a result is in no outcome, or only in that of an attempt that is made again. Only its time at the
provider or in the tool counts, not the time in which it waits to be sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

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
                self._calls.setdefault(whole_task(event.task), {})[key] = event.task
                self._waiting.discard(key)
            case ModelReplied(key=key) | ToolReturned(key=key) | Reused(key=key):
                self._return(whole_task(event.task), [key])
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
            case Decided(decision="retry_sent", key=key):
                self._sent_later.discard(key.rpartition("/retry/")[0])
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
        whole = whole_task(task)
        self._return(whole, [key for key, each in self._calls.get(whole, {}).items() if is_within(each, task)])
        if ended:
            self._questions = {key: each for key, each in self._questions.items() if not is_within(each, task)}

    def _return(self, whole: str, keys: Iterable[str]) -> None:
        calls = self._calls.get(whole, {})
        for key in keys:
            calls.pop(key, None)
            self._waiting.discard(key)
        if not calls:
            self._calls.pop(whole, None)

    def _end_calls(self) -> None:
        self._calls, self._waiting, self._sent_later = {}, set(), set()


class _Flight(NamedTuple):
    """A call that has not returned."""

    task: str | None
    # Since when it is at the provider; None while it waits to be sent again, or after it was broken off.
    since: float | None
    # The time before that.
    seconds: float = 0.0

    def until(self, at: float) -> float:
        return self.seconds + (0.0 if self.since is None else max(at - self.since, 0.0))

    def halt(self, at: float) -> _Flight:
        return self._replace(since=None, seconds=self.until(at))


class BrokenCalls:
    """A fold over the events of one run. Of calls of one task at the same time, only the longest counts."""

    def __init__(self) -> None:
        # By key, the seconds of calls that a session left behind when it ended, added up over sessions.
        self.left: dict[str, float] = {}
        # By key, the seconds of calls that were broken off as their attempt ended: the outcome of the attempt has them.
        self.cut: dict[str, float] = {}
        # The keys of the calls that the last event left behind, and the seconds that it added to each.
        self.fresh: dict[str, float] = {}
        # Task of the plan, or "" for the supervisor -> its calls that have not returned, by key.
        self._flights: dict[str, dict[str, _Flight]] = {}
        self._last = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokenCalls) and vars(self) == vars(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- it changes

    def apply(self, event: Event) -> None:
        if self.fresh:
            self.fresh = {}
        match event.body:
            case ModelCalled(key=key) | ToolCalled(key=key):
                self._flights.setdefault(whole_task(event.task), {})[key] = _Flight(event.task, event.at)
            case ModelReplied(key=key, result={"cut": True}):
                self._halt(event, key)
            case ModelReplied(key=key) | ToolReturned(key=key) | Reused(key=key):
                self._drop(whole_task(event.task), [key])
            case Decided(decision="transport_retry", key=key):
                self._halt(event, key.rpartition("/retry/")[0])
            case Decided(decision="retry_sent", key=key):
                key = key.rpartition("/retry/")[0]
                if (flight := self._find(event, key)) is not None:
                    self._flights[whole_task(event.task)][key] = flight._replace(since=event.at)
            case Decided(decision="wait", key=key) if not key.startswith("@wait/"):
                self._halt(event, key.rpartition("/wait/")[0])
            case AttemptEnded() | TaskEnded():
                self._cut(event.task or "", event.at)
            case RunStarted():
                self._leave(self._last)
            case RunEnded(parked_s=parked):
                self._leave(event.at - (parked or 0.0))
            case _:
                pass
        if not event.outside:
            self._last = event.at

    def left_behind(self) -> dict[str, float]:
        """By key, the seconds of calls that sessions left behind, if the last one ended with the last event."""
        found = dict(self.left)
        for calls in self._flights.values():
            for key, seconds in _longest(calls, self._last).items():
                found[key] = found.get(key, 0.0) + seconds
        return found

    def _find(self, event: Event, key: str) -> _Flight | None:
        return self._flights.get(whole_task(event.task), {}).get(key)

    def _halt(self, event: Event, key: str) -> None:
        if (flight := self._find(event, key)) is not None:
            self._flights[whole_task(event.task)][key] = flight.halt(event.at)

    def _cut(self, task: str, at: float) -> None:
        whole = whole_task(task)
        calls = {key: each for key, each in self._flights.get(whole, {}).items() if is_within(each.task, task)}
        if calls:
            self.cut |= _longest(calls, at)
            self._drop(whole, list(calls))

    def _leave(self, at: float) -> None:
        flights, self._flights = self._flights, {}
        for calls in flights.values():
            self.fresh |= _longest(calls, at)
        for key, seconds in self.fresh.items():
            self.left[key] = self.left.get(key, 0.0) + seconds

    def _drop(self, whole: str, keys: list[str]) -> None:
        calls = self._flights.get(whole, {})
        for key in keys:
            calls.pop(key, None)
        if not calls:
            self._flights.pop(whole, None)


def _longest(calls: dict[str, _Flight], at: float) -> dict[str, float]:
    """Key -> the seconds of the call; 0 for calls of a task that another call of the task took longer than."""
    found = {key: each.until(at) for key, each in calls.items()}
    most: dict[str | None, str] = {}
    for key, each in calls.items():
        longest = most.setdefault(each.task, key)
        if found[key] > found[longest]:
            most[each.task] = key
    return {key: seconds if most[calls[key].task] == key else 0.0 for key, seconds in found.items()}


def whole_task(task: str | None) -> str:
    """The task of the run's own plan that a task is a part of, or is nested in; "" for the supervisor."""
    return (task or "").partition("/")[0].partition(".s.")[0]


def is_within(task: str | None, whole: str) -> bool:
    return task is not None and (task == whole or task.startswith((f"{whole}/", f"{whole}.s.")))


def _texts(value: object) -> list[str]:
    return [each for each in cast("list[Any]", value) if isinstance(each, str)] if isinstance(value, list) else []
