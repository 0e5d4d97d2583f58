"""The record in memory: the twin of the SQLite journal, for tests and for runs that are never resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chargehand.errors import OwnershipLost, StorageError
from chargehand.events import Event, read_body
from chargehand.record.event_json import pack, unpack
from chargehand.record.journal import check_order, next_epoch


@dataclass
class MemoryStore:
    """Data that outlives a handle, like a file: open it again to resume the run."""

    # Events without their data, and the data as packed bytes: no caller can change the record through a value it holds.
    events: list[tuple[Event, bytes]] = field(default_factory=list[tuple[Event, bytes]])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    epoch: int = 0


class MemoryJournal:
    """A handle on a memory store; the newest one opened owns it. `append` never waits."""

    def __init__(self, store: MemoryStore | None = None, token: int | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self.epoch = self.store.epoch = next_epoch(self.store.epoch, token)

    @classmethod
    def read(cls, store: MemoryStore) -> MemoryJournal:
        """A handle that does not replace the owner and cannot write."""
        reader = cls.__new__(cls)
        reader.store = store
        reader.epoch = 0
        return reader

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        if self.epoch == 0:
            raise StorageError("The record was opened for reading; open it as its owner to write.")
        if self.epoch != self.store.epoch:
            raise OwnershipLost
        check_order(events, len(self.store.events))
        packed = [(event.with_data({}), pack(event.data)) for event in events]
        self.store.events += packed
        for name, body in blobs.items():
            self.store.blobs.setdefault(name, body)

    def events(self, after: int = 0) -> Iterator[Event]:
        for event, body in self.store.events[after:]:
            yield event._replace(body=read_body(event.kind, unpack(body)))

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        return {name: self.store.blobs[name] for name in hashes if name in self.store.blobs}

    def close(self) -> None:
        """Nothing is held."""
