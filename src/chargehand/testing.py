"""What users get to test their teams: a team from its folder, a scripted model, virtual time, a record in memory.

report, seconds = run_virtual(Supervisor(team, model=ScriptedModel([...])).run("..."))
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from chargehand.models.scripted import ScriptedModel
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import Team, load

__all__ = ["Deadlock", "MemoryJournal", "MemoryStore", "ScriptedModel", "VirtualLoop", "load_team", "run_virtual"]

T = TypeVar("T")


# How long, in real seconds, a thread may keep the loop waiting when nothing else is left to run.
LONGEST_REAL_WAIT_S = 10.0


class _TrustAll(TrustRegistry):
    def is_trusted(self, path: str | Path) -> bool:
        return True


def load_team(folder: str | Path) -> Team:
    """The team in a folder, with the tools of its tools.py: to run a test of a team is to trust the team's code."""
    return load(Path(folder), _TrustAll(home=""))


class Deadlock(AssertionError):
    """Nothing is left to run and no timer is set: the code under test would hang forever; says what waits."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting, moves the clock to the next timer; only for a thread's result it waits for real."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0
        # Says what waits; set by the loop.
        self.describe_waits: Callable[[], str] = str

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:  # something can run
            return ready
        if self.threads or timeout is None:
            ready = super().select(LONGEST_REAL_WAIT_S)
            if not ready:
                raise Deadlock(self.describe_waits())
            return ready
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which an hour of sleeping takes no time and is the same every time.

    With nothing else to run the clock jumps to the next timer. It is stopped while work handed to an executor, such
    as writing the record, is under way.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._jumping.describe_waits = self._describe_waits

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        self._jumping.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _describe_waits(self) -> str:
        tasks = sorted(f"{task.get_name()} in {_find_wait(task.get_coro())}" for task in asyncio.all_tasks(self))
        threads = f"{self._jumping.threads} threads under way, " if self._jumping.threads else ""
        return f"Nothing can run and no timer is set: {threads}these tasks wait: {'; '.join(tasks) or 'none'}."

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._jumping.threads -= 1


def _find_wait(work: Any) -> str:
    """The coroutines that a task is in, the innermost last."""
    names: list[str] = []
    while hasattr(work, "cr_await"):
        names.append(work.__qualname__)
        work = work.cr_await
    return " > ".join(names)


def run_virtual(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """The result of `work` and the virtual seconds it took. Tasks left behind are an error."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        left = asyncio.all_tasks(runner.get_loop())
        assert not left, f"tasks left behind: {left}"
        return result, runner.get_loop().time()
