"""The time limits of a task -> the time left, and the name of the limit that ended it, also during a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import field

from chargehand.engine.port import StepEngine
from chargehand.errors import ErrorKind
from chargehand.events import Decided
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task

Left = tuple[float | None, ErrorKind]


@plain_class()
class TimeLimits:
    """One per task. Its own time is on its own clock, which is stopped while it waits for a person."""

    engine: StepEngine
    task: str
    # When the run's workers stop, on the run's clock.
    stop_at: float | None
    # When the task's own time is over, all attempts and parts together.
    ends_at: float | None = None

    def limit(self, seconds: float | None) -> None:
        """Let the task's own time run from its first attempt, in whichever session that was."""
        if seconds is None:
            return
        start = self.engine.record.began(self.task)
        ends_at = (self.engine.clock.now(self.task) if start is None else start) + seconds
        self.ends_at = ends_at if self.ends_at is None else min(self.ends_at, ends_at)

    def time_left(self) -> Left:
        """The seconds left for the whole task, and the name of the limit that ends it."""
        own = None if self.ends_at is None else max(self.ends_at - self.engine.clock.now(self.task), 0.0)
        runs = self.engine.clock.until_deadline()
        if self.stop_at is not None:
            left = max(self.stop_at - self.engine.clock.now(), 0.0)
            runs = left if runs is None else min(runs, left)
        if runs is None:
            return own, "timeout"
        return (runs, "deadline") if own is None or runs <= own else (own, "timeout")

    def of_parts(self) -> float | None:
        """When the time of the tasks that replace this one is over, on their clocks, which begin at the run's time."""
        waited = self.engine.clock.now() - self.engine.clock.now(self.task)
        return None if self.ends_at is None else self.ends_at + waited

    def countdown(self) -> Countdown:
        return Countdown(self.engine, self.task, self.time_left)

    def countdown_of(self, task: Task, number: int) -> Countdown:
        """The same for one attempt; an earlier session may have used some of its time."""
        if task.timeout_s is None:
            return self.countdown()
        start = self.engine.record.began(task.id, number)
        began = self.engine.clock.now(task.id) if start is None else start
        ends_at = began + task.timeout_s

        def time_left() -> Left:
            whole, kind = self.time_left()
            seconds = max(ends_at - self.engine.clock.now(task.id), 0.0)
            return (seconds, "timeout") if whole is None or seconds < whole else (whole, kind)

        return Countdown(self.engine, task.id, time_left)

    def endless(self) -> Countdown:
        """For a person's attempt, which has no time limit."""
        return Countdown(self.engine, self.task, lambda: (None, "timeout"))


@plain_class()
class Countdown:
    """A timeout, open with `async with`, and what it was set to last: by that it is named when it fires."""

    engine: StepEngine
    task: str
    measure: Callable[[], Left]
    seconds: float | None = None
    kind: ErrorKind = "timeout"
    _timeout: asyncio.Timeout | None = None
    _open: AbstractAsyncContextManager[asyncio.Timeout] = field(init=False)

    async def __aenter__(self) -> None:
        self._open = self.engine.clock.timeout(self.task, self._time_left)
        self._timeout = await self._open.__aenter__()

    async def __aexit__(self, *exc: object) -> bool | None:
        opened = self._open
        # Each refers to the other: without this, they and what they refer to stay until the collector comes.
        del self._open
        return await opened.__aexit__(*exc)  # type: ignore[arg-type]

    @property
    def expired(self) -> bool:
        return self._timeout is not None and self._timeout.expired()

    def record_expiry(self, task: Task, number: int, where: str) -> str:
        """Why the task is not done, when it has fired.

        It is recorded in the same batch as the end of the attempt, so a resumed run never decides it again.
        """
        reason = self._why(task)
        self.engine.emit(
            Decided(
                key=f"{task.id}/{number}/{where}", decision=self.kind, value={"after_s": self.seconds}, reason=reason
            ),
            task=task.id,
            attempt=number,
        )
        return reason

    def _why(self, task: Task) -> str:
        if self.kind == "cancelled":
            return stopped_by_person(task.id, self.engine.orders.stop_reason(task.id))
        if self.kind == "timeout":
            return f"{task.worker} was stopped at its time of {round(self.seconds or 0, 1):g} s."
        return f"{task.worker} was stopped at the run's deadline."

    def stop(self) -> None:
        """Let it fire now."""
        if self._timeout is not None:
            self._timeout.reschedule(0.0)

    def _time_left(self) -> float | None:
        if self.engine.orders.stop_reason(self.task) is None:
            self.seconds, self.kind = self.measure()
        else:
            self.seconds, self.kind = 0.0, "cancelled"
        return self.seconds


def stopped_by_person(task: str, reason: str | None) -> str:
    """Why a task that a person stopped is not done."""
    return f"A person stopped {task}: {reason}" if reason else f"A person stopped {task}."
