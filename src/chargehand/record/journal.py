"""The append-only record of a run: events in order and content-addressed blobs. The only record there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from chargehand.values.event import Event


class Journal(Protocol):
    """One run's record.

    1. `append` is atomic: all of its events and blobs are durable when it returns, or none is.
    2. `seq` grows by one from 1; appending anything else is an error and changes nothing.
    3. Once another owner has opened the run, `append` raises OwnershipLost and changes nothing.
    4. A blob is found under the hash it was stored with; storing it again changes nothing.
    5. Data comes back as JSON has it: tuples as lists, nan and infinities as null, lone surrogates as U+FFFD.

    `chargehand.record.journal_checks` checks these on any journal.
    """

    @property
    def epoch(self) -> int:
        """Which owner this is: 1 for the first, then one more each time the run is opened to write; 0 for readers."""
        ...

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None: ...

    def events(self, after: int = 0) -> Iterator[Event]:
        """Committed events in order, those with a larger `seq` than `after`."""
        ...

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Those of the blobs that are there, by hash."""
        ...

    def close(self) -> None:
        """Give the run up to the next owner. Closing again does nothing."""
        ...


def check_order(events: Sequence[Event], last: int) -> None:
    """Raise ValueError unless the events follow `last` without a hole."""
    for expected, event in enumerate(events, last + 1):
        if event.seq != expected:
            raise ValueError(f"event {event.kind} has seq {event.seq} where {expected} comes next; nothing was written")
