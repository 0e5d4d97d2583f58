"""Runs that this server carries out: a limited number at once, the others in a queue that is fair between callers.

A run is `wanted` from the moment its caller has its id until it ends, is cancelled or paused. Wanted runs that no
process owns are continued when a server starts, and when a question that they waited for is answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from chargehand.errors import ChargehandError, UsageError
from chargehand.limits.fair_queue import FairQueue
from chargehand.record.run_source import RunSource
from chargehand.record.sqlite_journal import SqliteJournal
from chargehand.runs.record_in_thread import open_record
from chargehand.runs.session import Session
from chargehand.server.event_feed import Feeds
from chargehand.server.log_lines import LogLines
from chargehand.server.metrics import Metrics
from chargehand.server.notify import Notifier
from chargehand.server.reading_threads import ReadingThreads
from chargehand.server.refusals import Refusal
from chargehand.server.wanted_runs import Wanted, WantedRuns
from chargehand.values.report import Report
from chargehand.values.status_words import FINISHED

# Runs that may wait for their turn.
MOST_QUEUED = 1_000
# Seconds to park running runs when the server stops. A session itself drains for 5 s.
PARK_S = 8.0

# Begins or continues a run; takes `record` and `on_session`, as Supervisor.run does. Returns a Report, or an object
# that has one.
Begin: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(slots=True, eq=False)
class _Entry:
    """One run under way or in the queue."""

    wanted: Wanted
    task: asyncio.Task[None] | None = None
    session: Session | None = None
    # Resolved once the run is on disk and its caller can get its id; fails with the reason if it cannot begin.
    promised: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StartedRuns:
    """Belongs to one event loop."""

    def __init__(
        self,
        source: RunSource,
        reading: ReadingThreads,
        feeds: Feeds,
        log: LogLines,
        metrics: Metrics,
        notifier: Notifier,
        max_runs: int,
        wanted: WantedRuns,
    ) -> None:
        self.wanted = wanted
        self._source = source
        self._reading = reading
        self._feeds = feeds
        self._log = log
        self._metrics = metrics
        self._notifier = notifier
        self._free = max_runs
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self._entries: dict[str, _Entry] = {}
        self._stopping = False
        # Continues a run; set before the first one begins.
        self.continue_run: Callable[[Wanted], Awaitable[None]] | None = None
        # Runs that wait for a provider.
        self._later: set[asyncio.Task[None]] = set()

    @property
    def queued(self) -> int:
        return sum(1 for _ in self._queue)

    @property
    def under_way(self) -> int:
        return len(self._entries) - self.queued

    async def begin(self, wanted: Wanted, begin: Begin, open: Callable[[], SqliteJournal]) -> str:
        """Carry out a run. Returns its id once it is on disk and wanted; errors are raised before that."""
        if self._stopping:
            raise Refusal(503, "The server stops: send it again when it runs.")
        if self.queued >= MOST_QUEUED:
            raise Refusal(429, f"{MOST_QUEUED:,} runs wait for their turn already: send it again later.")
        entry = _Entry(wanted)
        record = partial(self._open, entry, open)
        entry.task = asyncio.create_task(self._carry_out(entry, partial(begin, record=record)), name=wanted.run)
        return await asyncio.shield(entry.promised)

    async def cancel_queued(self, run: str) -> None:
        """Take a run out of the queue."""
        entry = self._entries.get(run)
        if entry is not None and entry.session is None and entry.task is not None:
            entry.task.cancel()
            await asyncio.gather(entry.task, return_exceptions=True)

    async def park(self) -> None:
        """Stop all runs so that the next server continues them."""
        self._stopping = True
        for task in self._later:
            task.cancel()
        entries = list(self._entries.values())
        for entry in entries:
            if entry.session is not None:
                entry.session.interrupt()
            elif entry.task is not None:
                entry.task.cancel()
        tasks = [entry.task for entry in entries if entry.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=PARK_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # -- one run -----------------------------------------------------------------------------------------------------

    async def _carry_out(self, entry: _Entry, begin: Begin) -> None:
        run = entry.wanted.run
        try:
            with self._feeds.writing(run) as drafts:
                keep_session = partial(setattr, entry, "session")
                result = await begin(on_session=keep_session, on_event=drafts.on_event, on_draft=drafts.on_draft)
            report = cast("Report", result) if isinstance(result, Report) else result.report
            await self._note_end(entry, report)
        except ChargehandError as error:
            if not entry.promised.done():
                entry.promised.set_exception(error)
                return
            self._log.write("run broken off", run=run, error=str(error))
            if isinstance(error, UsageError):
                await self._reading.run(self.wanted.clear, run)  # it would fail again
        except asyncio.CancelledError:
            if not entry.promised.done():
                entry.promised.cancel()
        except Exception as error:  # noqa: BLE001 -- recorded: logged, or given to the caller
            if not entry.promised.done():
                entry.promised.set_exception(error)
                return
            self._log.write("run broken off", run=run, error=f"{type(error).__name__}: {error}")
        finally:
            if self._entries.get(run) is entry:
                del self._entries[run]

    async def _note_end(self, entry: _Entry, report: Report) -> None:
        run, status = report.run, report.status
        if not entry.promised.done():
            entry.promised.set_result(run)  # it had already ended: there was nothing to carry out
            return
        if status in FINISHED or status in ("cancelled", "paused"):
            await self._reading.run(self.wanted.clear, run)
        self._metrics.ended[status] += 1
        self._log.write("run", run=run, status=status)
        until, asks = await self._reading.run(self._waits_for, run) if status == "waiting" else (None, False)
        if until is not None:
            self._continue_at(entry.wanted, until)
        if status in FINISHED or status == "cancelled" or asks:
            self._notifier.notify(run, status)

    def _waits_for(self, run: str) -> tuple[float | None, bool]:
        """When the provider that a run waits for may be asked again, and whether the run asks a person."""
        state = self._source.state(run)
        return state.waits.for_provider and state.waits.for_provider[0], bool(state.open_questions())

    def _continue_at(self, wanted: Wanted, until: float) -> None:
        """Continue a run that waits for a provider when its wait is over. Until then it does not take up a place."""
        task = asyncio.create_task(self._continue_later(wanted, until), name=f"continue {wanted.run}")
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _continue_later(self, wanted: Wanted, until: float) -> None:
        await asyncio.sleep(max(until - time.time(), 0.0))
        assert self.continue_run is not None
        try:
            await self.continue_run(wanted)
        except Exception as error:  # noqa: BLE001 -- recorded: logged
            self._log.write("run not continued", run=wanted.run, error=str(error))

    @asynccontextmanager
    async def _open(self, entry: _Entry, open: Callable[[], SqliteJournal]) -> AsyncGenerator[SqliteJournal]:
        """The record of a run when its turn comes. From here on the caller has its id."""
        async with open_record(open) as journal:
            journal.on_commit = self._feeds.on_commit
            await self._reading.run(self.wanted.mark, entry.wanted)
            self._entries[journal.run] = entry
            entry.promised.set_result(journal.run)
            self._log.write("run", run=journal.run, status="begins" if self._free > 0 else "queued")
            async with self._turn(entry.wanted.caller):
                yield journal

    @asynccontextmanager
    async def _turn(self, caller: str) -> AsyncGenerator[None]:
        """A place among the runs that are carried out at once."""
        if self._free > 0:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.push(caller, 0, turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_on()
                raise
        try:
            yield
        finally:
            self._give_on()

    def _give_on(self) -> None:
        """Give the place of an ended run to the next run in the queue."""
        while self._queue.head() is not None:
            turn = self._queue.serve()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def is_here(self, run: str) -> bool:
        return run in self._entries
