"""The committed events of watched runs. Each event is read and written as text once for all watchers.

A watcher holds only the number of the last event sent to it. A feed keeps the newest events as text; a watcher that is
further behind reads the record itself. So a watcher that never reads costs no memory, and no event is lost or sent
twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from chargehand.errors import ChargehandError
from chargehand.server.draft_texts import RunDrafts
from chargehand.server.frames import event_frame
from chargehand.server.reading_threads import ReadingThreads
from chargehand.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from chargehand.events import Event
    from chargehand.record.run_source import RunSource

# Interval between checks of a record: well below the 300 ms within which an event must be visible.
POLL_S = 0.1
# A record that seems unchanged is still read at every tenth check.
POLLS_UNREAD = 10
# Events read at once, so that a long record of one run does not delay the events of others.
PAGE = 500
# Bytes of text that a feed keeps.
KEPT_BYTES = 8 * 2**20


class Frames(NamedTuple):
    """Events as text to be sent, up to the one numbered `last`."""

    text: bytes
    last: int


@dataclass(slots=True, eq=False)
class Feed:
    """One run that is watched. Only `Feeds` writes it."""

    run: str
    # The number of the last event before the kept ones, and of the last of them.
    before: int
    last: int
    kept: deque[bytes] = field(default_factory=deque[bytes])
    size: int = 0
    watchers: int = 0
    # The change mark of the record at the last read, and the number of checks since.
    mark: object = None
    unread_polls: int = 0
    # Set once the record cannot be read any more.
    broken: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, frames: list[bytes]) -> None:
        self.kept.extend(frames)
        self.last += len(frames)
        self.size += sum(map(len, frames))
        while self.size > KEPT_BYTES:
            self.size -= len(self.kept.popleft())
            self.before += 1
        self.wake()

    def wake(self) -> None:
        """Let all watchers look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, seq: int) -> Frames | None:
        """The kept events after `seq`; None when they are not all kept."""
        if seq < self.before:
            return None
        frames = list(islice(self.kept, seq - self.before, seq - self.before + PAGE))
        return Frames(b"".join(frames), seq + len(frames))


class Feeds:
    """The feeds of all runs that are watched. Belongs to one event loop; records are read in threads."""

    def __init__(self, source: RunSource, redactor: Redactor, reading: ReadingThreads) -> None:
        self._source = source
        self._redactor = redactor
        self._reading = reading
        self._feeds: dict[str, Feed] = {}
        self._poller: asyncio.Task[None] | None = None
        # Drafts of the runs that this server carries out.
        self._drafts: dict[str, RunDrafts] = {}
        self.closed = False
        self.watchers = 0
        self.sent = 0

    @asynccontextmanager
    async def watch(self, run: str, newest: int) -> AsyncGenerator[Feed]:
        """The feed of a run while it is watched. A new feed begins after the event `newest`."""
        feed = self._feeds.get(run)
        if feed is None or feed.broken:
            feed = self._feeds[run] = Feed(run, newest, newest)
        feed.watchers += 1
        self.watchers += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(), name="event feeds")
        try:
            yield feed
        finally:
            self.watchers -= 1
            feed.watchers -= 1
            if not feed.watchers and self._feeds.get(run) is feed:
                del self._feeds[run]

    def on_commit(self, events: Sequence[Event]) -> None:
        """Take events that a run of this server has committed: they need not be read."""
        feed = self._feeds.get(events[0].run) if events else None
        if feed is not None and feed.last == events[0].seq - 1:
            feed.add([event_frame(event, self._redactor) for event in events])

    @contextmanager
    def writing(self, run: str) -> Generator[RunDrafts]:
        """Takes the drafts of a run while it is carried out here."""
        drafts = self._drafts[run] = RunDrafts(self._redactor)
        try:
            yield drafts
        finally:
            del self._drafts[run]

    def drafts(self, run: str) -> RunDrafts | None:
        return self._drafts.get(run)

    async def read(self, feed: Feed, after: int) -> Frames:
        """The next events after `after`, from the feed or, if it does not have them all, from the record."""
        if (frames := feed.after(after)) is None:
            made = await self._reading.run(self._read_frames, feed.run, after)
            frames = Frames(b"".join(made), after + len(made))
        self.sent += frames.last - after
        return frames

    async def last_event(self, run: str) -> int:
        """The number of the last committed event of a run."""
        return await self._reading.run(self._source.last_event, run)

    async def close(self) -> None:
        """End all streams: the server stops."""
        self.closed = True
        for feed in self._feeds.values():
            feed.wake()
        if (poller := self._poller) is not None:
            poller.cancel()
            await asyncio.gather(poller, return_exceptions=True)

    async def _poll(self) -> None:
        try:
            while self._feeds and not self.closed:
                feeds = [feed for feed in self._feeds.values() if not feed.broken]
                positions = {feed: feed.last for feed in feeds}
                for feed, frames in (await self._reading.run(self._read_all, positions)).items():
                    if frames is None:
                        feed.broken = True
                        feed.wake()
                    elif frames and feed.last == positions[feed]:
                        feed.add(frames)
                self._wake_readers_of_drafts()
                await asyncio.sleep(POLL_S)
        finally:
            self._poller = None

    def _wake_readers_of_drafts(self) -> None:
        """Called once per check, because a text grows word by word."""
        for run, drafts in self._drafts.items():
            if drafts.changed and run in self._feeds:
                drafts.changed = False
                self._feeds[run].wake()

    def _read_all(self, positions: dict[Feed, int]) -> dict[Feed, list[bytes] | None]:
        """The new events of each feed whose record has changed; None for a record that was removed or damaged."""
        found: dict[Feed, list[bytes] | None] = {}
        for feed, last in positions.items():
            mark = self._source.change_mark(feed.run)
            feed.unread_polls += 1
            # Two changes within one tick of the file system's clock may look like one.
            if mark == feed.mark and feed.unread_polls < POLLS_UNREAD:
                continue
            try:
                found[feed] = frames = self._read_frames(feed.run, last)
            except ChargehandError:
                found[feed] = None  # its streams end, and the next request gets the reason
                continue
            feed.mark, feed.unread_polls = None if len(frames) == PAGE else mark, 0
        return found

    def _read_frames(self, run: str, after: int) -> list[bytes]:
        return [event_frame(event, self._redactor) for event in islice(_closing(self._source.events(run, after)), PAGE)]


def _closing(events: Iterator[Event]) -> Iterator[Event]:
    """The same events. The record is closed at the end of the iteration, not at garbage collection."""
    with closing(events):  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        yield from events
