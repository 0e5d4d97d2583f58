"""What users get to test their teams: virtual time, a scripted model, a record in memory.

report, seconds = run_virtual(Supervisor(team, model=ScriptedModel([...])).run("..."))
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from chargehand.journal.memory import MemoryJournal, MemoryStore
from chargehand.models.scripted import ScriptedModel

__all__ = ["Deadlock", "MemoryJournal", "MemoryStore", "ScriptedModel", "VirtualLoop", "run_virtual"]

T = TypeVar("T")


class Deadlock(AssertionError):
    """Nothing is left to run and no timer is set: the code under test would hang forever."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting, moves the clock to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which an hour of sleeping takes no time and is the same every time.

    For code without threads, sockets and subprocesses: with nothing else to run the clock jumps to the next timer.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtual(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """The result of `work` and the virtual seconds it took. Tasks left behind are an error."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        left = asyncio.all_tasks(runner.get_loop())
        assert not left, f"tasks left behind: {left}"
        return result, runner.get_loop().time()
