"""The parts that the endpoints of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from chargehand.record.home import Home
from chargehand.record.run_source import RunSource
from chargehand.record.sqlite_journal import SqliteJournal
from chargehand.runs.record_in_thread import remote_record
from chargehand.runs.supervisor import Supervisor
from chargehand.server.access import Access
from chargehand.server.conversations import Conversations
from chargehand.server.event_feed import Feeds
from chargehand.server.kept_responses import KeptResponses
from chargehand.server.log_lines import LogLines
from chargehand.server.metrics import Metrics
from chargehand.server.notify import Notifier
from chargehand.server.offered_names import Offered
from chargehand.server.reading_threads import ReadingThreads
from chargehand.server.run_figures import RunFigures
from chargehand.server.run_list import RunList
from chargehand.server.run_states import RunStates
from chargehand.server.started_runs import StartedRuns
from chargehand.server.wanted_runs import UnmarkedRuns, WantedRuns
from chargehand.text.redaction import Redactor


@dataclass
class Server:
    """What the endpoints of one server share."""

    supervisor: Supervisor
    access: Access
    redactor: Redactor
    log: LogLines
    offered: Offered
    url: str = ""
    max_runs: int = 8
    notify: tuple[str, ...] = ()
    # Whether the next server continues the runs that this one leaves.
    survives: bool = True
    # The folder whose files a patch changes; None if callers may be on other machines.
    tree: Path | None = None
    # Called first when the server stops.
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    reading: ReadingThreads = field(default_factory=ReadingThreads)
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def home(self) -> Home:
        return self.supervisor.home

    @property
    def source(self) -> RunSource:
        return self.supervisor.source

    def new_record(self, run: str, earlier: str | None = None) -> Callable[[], SqliteJournal]:
        """Opens the record of a run that is about to begin: where the earlier run is, here or on other machines."""
        supervisor = self.supervisor
        there = supervisor.settings.engine == "temporal" if earlier is None else earlier in supervisor.remote_runs
        return partial(supervisor.open_remote, run, earlier) if there else partial(self.home.create, run)

    def known_record(self, run: str) -> Callable[[], SqliteJournal]:
        """Opens the record of a run that is to be continued."""
        return partial(self.home.open if self.home.has(run) else remote_record, run)

    @cached_property
    def run_list(self) -> RunList:
        return RunList(self.source)

    @cached_property
    def figures(self) -> RunFigures:
        return RunFigures(self.source)

    @cached_property
    def states(self) -> RunStates:
        return RunStates(self.source, self.redactor)

    @cached_property
    def feeds(self) -> Feeds:
        return Feeds(self.source, self.redactor, self.reading)

    @cached_property
    def started(self) -> StartedRuns:
        wanted = WantedRuns(self.home) if self.survives else UnmarkedRuns(self.home)
        shared = (self.source, self.reading, self.feeds, self.log, self.metrics, self.notifier)
        return StartedRuns(*shared, self.max_runs, wanted)

    @cached_property
    def notifier(self) -> Notifier:
        return Notifier(self.notify, self.url, self.log)

    @cached_property
    def conversations(self) -> Conversations:
        return Conversations()

    @cached_property
    def responses(self) -> KeptResponses:
        return KeptResponses(self.home)

    @cached_property
    def key_lock(self) -> asyncio.Lock:
        """Held while a run with an Idempotency-Key begins."""
        return asyncio.Lock()

    async def stop(self) -> None:
        """End the calls that wait for runs, park the runs, then end the streams of events."""
        for close in self.closing:
            await close()
        await self.started.park()
        await self.feeds.close()
        await self.notifier.close()
