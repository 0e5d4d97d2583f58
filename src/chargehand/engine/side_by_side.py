"""Several pieces of work side by side, begun in the given order and, when they are cut short, broken off in it.

A TaskGroup alone cancels its tasks in the order of a set, so that equal runs would leave different records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def abreast(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Returns when all are done; when one fails the others are broken off."""
    pieces = list(works)
    if len(pieces) == 1:
        await pieces[0]
        return
    over, left = asyncio.Event(), len(pieces)

    async def one(work: Coroutine[Any, Any, None]) -> None:
        nonlocal left
        try:
            await work
        finally:
            left -= 1
            if not left:
                over.set()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(work)) for work in pieces]
        try:
            if tasks:
                await over.wait()
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
