"""The segments of a run as one sequence of events, whose numbers never change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN
from chargehand.errors import RecordDamaged
from chargehand.events import Event, EventBody, RunStarted, Warned
from chargehand.runs.temporal.blob_source import BlobRecord


def started() -> RunStarted:
    return RunStarted(version=1, chargehand="1", epoch=1, resumed=False, request={}, team={}, settings={})


class Segment:
    """One segment that a test writes to."""

    def __init__(self, store: BlobStore, name: str) -> None:
        self.journal = BlobJournal.open(store, "r1", name)

    def write(self, at: float, *bodies: EventBody) -> None:
        first = self.journal.last_seq + 1
        events = [Event("r1", first + n, at, None, None, body) for n, body in enumerate(bodies)]
        asyncio.run(self.journal.append(events, {f"h{at}": b"message"}))


def said(record: BlobRecord, after: int = 0) -> list[tuple[int, str]]:
    record.refresh()
    return [(e.seq, e.body.message if isinstance(e.body, Warned) else e.kind) for e in record.events(after)]


def test_events_keep_their_numbers_when_an_earlier_one_is_found_later(tmp_path: Path) -> None:
    """A machine whose clock is behind commits an event: it comes after those that were read already."""
    store = BlobStore(tmp_path.as_uri())
    plan, a, b = (Segment(store, name) for name in ("@plan", "a", "b"))
    plan.write(100.0, started(), Warned(message="planned"))
    a.write(101.0, started(), Warned(message="a1"))
    watching = BlobRecord(store, "r1")
    first = said(watching)
    assert first == [(1, "run_started"), (2, "planned"), (3, "a1")]
    b.write(50.0, started(), Warned(message="b1"))
    a.write(102.0, Warned(message="a2"))
    assert said(watching)[:3] == first
    assert said(watching, after=3) == [(4, "b1"), (5, "a2")]
    assert said(BlobRecord(store, "r1")) == said(watching)
    assert watching.messages(["h50.0", "h101.0", "none"]) == {"h50.0": b"message", "h101.0": b"message"}


def test_two_readers_have_the_same_numbers(tmp_path: Path) -> None:
    """Both look while segments grow in turns, and neither sees an event under two numbers."""
    store = BlobStore(tmp_path.as_uri())
    segments = [Segment(store, name) for name in ("@plan", "a", "b", RUN)]
    readers = BlobRecord(store, "r1"), BlobRecord(store, "r1")
    for turn in range(12):
        segments[turn % 4].write(100.0 - turn, Warned(message=str(turn)))
        said(readers[turn % 2])
    assert said(readers[0]) == said(readers[1]) == said(BlobRecord(store, "r1"))
    assert sorted(number for number, _ in said(readers[0])) == list(range(1, 13))


def test_a_missing_object_of_a_record_is_named(tmp_path: Path) -> None:
    """A hole in a segment is RecordDamaged, for a reader that has not read it yet."""
    store = BlobStore(tmp_path.as_uri())
    a = Segment(store, "a")
    for at in (1.0, 2.0):
        a.write(at, Warned(message="x"))
    (tmp_path / "runs/r1/segments/a/00000002").unlink()
    with pytest.raises(RecordDamaged, match="00000002"):
        said(BlobRecord(store, "r1"))
