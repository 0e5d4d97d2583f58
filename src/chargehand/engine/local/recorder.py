"""Events as they happen -> batches on the journal: once per loop turn, only when someone waits, one in flight.

So 500 concurrent workers share a few commits, and events always stay in the order in which they were emitted. Listeners
get an event when it is emitted, a question when it is on the record: an answer that they give at once must find it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from chargehand.engine.engine_session import Listener
from chargehand.errors import ChargehandError, StorageError
from chargehand.events import Event, EventBody, QuestionAsked, Warned
from chargehand.record.journal import Journal
from chargehand.values.message import Message


class Site(NamedTuple):
    """Where in a run an effect happens: its key, and the task and attempt in it."""

    key: str
    task: str | None
    attempt: int | None


class Recorder:
    """The only writer of a run's journal in this process. Open it with `async with`: leaving writes what is left."""

    def __init__(
        self, run: str, journal: Journal, *, seq: int, clock: Callable[[], float], listeners: tuple[Listener, ...]
    ) -> None:
        self._run = run
        self._journal = journal
        self._seq = seq
        self._clock = clock
        self._listeners = listeners
        # A question that is not on the record yet, and the events after it: listeners get them in order.
        self._untold: deque[Event] = deque()
        # The `seq` of the last event on the record.
        self._written = seq
        self._events: list[Event] = []
        self._blobs: dict[str, bytes] = {}
        # Digests of messages already handed over in this session.
        self._stored: set[str] = set()
        self._waiting: list[asyncio.Future[None]] = []
        # Those whose batch is being written.
        self._served: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        # Why nothing can be written any more; raised for every caller that waits.
        self._broken: ChargehandError | None = None
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Recorder:
        self._writer = asyncio.create_task(self._write(), name="journal writer")
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._writer is not None
        try:
            if self._broken is None:
                await self.commit()
        finally:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)

    def emit(self, body: EventBody, task: str | None = None, attempt: int | None = None) -> None:
        self._seq += 1
        event = Event(self._run, self._seq, self._clock(), task, attempt, body)
        self._events.append(event)
        if self._listeners:
            self._untold.append(event)
            self._tell_in_order()

    def emit_at(self, site: Site, body: EventBody) -> None:
        """An event of one effect."""
        self.emit(body, site.task, site.attempt)

    def _tell_in_order(self) -> None:
        while self._untold:
            event = self._untold[0]
            if isinstance(event.body, QuestionAsked) and event.seq > self._written:
                return
            self._tell(self._untold.popleft())

    def _tell(self, event: Event) -> None:
        broken: list[tuple[Listener, Exception]] = []
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 -- recorded below: who watches a run must not be able to end it
                broken.append((listener, error))
        if broken:
            self._leave_out(broken)

    def _leave_out(self, broken: list[tuple[Listener, Exception]]) -> None:
        """Continue without listeners that raised; the others get a warning, after all of them got the event itself."""
        self._listeners = tuple(each for each in self._listeners if all(each is not gone for gone, _ in broken))
        for _, error in broken:
            message = f"A listener raised {type(error).__name__}: {error}. The run continues without it."
            self.emit(Warned(message=message))

    def store(self, message: Message) -> None:
        """Keep a message under its digest; events name it by that, so a record grows linearly with steps."""
        if message.digest not in self._stored:
            self._stored.add(message.digest)
            self._blobs[message.digest] = message.packed

    @property
    def is_behind(self) -> bool:
        """Whether events wait to be written, such as the end of a task that no other task needs."""
        return bool(self._events)

    def write_soon(self) -> None:
        """Write the emitted events although nothing waits for them."""
        self._wanted.set()

    async def commit(self) -> None:
        """Return once everything emitted so far is on disk."""
        if self._broken is not None:
            raise self._broken
        if self._writer is not None and self._writer.done():
            raise asyncio.CancelledError  # the loop shuts down and has cancelled the writer before us
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wanted.set()
        await done

    async def _write(self) -> None:
        try:
            await self._write_batches()
        except asyncio.CancelledError:
            for done in (*self._served, *self._waiting):
                done.cancel()  # nothing may wait for a writer that has ended
            raise

    async def _write_batches(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            events, self._events = self._events, []
            blobs, self._blobs = self._blobs, {}
            self._served, self._waiting = self._waiting, []
            try:
                if events:
                    await self._journal.append(events, blobs)
            except Exception as error:  # noqa: BLE001 -- raised for every caller that waits: nothing may hang on a broken record
                self._broken = error if isinstance(error, ChargehandError) else StorageError(_unwritable(error))
                for done in (*self._served, *self._waiting):
                    if not done.done():
                        done.set_exception(self._broken)
                return
            if events:
                self._written = events[-1].seq
                self._tell_in_order()
            for done in self._served:
                if not done.done():
                    done.set_result(None)
            # What was written is not kept until the next batch, which may be long after.
            del events, blobs


def _unwritable(error: Exception) -> str:
    return f"The record could not be written: {type(error).__name__}: {error}. Resume the run when that is repaired."
