"""Numbered checks that any journal must pass: each gets a place to keep one run and raises AssertionError on failure.

for check in JOURNAL_CHECKS:
    asyncio.run(check(make_place()))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from chargehand.errors import OwnershipLost
from chargehand.events import AttemptStarted, Event, TaskReady, Warned, read_body
from chargehand.record.journal import Journal


class JournalPlace(Protocol):
    """Where one run is kept, empty at first; a check may open it any number of times."""

    @property
    def run(self) -> str: ...

    def open(self, token: int | None = None) -> Journal:
        """The newest owner. It takes the run from the previous owner, as if that owner had died unnoticed."""
        ...

    def read(self) -> Journal:
        """A reader, while others own and write."""
        ...


async def c01_events_come_back_in_order(place: JournalPlace) -> None:
    """1. What was appended, in one batch or many, is what is read, by the owner and by others."""
    events = [_event(place, seq, {"n": seq}) for seq in range(1, 6)]
    journal = place.open()
    await journal.append(events[:1], {})
    await journal.append(events[1:4], {})
    await journal.append(events[4:], {})
    assert list(journal.events()) == events
    assert _read_events(place) == events
    journal.close()
    assert _read_events(place) == events


async def c02_reading_can_start_anywhere(place: JournalPlace) -> None:
    """2. `events(after)` gives those with a larger seq, and nothing past the end."""
    journal = place.open()
    await journal.append([_event(place, seq) for seq in range(1, 4)], {})
    assert [event.seq for event in journal.events(after=1)] == [2, 3]
    assert list(journal.events(after=3)) == []
    assert list(journal.events(after=99)) == []
    journal.close()


async def c03_seq_has_no_holes(place: JournalPlace) -> None:
    """3. A batch that does not continue from the last seq by ones is refused whole."""
    journal = place.open()
    await journal.append([_event(place, 1)], {})
    for wrong in ([1], [3], [0], [2, 4], [2, 2], [3, 2]):
        await _expect_refusal(journal, [_event(place, seq) for seq in wrong], {"h": b"x"}, ValueError)
    assert [event.seq for event in journal.events()] == [1]
    assert journal.blobs(["h"]) == {}
    await journal.append([_event(place, 2)], {})
    journal.close()


async def c04_a_new_owner_ends_the_old_one(place: JournalPlace) -> None:
    """4. Once another has opened the run, the old owner's append changes nothing; the new owner continues."""
    old = place.open()
    await old.append([_event(place, 1)], {})
    new = place.open()
    assert new.epoch == old.epoch + 1
    await _expect_refusal(old, [_event(place, 2, {"by": "old"})], {"h": b"old"}, OwnershipLost)
    await new.append([_event(place, 2, {"by": "new"})], {})
    await _expect_refusal(old, [_event(place, 3)], {}, OwnershipLost)
    assert [event.data for event in new.events(after=1)] == [{"by": "new"}]
    assert new.blobs(["h"]) == {}
    old.close()
    await new.append([_event(place, 3)], {})
    new.close()


async def c05_blobs_are_kept_under_their_hash(place: JournalPlace) -> None:
    """5. A blob is found under its hash, is never changed by storing it again, and unknown hashes are left out."""
    journal = place.open()
    await journal.append([_event(place, 1)], {"a": b"first", "b": b""})
    await journal.append([], {"a": b"second", "c": b"\x00\xff"})
    expected = {"a": b"first", "b": b"", "c": b"\x00\xff"}
    assert journal.blobs(["a", "b", "c", "nowhere", "a"]) == expected
    journal.close()
    reader = place.read()
    assert reader.blobs(["a", "b", "c"]) == expected
    assert reader.blobs([]) == {}
    reader.close()


async def c06_data_comes_back_as_json_has_it(place: JournalPlace) -> None:
    """6. Tuples become lists, nan and infinities null, lone surrogates U+FFFD; deep data and any text can be kept."""
    deep: dict[str, Any] = {}
    for _ in range(220):
        deep = {"in": deep}
    given = {
        "t": (1, 2),
        "nan": float("nan"),
        "inf": float("-inf"),
        "bad\ud800": "x\udfff",
        "nul": "\x00",
        "deep": deep,
    }
    journal = place.open()
    await journal.append([_event(place, 1, given)], {})
    (event,) = journal.events()
    journal.close()
    assert event.data == {"t": [1, 2], "nan": None, "inf": None, "bad\ufffd": "x\ufffd", "nul": "\x00", "deep": deep}


