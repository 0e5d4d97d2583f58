"""The clock of one run over all its sessions. It leaves out the time in which the run waited only for people."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TypeVar

from chargehand.engine.local.activity import Activity
from chargehand.record.replay import Replay

T = TypeVar("T")

# What effects that are not on the record wait for, in this task and those it starts.
_GATE: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("gate", default=None)


class LocalClock:
    """Time of the loop this session runs on, so that tests run on virtual time; `random` is injected."""

    def __init__(
        self,
        replay: Replay,
        activity: Activity,
        wall_clock: Callable[[], float],
        chance: random.Random | None,
        deadline_at: float | None = None,
    ) -> None:
        self._deadline_at = deadline_at
        self.random = chance or random.Random()
        self._activity = activity
        self._wall_clock = wall_clock
        self._before_s = replay.owned_s
        self._pauses = _Pauses(replay.waits.by_task(replay.owned_s), self.now)
        # Set when the session opens: its loop, and the loop's and the wall's time then.
        self._loop: asyncio.AbstractEventLoop
        self._began = self._began_wall = 0.0

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began, self._began_wall = self._loop.time(), self._wall_clock()

    def now(self, task: str | None = None) -> float:
        clock = self._loop.time()
        running = self._before_s + clock - self._began - self._activity.still_seconds(clock)
        return running if task is None else running - self._pauses.seconds(task)

    def wall(self) -> float:
        """The time of day, as events have it."""
        return self._began_wall + self._loop.time() - self._began

    def until_deadline(self) -> float | None:
        return None if self._deadline_at is None else max(self._deadline_at - self.wall(), 0.0)

    async def sleep(self, seconds: float) -> None:
        with self._activity:
            await asyncio.sleep(seconds)

    async def compute(self, work: Callable[[], T]) -> T:
        with self._activity:
            return await asyncio.to_thread(work)

    def timeout(self, task: str, left: Callable[[], float | None]) -> _PausingTimeout:
        return _PausingTimeout(self._pauses, task, left)

    @contextmanager
    def gate(self, gate: Callable[[], Awaitable[None]]) -> Generator[None]:
        token = _GATE.set(gate)
        try:
            yield
        finally:
            _GATE.reset(token)

    def gate_here(self) -> Callable[[], Awaitable[None]] | None:
        """The gate that an effect begun here waits for."""
        return _GATE.get()

    def chance(self) -> float:
        return self.random.random()

    def freeze(self) -> None:
        """Let no timeout fire until `thaw`."""
        self._pauses.freeze()

    def thaw(self) -> None:
        self._pauses.thaw()

    def fire(self, task: str) -> None:
        """Let the timeouts of a task, and those of its parts, fire now."""
        self._pauses.fire(task)

    @contextmanager
    def pause(self, tasks: Iterable[str]) -> Generator[None]:
        """Inside, these tasks wait for a person."""
        with ExitStack() as pauses:
            for task in tasks:
                pauses.enter_context(self._pauses.pause(task))
            yield


# A timeout under way, and the function that says how long it has left.
_Timeout = tuple[asyncio.Timeout, Callable[[], float | None]]


class _Pauses:
    """Each task's waits for people, on the run's clock. While one lasts, the task's timeouts are stopped."""

    def __init__(self, before: Mapping[str, float], clock: Callable[[], float]) -> None:
        # Task -> seconds of the waits that are over.
        self._over = dict(before)
        self._clock = clock
        # Task -> how many questions of it are open, and since when any was.
        self._open: dict[str, tuple[int, float]] = {}
        # Task -> its timeouts under way.
        self._timeouts: dict[str, list[_Timeout]] = {}
        # While the run is paused no timeout fires.
        self._frozen = False

    def seconds(self, task: str) -> float:
        over, (_, since) = self._over.get(task, 0.0), self._open.get(task, (0, self._clock()))
        return over + self._clock() - since

    @contextmanager
    def pause(self, task: str) -> Generator[None]:
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

    def is_still(self, task: str) -> bool:
        return self._frozen or task in self._open

    def freeze(self) -> None:
        self._frozen = True
        for task in self._timeouts:
            self._reschedule(task)

    def thaw(self) -> None:
        self._frozen = False
        for task in self._timeouts:
            self._reschedule(task)

    def fire(self, task: str) -> None:
        for each, timeouts in self._timeouts.items():
            if each == task or each.startswith(f"{task}.s."):
                for timeout, left in timeouts:
                    if not timeout.expired():
                        left()  # it says from now on why it has fired
                        timeout.reschedule(asyncio.get_running_loop().time())

    def add(self, task: str, timeout: _Timeout) -> None:
        self._timeouts.setdefault(task, []).append(timeout)

    def remove(self, task: str, timeout: _Timeout) -> None:
        self._timeouts[task].remove(timeout)

    def _reschedule(self, task: str) -> None:
        for timeout, left in self._timeouts.get(task, ()):
            if timeout.expired():
                continue
            seconds = None if self._frozen else left()
            # A task that was stopped, or whose time was over before it asked, does not wait for the answer.
            if seconds is None or (seconds > 0 and task in self._open):
                timeout.reschedule(None)
            else:
                timeout.reschedule(asyncio.get_running_loop().time() + seconds)


class _PausingTimeout:
    """A timeout that is stopped while its task waits for a person. Open it with `async with`."""

    __slots__ = ("_left", "_pauses", "_task", "_timeout")

    def __init__(self, pauses: _Pauses, task: str, left: Callable[[], float | None]) -> None:
        self._pauses = pauses
        self._task = task
        self._left = left
        self._timeout: _Timeout

    async def __aenter__(self) -> asyncio.Timeout:
        left = self._left()
        timeout = asyncio.timeout(None if self._pauses.is_still(self._task) and left else left)
        self._timeout = timeout, self._left
        await timeout.__aenter__()
        self._pauses.add(self._task, self._timeout)
        return timeout

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._pauses.remove(self._task, self._timeout)
        return await self._timeout[0].__aexit__(kind, error, trace)
