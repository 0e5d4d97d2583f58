"""The parts of a run's state: calls, attempts, tasks, sessions, cost; only the fold in `run_state.py` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal, NamedTuple, cast, get_args

from chargehand.values.key import TaskPath
from chargehand.values.plain_class import plain_class

TaskStatus = Literal["waiting", "ready", "running", "done", "failed", "escalated", "skipped"]
TASK_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
# The word for a task that was running when its run stopped. No event records it.
STOPPED = "stopped"
Data = dict[str, Any]


@plain_class(eq=True)
class Tally:
    """Tokens and money added up; `usd` is None, not 0, once any price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    # Tokens of calls without reported usage: the tokens reserved for them are counted.
    estimated_tokens: int = 0
    usd: float | None = 0.0
    calls: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.estimated_tokens

    def add(self, call: CallView, usd: float | None) -> None:
        self.calls += 1
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.cached_tokens += call.cached_tokens
        self._pay(usd)

    def estimate(self, tokens: int, usd: float | None) -> None:
        self.estimated_tokens += tokens
        self._pay(usd)

    def _pay(self, usd: float | None) -> None:
        self.usd = None if self.usd is None or usd is None else self.usd + usd


@plain_class(eq=True)
class CallView:
    """One model or tool call. `ok` is None while it is in flight."""

    key: str
    kind: Literal["model", "tool"]
    name: str
    started: float
    role: str = ""
    task: str | None = None
    attempt: int | None = None
    ended: float | None = None
    ok: bool | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    # Duration in seconds, without waits for budget, for a slot and between transport retries.
    seconds: float = 0.0
    waiting_s: float = 0.0
    # From when until when it waited to be sent again; without end while it waits.
    waits: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    # Whether its session left it behind: its time is part of `left_s` of its task.
    is_left: bool = False
    error: str | None = None
    # More than 1: the same bytes were sent again after a crash or a transport error.
    sends: int = 1
    estimated: bool = False
    # The last progress line of a program.
    says: str = ""
    reused: bool = False

    def seconds_until(self, at: float) -> float:
        """The seconds of a call in flight, without its waits to be sent again."""
        waited = sum(max(min(at, end) - since, 0.0) for since, end in self.waits)
        return max(at - self.started - waited, 0.0)


@plain_class(eq=True)
class AttemptView:
    """One attempt at a task as the events show it."""

    number: int
    worker: str
    started: float
    model: str = ""
    tier: str = ""
    ended: float | None = None
    status: str = "running"
    error: str | None = None


