"""Several pieces of work side by side, begun in the given order and, when they are cut short, cancelled in it.

A TaskGroup alone cancels its tasks in the order of a set, so equal runs would leave different records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from itertools import chain, islice
from typing import Any

# Of many tasks, this many start in one turn of the loop: the first calls are under way while the rest start.
STARTED_AT_ONCE = 64

_Work = Coroutine[Any, Any, None]


async def run_parallel(works: Iterable[_Work], *, alone_inline: bool = True) -> None:
    """Returns when all are done; when one fails the others are cancelled, and an ExceptionGroup is raised.

    A piece of work that is the only one is awaited here, without a task of its own, unless `alone_inline` is False.
    """
    left = iter(works)
    first = list(islice(left, 2))
    if alone_inline and len(first) < 2:
        for work in first:
            await work
        return
    side_by_side = _SideBySide()
    try:
        async with asyncio.TaskGroup() as group:
            try:
                for number, work in enumerate(chain(first, left), 1):
                    side_by_side.start(group, work)
                    if not number % STARTED_AT_ONCE:
                        await asyncio.sleep(0)
                await side_by_side.wait()
            except asyncio.CancelledError:
                side_by_side.cancel()
                raise
    except BaseException:
        side_by_side.close()
        raise


class _SideBySide:
    """The tasks under way, in the order in which they were started."""

    def __init__(self) -> None:
        self._running: dict[_Work, asyncio.Task[None]] = {}
        self._over = asyncio.Event()

    def start(self, group: asyncio.TaskGroup, work: _Work) -> None:
        self._running[work] = group.create_task(self._run(work))

    async def wait(self) -> None:
        if self._running:
            await self._over.wait()

    def cancel(self) -> None:
        for task in self._running.values():
            if not task.cancelling():
                task.cancel()

    def close(self) -> None:
        """Close what was cancelled before it began: nobody awaits it any more."""
        for work in self._running:
            work.close()

    async def _run(self, work: _Work) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException:
            self.cancel()
            raise
        finally:
            del self._running[work]
            if not self._running:
                self._over.set()
