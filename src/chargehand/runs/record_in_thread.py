"""A record is opened and closed in a thread: both wait for the disk, and many runs share one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar, cast

from chargehand.record.home import new_run_id
from chargehand.record.journal import Journal
from chargehand.record.sqlite_journal import SqliteJournal

T = TypeVar("T")

# Separate from the loop's own threads, which tools may keep busy for minutes.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="records")


@asynccontextmanager
async def open_record(make: Callable[[], SqliteJournal]) -> AsyncGenerator[SqliteJournal]:
    """The record that `make` opens, closed at the end of the block however it ends."""
    opening = asyncio.ensure_future(in_thread(make))
    try:
        journal = await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The thread still opens it, and it must not stay locked.
        (opened,) = await asyncio.gather(opening, return_exceptions=True)
        if isinstance(opened, SqliteJournal):
            await in_thread(opened.close)
        raise
    try:
        yield journal
    finally:
        await asyncio.shield(in_thread(journal.close))


def run_of(journal: Journal) -> str:
    """The id of the run that a journal is for: its own, or a new one, as for a journal in memory."""
    return cast("str | None", getattr(journal, "run", None)) or new_run_id(time.time())


class _RemoteRecord:
    """Stands for the record of a run that is kept elsewhere: it has a name, and nothing is held."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.on_commit: object = None

    def close(self) -> None:
        """Nothing is held."""


def remote_record(run: str) -> SqliteJournal:
    """For code that opens the record of a run before it begins: that of a run on Temporal is opened by its steps."""
    return cast("SqliteJournal", _RemoteRecord(run))


async def in_thread(work: Callable[[], T]) -> T:
    """The result of work that waits for the disk."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
