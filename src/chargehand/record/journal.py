"""The append-only record of a run: events in order and content-addressed blobs. There is no other record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from chargehand.errors import OwnershipLost
from chargehand.events import Event


class Journal(Protocol):
    """One run's record.

    1. `append` is atomic: all of its events and blobs are durable when it returns, or none is.
    2. `seq` grows by one from 1; appending anything else is an error and changes nothing.
    3. Once another owner has opened the run, `append` raises OwnershipLost and changes nothing.
    4. A blob is found under the hash it was stored with; storing it again changes nothing.
    5. Data comes back as JSON has it: tuples as lists, nan and infinities as null, lone surrogates as U+FFFD.
    6. A token given on opening becomes the epoch. A token that is not larger than the epoch before may not open the
    run, so that an owner that was replaced while it was frozen never takes the run back. Without a token, the epoch is
    the next number.

    `chargehand.record.journal_checks` checks these on any journal.
    """

    @property
    def epoch(self) -> int:
        """The number of this owner: it starts at 1 and grows each time the run is opened for writing; 0 for readers."""
        ...

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None: ...

    def events(self, after: int = 0) -> Iterator[Event]:
        """Committed events in order, those with a larger `seq` than `after`."""
        ...

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """The blobs that exist, by hash."""
        ...

    def close(self) -> None:
        """Give the run up to the next owner. Closing again does nothing."""
        ...


def next_epoch(last: int, token: int | None) -> int:
    """The epoch of an owner that opens a run with this token; OwnershipLost where a later owner has opened it."""
    if token is None:
        return last + 1
    if token <= last:
        raise OwnershipLost(f"Owner {last} has opened the run: owner {token} came before it and may not open it again.")
    return token


def check_order(events: Sequence[Event], last: int) -> None:
    """Raise ValueError unless the events follow `last` without a hole."""
    for expected, event in enumerate(events, last + 1):
        if event.seq != expected:
            raise ValueError(f"event {event.kind} has seq {event.seq} where {expected} comes next; nothing was written")