@plain_class(eq=True)
class TaskState:
    """One task as the events show it so far."""

    id: str
    worker: str = ""
    instruction: str = ""
    success_criterion: str = ""
    depends_on: tuple[str, ...] = ()
    status: TaskStatus = "waiting"
    attempts: list[AttemptView] = field(default_factory=list[AttemptView])
    calls: list[CallView] = field(default_factory=list[CallView])
    usage: Tally = field(default_factory=Tally)
    ready: float | None = None
    started: float | None = None
    ended: float | None = None
    # Outcome JSON, once the task has ended.
    outcome: Data | None = None
    # Every call and every answer of a person so far came from an earlier run's record.
    reused: bool = False
    # What was counted before it was last reopened: tokens, US dollars and seconds. The outcome does not count it.
    before: tuple[int, float | None, float] = (0, 0.0, 0.0)
    # How many calls were made before that.
    calls_before: int = 0
    # How many orders about it are on the record, whatever their verdict.
    orders: int = 0
    # The seconds, since then, of calls that sessions left behind when they ended. The outcome does not count them.
    left_s: float = 0.0
    # The number of the last event about it.
    seq: int = 0

    @property
    def counted(self) -> Data:
        """The usage in the outcome of an ended task, without the usage of attempts before a restart."""
        usage: Any = self.outcome.get("usage") if self.outcome is not None else None
        return cast(Data, usage) if isinstance(usage, dict) else {}

    @property
    def tokens(self) -> int:
        usage = self.counted
        is_counted = "output_tokens" in usage
        now = int(usage["input_tokens"]) + int(usage["output_tokens"]) if is_counted else self.usage.tokens
        return self.before[0] + now

    @property
    def usd(self) -> float | None:
        now: float | None = self.counted.get("usd", self.usage.usd)
        return None if now is None or self.before[1] is None else self.before[1] + now

    @property
    def tries(self) -> int:
        """All attempts, those before it was reopened included, as in its outcome."""
        made = len(self.attempts)
        return made if self.outcome is None else int(self.outcome.get("attempts", made))

    def worked_seconds(self, now: float | None = None) -> float:
        """The seconds that the calls of a task took; calls in flight count up to `now`.

        The time between sessions and waits for a slot, for budget, for another try or for a person do not count. A call
        that was broken off counts until then. For an ended task it is `usage.seconds` of its outcome in the report.
        """
        seconds = self.counted.get("seconds")
        since = _seconds_of(self.calls[self.calls_before :], now) if seconds is None else float(seconds)
        return self.before[2] + self.left_s + since

    def attempt_seconds(self, attempt: AttemptView) -> float | None:
        """The seconds that the calls of an attempt took, counted as those of the task; None while it runs.

        For a task of one attempt it is the time of the task. An attempt of a team has no calls of its own.
        """
        if attempt.ended is None:
            return None
        if len(self.attempts) == 1 and "seconds" in self.counted:
            return self.worked_seconds()
        calls = [call for call in self.calls if call.attempt == attempt.number]
        return _seconds_of(calls, attempt.ended) if calls else max(attempt.ended - attempt.started, 0.0)

    @property
    def is_calling(self) -> bool:
        """Whether one of its calls is in flight."""
        return any(call.ok is None for call in reversed(self.calls))

    @property
    def depth(self) -> int:
        """How many teams the task is nested in, without the team of the run."""
        return len(TaskPath.parse(self.id).around)

    @property
    def label(self) -> str:
        """The id within its own team, for displays that also show the tasks around it."""
        if not self.depth:
            return self.id
        _, attempt, name = self.id.rsplit("/", 2)
        return f"{'' if attempt == '1' else f'{attempt}/'}{name.removeprefix('.')}"


def _seconds_of(calls: Iterable[CallView], now: float | None) -> float:
    """The seconds that calls took; calls in flight count up to `now`."""
    passed, until = 0.0, 0.0
    for call in (call for call in calls if not call.is_left):
        end = call.ended if call.ended is not None else call.started if now is None else max(now, call.started)
        begin = end - (call.seconds if call.ended is not None else call.seconds_until(end))
        passed += max(end - max(begin, until), 0.0)  # of calls at the same time, each moment counts once
        until = max(until, end)
    return passed


def arrange_tasks(tasks: Iterable[TaskState]) -> list[TaskState]:
    """The same tasks in the same order, but tasks of a nested team directly after the task of that team."""
    known = {task.id: task for task in tasks}
    below: dict[str, list[TaskState]] = {}
    for task in known.values():
        around = next((id for id, _ in TaskPath.parse(task.id).around if id in known), "")
        below.setdefault(around, []).append(task)
    found: list[TaskState] = []
    todo = below.get("", [])[::-1]
    while todo:
        found.append(todo.pop())
        todo += below.get(found[-1].id, [])[::-1]
    return found


@plain_class(eq=True)
class SessionView:
    """The time in which one process ran the run; `ended` is the time of its last event so far."""

    epoch: int
    started: float
    ended: float
    resumed: bool = False


class Decision(NamedTuple):
    at: float
    key: str
    decision: str
    value: Any
    reason: str
    task: str | None


# What readers of recorded data use: a field of another type counts as missing.


def text_in(data: Data, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def count_in(data: Data, name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, int | float) else 0


def tokens_in(usage: Data) -> int:
    """Input and output tokens together."""
    return count_in(usage, "input_tokens") + count_in(usage, "output_tokens")


def number_in(data: Data, name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else None


def part_in(data: Data, name: str) -> Data:
    value = data.get(name)
    return cast(Data, value) if isinstance(value, dict) else {}


def parts_in(data: Data, name: str) -> list[Data]:
    value = data.get(name)
    return [cast(Data, v) for v in cast(list[Any], value) if isinstance(v, dict)] if isinstance(value, list) else []


def texts_in(data: Data, name: str) -> tuple[str, ...]:
    value = data.get(name)
    return tuple(str(v) for v in cast(list[Any], value)) if isinstance(value, list | tuple) else ()


def fault_line(error: Data | None) -> str | None:
    """A Fault as one line."""
    return f"{text_in(error, 'kind')}: {text_in(error, 'message')}" if error else None
