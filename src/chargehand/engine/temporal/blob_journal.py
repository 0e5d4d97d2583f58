"""The record of one segment of a run as objects in a store: one object a commit, numbered, each put where none is.

    runs/RUN/segments/t3/00000001    a fence: owner 1 opens the segment
    runs/RUN/segments/t3/00000002    events and messages, by owner 1
    runs/RUN/segments/t3/00000003    a fence: owner 2 opens it; owner 1 finds this name taken and is out

A segment is what one task of a run records over all its attempts, or the supervisor for its plan or its answer.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import OwnershipLost, StorageError
from chargehand.events import Event, read_body
from chargehand.record.event_json import pack, unpack
from chargehand.record.journal import check_order, next_epoch
from chargehand.record.storage_errors import damage_error

_LENGTH = struct.Struct(">I")


class Commit(NamedTuple):
    """What one object holds: who wrote it, events without their data, the data as bytes, and messages by hash."""

    epoch: int
    segment: str
    # Which handle wrote it: an owner whose reply was lost knows its own commit again.
    writer: str
    events: tuple[tuple[Event, bytes], ...] = ()
    blobs: Mapping[str, bytes] = {}

    def to_bytes(self) -> bytes:
        events = [[e.seq, e.at, e.task, e.attempt, e.kind, len(body)] for e, body in self.events]
        blobs = [[name, len(body)] for name, body in self.blobs.items()]
        head = {"epoch": self.epoch, "segment": self.segment, "writer": self.writer, "events": events, "blobs": blobs}
        packed = json.dumps(head, separators=(",", ":")).encode()
        bodies = (body for _, body in self.events)
        return b"".join((_LENGTH.pack(len(packed)), packed, *bodies, *self.blobs.values()))

    @staticmethod
    def from_bytes(run: str, whole: bytes) -> Commit:
        (length,) = _LENGTH.unpack_from(whole)
        at = _LENGTH.size + length
        head: dict[str, Any] = json.loads(whole[_LENGTH.size : at])
        events: list[tuple[Event, bytes]] = []
        for seq, when, task, attempt, kind, size in head["events"]:
            events.append((Event(run, seq, when, task, attempt, read_body(kind, {})), whole[at : at + size]))
            at += size
        blobs: dict[str, bytes] = {}
        for name, size in head["blobs"]:
            blobs[name] = whole[at : at + size]
            at += size
        return Commit(head["epoch"], head["segment"], head["writer"], tuple(events), blobs)


def read_commit(run: str, path: str, whole: bytes) -> Commit:
    """What an object of a record holds; RecordDamaged where it cannot be read."""
    try:
        return Commit.from_bytes(run, whole)
    except (ValueError, LookupError, TypeError, struct.error) as error:
        raise damage_error(path, type(error).__name__) from error


class BlobJournal:
    """A handle on one segment. The newest handle owns the segment. It keeps what it has read or written in memory."""

    def __init__(self, store: BlobStore, run: str, segment: str) -> None:
        self._store = store
        self.run = run
        self._segment = segment
        self._folder = store.path(run, "segments", segment)
        self._writer = uuid4().hex
        self._commits = 0
        self._last_epoch = 0
        self._events: list[tuple[Event, bytes]] = []
        self._blobs: dict[str, bytes] = {}
        self.epoch = 0
        # Why nothing can be written any more.
        self._lost: OwnershipLost | None = None

    @classmethod
    def open(cls, store: BlobStore, run: str, segment: str, token: int | None = None) -> BlobJournal:
        """Open it as its owner; OwnershipLost if an owner with a larger token has opened it."""
        journal = cls(store, run, segment)
        while True:
            journal.refresh()
            epoch = next_epoch(journal._last_epoch, token)
            if journal._put(Commit(epoch, segment, journal._writer)):
                journal.epoch = epoch
                return journal

    @classmethod
    def at(cls, store: BlobStore, run: str, folder: str) -> BlobJournal:
        """A reader of the segment in a folder. The folder's name may be hidden: the first commit has the real one."""
        journal = cls(store, run, "")
        journal._folder = folder
        journal.refresh()
        return journal

    @property
    def segment(self) -> str:
        return self._segment

    @classmethod
    def read(cls, store: BlobStore, run: str, segment: str) -> BlobJournal:
        """A handle that leaves the owner alone and cannot write."""
        journal = cls(store, run, segment)
        journal.refresh()
        return journal

    def refresh(self) -> None:
        """Read what was committed since."""
        last = self._name(self._commits) if self._commits else None
        found = self._store.list(self._folder, after=last)
        expected = [self._name(number) for number in range(self._commits + 1, self._commits + 1 + len(found))]
        if found != expected:
            missing = next(name for name in expected if name not in found)
            raise damage_error(missing, "an object of it is missing")
        for name, whole in zip(found, self._store.get_many(found), strict=True):
            self._take(read_commit(self.run, name, whole))

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        if self.epoch == 0:
            raise StorageError("The record was opened for reading; open it as its owner to write.")
        if self._lost is not None:
            raise self._lost
        check_order(events, len(self._events))
        packed = tuple((event.with_data({}), pack(event.data)) for event in events)
        fresh = {name: body for name, body in blobs.items() if name not in self._blobs}
        commit = Commit(self.epoch, self._segment, self._writer, packed, fresh)
        name, body = self._name(self._commits + 1), commit.to_bytes()
        if not await self._store.create_async(name, body):
            self._check_own(name, body)
        self._take(commit)

    def events(self, after: int = 0) -> Iterator[Event]:
        if self.epoch == 0:
            self.refresh()
        for event, body in self._events[after:]:
            yield event._replace(body=read_body(event.kind, unpack(body)))

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        return {name: self._blobs[name] for name in hashes if name in self._blobs}

    def close(self) -> None:
        """Nothing is held."""

    @property
    def last_seq(self) -> int:
        return len(self._events)

    def _put(self, commit: Commit) -> bool:
        if not self._store.create(self._name(self._commits + 1), commit.to_bytes()):
            return False
        self._take(commit)
        return True

    def _check_own(self, name: str, body: bytes) -> None:
        """OwnershipLost unless the object is this very commit, whose reply was lost: another owner wrote any other."""
        if self._store.get(name) != body:
            self._lost = OwnershipLost(f"Another worker has opened {self._segment} of run {self.run}.")
            raise self._lost

    def _take(self, commit: Commit) -> None:
        self._commits += 1
        self._last_epoch = commit.epoch
        self._segment = commit.segment
        self._events += commit.events
        for name, body in commit.blobs.items():
            self._blobs.setdefault(name, body)

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:08d}"
