"""The clock of the engine port inside a workflow: its time and chance -> the seconds of the run, and timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import TypeVar

from chargehand.values.key import TaskPath

T = TypeVar("T")


class WorkflowClock:
    """The seconds of a run, without those in which it was paused or all of it waited for people."""

    def __init__(self, now: Callable[[], float], chance: Callable[[], float], began: float) -> None:
        self._time, self._chance = now, chance
        self._began = began
        # Since when the clock is stopped.
        self._frozen: float | None = None
        # Task -> seconds it waited, and since when it does.
        self._waited: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._timeouts: dict[str, list[_Timeout]] = {}

    def now(self, task: str | None = None) -> float:
        running = (self._time() if self._frozen is None else self._frozen) - self._began
        return running if task is None else running - self.waiting_time(task)

    def waiting_time(self, task: str) -> float:
        since = self._since.get(task)
        return self._waited.get(task, 0.0) + (0.0 if since is None else self.now() - since)

    @property
    def frozen(self) -> bool:
        return self._frozen is not None

    def freeze(self) -> None:
        if self._frozen is None:
            self._frozen = self._time()

    def thaw(self) -> None:
        if self._frozen is not None:
            self._began += self._time() - self._frozen
            self._frozen = None

    @contextmanager
    def wait(self, task: str) -> Generator[None]:
        """Inside, the task waits for a person or a provider."""
        self._since[task] = self.now()
        try:
            yield
        finally:
            self._waited[task] = self.waiting_time(task)
            del self._since[task]

    def until_deadline(self) -> float | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def compute(self, work: Callable[[], T]) -> T:
        return work()

    def timeout(self, task: str, left: Callable[[], float | None]) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return _StoppableTimeout(self._timeouts, task, left)

    @contextmanager
    def gate(self, gate: Callable[[], Awaitable[None]]) -> Generator[None]:
        yield

    def chance(self) -> float:
        return self._chance()

    def fire(self, task: str) -> None:
        """Let the timeouts of a task that was stopped, and those of its parts, fire now."""
        for each, timeouts in self._timeouts.items():
            if task in TaskPath.parse(each).wholes:
                for timeout, left in timeouts:
                    if not timeout.expired():
                        left()  # it says from now on why it has fired
                        timeout.reschedule(asyncio.get_running_loop().time())


# A timeout under way, and the function that says how long it has left.
_Timeout = tuple[asyncio.Timeout, Callable[[], float | None]]


class _StoppableTimeout:
    """A timeout that an order can fire; without a limit it does not start a timer."""

    def __init__(self, timeouts: dict[str, list[_Timeout]], task: str, left: Callable[[], float | None]) -> None:
        self._timeouts = timeouts
        self._task = task
        self._left = left
        self._timeout: _Timeout

    async def __aenter__(self) -> asyncio.Timeout:
        timeout = asyncio.timeout(self._left())
        self._timeout = timeout, self._left
        await timeout.__aenter__()
        self._timeouts.setdefault(self._task, []).append(self._timeout)
        return timeout

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._timeouts[self._task].remove(self._timeout)
        return await self._timeout[0].__aexit__(kind, error, trace)
