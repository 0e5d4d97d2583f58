"""The questions of one run and their answers, and how long the run and its tasks stood still for people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any

from chargehand.record.replay import Replay
from chargehand.values.base import JSON
from chargehand.values.effect import Question


class Questions:
    """By key, this session's and those before it. A key is asked once and answered once."""

    def __init__(self, replay: Replay) -> None:
        self._asked = {key: Question.model_validate(asked) for key, asked in replay.questions.items()}
        self.answers: dict[str, JSON] = dict(replay.answers)

    def __contains__(self, key: str) -> bool:
        return key in self._asked

    def __getitem__(self, key: str) -> Question:
        return self._asked[key]

    def add(self, key: str, question: Question) -> Question:
        """The question under an id no other of the run has; what was recorded keeps the id it has."""
        taken = {asked.id for asked in self._asked.values()}
        ids = (question.id if number == 1 else f"{question.id}-{number}" for number in count(1))
        free = next(id for id in ids if id not in taken)
        self._asked[key] = question.model_copy(update={"id": free})
        return self._asked[key]

    def borrow(self, key: str, question: Question, earlier: Replay) -> bool:
        """Whether the run this one repeats has a person's work on the very same question; it is not asked twice."""
        asked: dict[str, Any] = earlier.questions.get(key) or {}
        same = question.kind == "task" and asked.get("prompt") == question.prompt and key in earlier.answers
        if not same or key in self:
            return False
        self.add(key, question)
        self.answers[key] = earlier.answers[key]
        return True


class Standstill:
    """Adds up the seconds in which nothing but a person was waited for: the run's clock leaves them out."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._seconds = 0.0
        self._told = 0.0

    def update(self, still: bool, now: float) -> None:
        if still and self._since is None:
            self._since = now
        elif not still and self._since is not None:
            self._seconds += now - self._since
            self._since = None

    def seconds(self, now: float) -> float:
        return self._seconds + (0.0 if self._since is None else now - self._since)

    def untold(self, now: float) -> float:
        """The seconds since this was last called: what the next answer puts on the record."""
        total = self.seconds(now)
        fresh, self._told = total - self._told, total
        return fresh


# A timeout under way, and what tells how long it has left.
_Timeout = tuple[asyncio.Timeout, Callable[[], float | None]]


class Pauses:
    """Each task's waits for people, on the run's clock. While one lasts, the task's timeouts stand still."""

    def __init__(self, before: Mapping[str, float], clock: Callable[[], float]) -> None:
        # Task -> seconds of the waits that are over.
        self._over = dict(before)
        self._clock = clock
        # Task -> how many questions of it are open, and since when any was.
        self._open: dict[str, tuple[int, float]] = {}
        # Task -> its timeouts under way.
        self._timeouts: dict[str, list[_Timeout]] = {}

    def seconds(self, task: str) -> float:
        over, (_, since) = self._over.get(task, 0.0), self._open.get(task, (0, self._clock()))
        return over + self._clock() - since

    @contextmanager
    def pause(self, task: str | None) -> Generator[None]:
        """Inside, the task waits for a person; the supervisor itself has no timeouts meanwhile."""
        if task is None:
            yield
            return
        number, since = self._open.get(task, (0, self._clock()))
        self._open[task] = number + 1, since
        self._reschedule(task)
        try:
            yield
        finally:
            number, since = self._open.pop(task)
            if number > 1:
                self._open[task] = number - 1, since
            else:
                self._over[task] = self._over.get(task, 0.0) + self._clock() - since
                self._reschedule(task)

    def mind(self, task: str, timeout: _Timeout) -> None:
        self._timeouts.setdefault(task, []).append(timeout)

    def leave(self, task: str, timeout: _Timeout) -> None:
        self._timeouts[task].remove(timeout)

    def _reschedule(self, task: str) -> None:
        for timeout, left in self._timeouts.get(task, ()):
            if timeout.expired():
                continue
            seconds = None if task in self._open else left()
            timeout.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)


class Minded:
    """A timeout that stands still while its task waits for a person. Open it with `async with`."""

    __slots__ = ("_left", "_pauses", "_task", "_timeout")

    def __init__(self, pauses: Pauses, task: str, left: Callable[[], float | None]) -> None:
        self._pauses = pauses
        self._task = task
        self._left = left
        self._timeout: _Timeout

    async def __aenter__(self) -> asyncio.Timeout:
        timeout = asyncio.timeout(self._left())
        self._timeout = timeout, self._left
        await timeout.__aenter__()
        self._pauses.mind(self._task, self._timeout)
        return timeout

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._pauses.leave(self._task, self._timeout)
        return await self._timeout[0].__aexit__(kind, error, trace)
