"""Runs in a blob store as others read them: the segments of a record -> one sequence of events, and its fold.

Events of a segment stay in their order; those of different segments are ordered by time. Each segment begins anew with
`run_started`: of these the run's own is kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.record.replay import Replay, replay
from chargehand.values.event import Event, RunStarted

_SUPERVISOR = "@plan"


def read_segments(store: BlobStore, run: str) -> dict[str, BlobJournal]:
    """The record of each segment, by the name of its folder."""
    folder = store.path(run, "segments")
    return {name: BlobJournal.at(store, run, f"{folder}/{name}") for name in store.list_folders(folder)}


def merged_events(store: BlobStore, run: str) -> Iterator[Event]:
    """All events of a run, numbered from 1."""
    segments = read_segments(store, run)
    own = store.path(run, "segments", _SUPERVISOR).rpartition("/")[2]
    streams = [_with_order(name, journal.events(), begins=name == own) for name, journal in sorted(segments.items())]
    for seq, (_, _, _, event) in enumerate(heapq.merge(*streams, key=lambda each: each[:3]), 1):
        yield event._replace(seq=seq)


def _with_order(name: str, events: Iterable[Event], *, begins: bool) -> Iterator[tuple[float, str, int, Event]]:
    """Events with what orders them: a clock that was set back does not put one before those it follows."""
    latest = 0.0
    for event in events:
        if isinstance(event.body, RunStarted):
            if not begins:
                continue
            begins = False
        latest = max(latest, event.at)
        yield latest, "" if isinstance(event.body, RunStarted) else name, event.seq, event


def fold_run(store: BlobStore, run: str) -> Replay:
    return replay(merged_events(store, run), run)


def fold_segments(store: BlobStore, run: str) -> dict[str, Replay]:
    """Each segment by its name, folded on its own."""
    found: dict[str, Replay] = {}
    for journal in read_segments(store, run).values():
        state = replay(journal.events(), run, Replay(plan={"tasks": []}))
        found[journal.segment] = state
    return found
