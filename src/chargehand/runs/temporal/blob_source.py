"""Runs in a blob store, as readers see them: the segments of a record -> one sequence of events, and its fold.

Each segment grows on its own, perhaps on another machine. A reader of the run gives numbers to commits that have none
yet, in a new object that is put only where there is none. So all readers see the same numbers, and a number never
changes.

    runs/RUN/numbered/00000001    [[folder, first commit, last commit, events], ...]

Within one such object commits are ordered by time, those of a segment by their own order. Each segment begins with
`run_started` whenever a step opens it: of these the run's own are kept.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic_core import from_json, to_json

from chargehand.engine.temporal.blob_journal import BlobJournal, Commit, read_commit
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN
from chargehand.events import Event, PlanApproved, RunEnded, RunStarted, read_body
from chargehand.record.event_json import unpack
from chargehand.record.replay import Replay, replay
from chargehand.record.storage_errors import damage_error

_PLAN = "@plan"


class _Entry(NamedTuple):
    """Commits of one segment with consecutive numbers, and how many events of the run they hold."""

    folder: str
    first: int
    last: int
    events: int


class BlobRecord:
    """The events of one run. What was read is kept, so the next refresh reads only what is new. Thread-safe."""

    def __init__(self, store: BlobStore, run: str) -> None:
        self._store = store
        self._run = run
        self._segments = store.path(run, "segments")
        self._numbers = store.path(run, "numbered")
        self._plan, self._whole = (store.path(run, "segments", each).rpartition("/")[2] for each in (_PLAN, RUN))
        self._lock = threading.RLock()
        # How many objects with numbers were read, and all their entries.
        self._objects = 0
        self._entries: list[_Entry] = []
        # Folder -> commits that have numbers.
        self._known: dict[str, int] = {}
        self._last = 0
        # The events of the first `_read` entries, and where the messages are that they name.
        self._read = 0
        self._events: list[tuple[Event, bytes]] = []
        self._places: dict[str, str] = {}
        self._has_ended = False

    @property
    def has_ended(self) -> bool:
        """Whether the last execution of the run has put its end on the record, as of the last `refresh`."""
        with self._lock:
            self._read_events()
            return self._has_ended

    @property
    def last_seq(self) -> int:
        """The number of the last event as of the last `refresh`."""
        return self._last

    def refresh(self) -> None:
        """Find the commits; those without a number get one."""
        with self._lock:
            while True:
                self._read_numbers()
                fresh = self._commits_without_number()
                if not fresh:
                    return
                entries = self._number(fresh)
                if self._store.create(f"{self._numbers}/{self._objects + 1:08d}", to_json(entries)):
                    self._take(entries)
                    return

    def events(self, after: int = 0) -> Iterator[Event]:
        """Those with a larger number, as of the last `refresh`."""
        with self._lock:
            self._read_events()
            found = self._events[after:]
        for event, body in found:
            yield event._replace(body=read_body(event.kind, unpack(body)))

    def messages(self, hashes: Iterable[str]) -> dict[str, bytes]:
        with self._lock:
            self._read_events()
            places = {name: self._places[name] for name in hashes if name in self._places}
        paths = list(dict.fromkeys(places.values()))
        commits = dict(zip(paths, self._commits(paths), strict=True))
        return {name: commits[path].blobs[name] for name, path in places.items()}

    # -- numbers -----------------------------------------------------------------------------------------------------

    def _read_numbers(self) -> None:
        last = f"{self._numbers}/{self._objects:08d}"
        for path, whole in self._bodies(self._store.list(self._numbers, after=last if self._objects else None)):
            if path != f"{self._numbers}/{self._objects + 1:08d}":
                raise damage_error(path, "the object before it is missing")
            self._take([_Entry(*each) for each in from_json(whole)])

    def _take(self, entries: list[_Entry]) -> None:
        self._objects += 1
        for each in entries:
            self._entries.append(each)
            self._known[each.folder] = each.last
            self._last += each.events

    def _commits_without_number(self) -> dict[str, list[str]]:
        """Folder -> the paths of commits, in their order."""
        found: dict[str, list[str]] = {}
        for path in self._store.list(self._segments):
            folder, _, number = path.removeprefix(f"{self._segments}/").rpartition("/")
            if int(number) > self._known.get(folder, 0):
                found.setdefault(folder, []).append(path)
        return {folder: self._without_holes(folder, paths) for folder, paths in found.items()}

    def _without_holes(self, folder: str, paths: list[str]) -> list[str]:
        """A listing made while commits were added may lack a commit before the last."""
        first, last = self._known.get(folder, 0) + 1, int(paths[-1].rpartition("/")[2])
        return [f"{self._segments}/{folder}/{number:08d}" for number in range(first, last + 1)]

    def _number(self, fresh: dict[str, list[str]]) -> list[_Entry]:
        streams = [self._with_order(folder, paths) for folder, paths in sorted(fresh.items())]
        entries: list[_Entry] = []
        numbers = {folder: self._known.get(folder, 0) for folder in fresh}
        for _, folder, commit in heapq.merge(*streams, key=lambda each: each[:2]):
            numbers[folder] = number = numbers[folder] + 1
            count = len(self._own_events(folder, commit))
            before = entries[-1] if entries else None
            if before is not None and before.folder == folder:
                entries[-1] = before._replace(last=number, events=before.events + count)
            else:
                entries.append(_Entry(folder, number, number, count))
        return entries

    def _with_order(self, folder: str, paths: list[str]) -> Iterator[tuple[float, str, Commit]]:
        """Commits with their sort keys. A clock that was set back does not put a commit before its predecessors."""
        latest = 0.0
        # Nothing comes before the plan, whatever the clocks of machines say.
        planning = folder == self._plan and self._known.get(folder, 0) == 0
        for commit in self._commits(paths):
            if commit.events and not planning:
                latest = max(latest, commit.events[0][0].at)
            planning = planning and all(event.kind != PlanApproved.kind for event, _ in commit.events)
            yield latest, folder, commit

    # -- events ------------------------------------------------------------------------------------------------------

    def _own_events(self, folder: str, commit: Commit) -> list[tuple[Event, bytes]]:
        """All events but the openings of segments. The first of the plan's is that of the run."""
        return [
            (event, body)
            for event, body in commit.events
            if event.kind != RunStarted.kind or folder == self._whole or (folder == self._plan and event.seq == 1)
        ]

    def _read_events(self) -> None:
        for entry in self._entries[self._read :]:
            paths = [f"{self._segments}/{entry.folder}/{number:08d}" for number in range(entry.first, entry.last + 1)]
            for path, commit in zip(paths, self._commits(paths), strict=True):
                for event, body in self._own_events(entry.folder, commit):
                    self._events.append((event._replace(seq=len(self._events) + 1), body))
                    if event.kind in (RunStarted.kind, RunEnded.kind):
                        self._has_ended = event.kind == RunEnded.kind
                for name in commit.blobs:
                    self._places.setdefault(name, path)
            self._read += 1

    def _commits(self, paths: list[str]) -> list[Commit]:
        return [read_commit(self._run, path, whole) for path, whole in self._bodies(paths)]

    def _bodies(self, paths: list[str]) -> list[tuple[str, bytes]]:
        try:
            return list(zip(paths, self._store.get_many(paths), strict=True))
        except FileNotFoundError:
            missing = next((path for path in paths if not self._store.has(path)), paths[0])
            raise damage_error(missing, "an object of it is missing") from None


def read_segments(store: BlobStore, run: str) -> dict[str, BlobJournal]:
    """The record of each segment, by the name of its folder."""
    folder = store.path(run, "segments")
    return {name: BlobJournal.at(store, run, f"{folder}/{name}") for name in store.list_folders(folder)}


def merged_events(store: BlobStore, run: str) -> Iterator[Event]:
    """All events of a run, numbered from 1."""
    record = BlobRecord(store, run)
    record.refresh()
    return record.events()


def fold_run(store: BlobStore, run: str) -> Replay:
    return replay(merged_events(store, run), run)


def fold_segments(store: BlobStore, run: str) -> dict[str, Replay]:
    """Each segment by its name, folded on its own."""
    found: dict[str, Replay] = {}
    for journal in read_segments(store, run).values():
        state = replay(journal.events(), run, Replay(plan={"tasks": []}))
        found[journal.segment] = state
    return found