async def c07_the_record_cannot_be_changed(place: JournalPlace) -> None:
    """7. Changing data after it was appended, or after it was read, leaves the record as it was."""
    data: dict[str, Any] = {"list": [1]}
    journal = place.open()
    await journal.append([_event(place, 1, data)], {})
    data["list"].append(2)
    next(iter(journal.events())).data.clear()
    assert [event.data for event in journal.events()] == [{"list": [1]}]
    journal.close()


async def c08_large_data_is_kept_whole(place: JournalPlace) -> None:
    """8. Bodies of any size come back, equal ones too, among small ones."""
    events = [
        _event(place, seq, {"text": "é" * size}) for seq, size in enumerate((10, 70_000, 70_000, 32_750, 1_000_000), 1)
    ]
    journal = place.open()
    await journal.append(events, {})
    assert list(journal.events()) == events
    journal.close()
    assert _read_events(place) == events


async def c09_a_batch_may_be_large(place: JournalPlace) -> None:
    """9. Ten thousand events and as many blobs are one append."""
    events = [_event(place, seq, {"n": seq}) for seq in range(1, 10_001)]
    blobs = {str(n): b"%d" % n for n in range(40_000)}
    journal = place.open()
    await journal.append(events, blobs)
    assert [event.seq for event in journal.events()] == list(range(1, 10_001))
    assert journal.blobs(blobs) == blobs
    journal.close()


async def c10_task_and_attempt_are_kept(place: JournalPlace) -> None:
    """10. An event is the same after reading, in all its fields."""
    events = [
        Event(place.run, 1, 1_700_000_000.123456, None, None, Warned(message="x")),
        Event(place.run, 2, 0.1, "x1.t1/2/t3", None, TaskReady(worker="w")),
        Event(place.run, 3, 2.0, "t1", 3, AttemptStarted(worker="w", tier=None, model="m")),
    ]
    journal = place.open()
    await journal.append(events, {})
    journal.close()
    assert _read_events(place) == events


async def c11_owners_count_up(place: JournalPlace) -> None:
    """11. Epochs are 1, 2, 3 over the openings of a run; readers are 0 and take nothing from the owner."""
    epochs: list[int] = []
    for _ in range(3):
        journal = place.open()
        epochs.append(journal.epoch)
        journal.close()
    assert epochs == [1, 2, 3]
    owner = place.open()
    reader = place.read()
    assert reader.epoch == 0
    await owner.append([_event(place, 1)], {})
    assert [event.seq for event in reader.events()] == [1]
    reader.close()
    owner.close()
    owner.close()


async def c12_an_owner_that_was_replaced_may_not_open_again(place: JournalPlace) -> None:
    """12. A token becomes the epoch; one that is not larger than the epoch before opens nothing and changes nothing."""
    place.open().close()
    owner = place.open(token=7)
    assert owner.epoch == 7
    await owner.append([_event(place, 1)], {})
    for late in (3, 7):
        try:
            place.open(token=late)
        except OwnershipLost:
            continue
        raise AssertionError(f"opening with token {late} after {owner.epoch} should raise OwnershipLost")
    await owner.append([_event(place, 2)], {})
    owner.close()
    after = place.open()
    assert after.epoch == 8
    assert [event.seq for event in after.events()] == [1, 2]
    after.close()


JOURNAL_CHECKS: tuple[Callable[[JournalPlace], Awaitable[None]], ...] = (
    c01_events_come_back_in_order,
    c02_reading_can_start_anywhere,
    c03_seq_has_no_holes,
    c04_a_new_owner_ends_the_old_one,
    c05_blobs_are_kept_under_their_hash,
    c06_data_comes_back_as_json_has_it,
    c07_the_record_cannot_be_changed,
    c08_large_data_is_kept_whole,
    c09_a_batch_may_be_large,
    c10_task_and_attempt_are_kept,
    c11_owners_count_up,
    c12_an_owner_that_was_replaced_may_not_open_again,
)


def _event(place: JournalPlace, seq: int, data: dict[str, Any] | None = None) -> Event:
    """The event is of an unknown kind, so that it can have any fields."""
    return Event(place.run, seq, float(seq), None, None, read_body("checked", {} if data is None else data))


def _read_events(place: JournalPlace) -> list[Event]:
    reader = place.read()
    try:
        return list(reader.events())
    finally:
        reader.close()


async def _expect_refusal(
    journal: Journal, events: Sequence[Event], blobs: Mapping[str, bytes], error: type[Exception]
) -> None:
    try:
        await journal.append(events, blobs)
    except error:
        return
    raise AssertionError(f"append of {[event.seq for event in events]} should raise {error.__name__}")
