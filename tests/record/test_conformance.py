"""Every journal we ship passes the conformance checks we ship."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargehand.events import Event, read_body
from chargehand.record.journal import Journal
from chargehand.record.journal_checks import JOURNAL_CHECKS, JournalPlace
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.sqlite_journal import SqliteJournal
from tests.counts import examples


@dataclass
class InMemory:
    run: str = "r1"
    store: MemoryStore = field(default_factory=MemoryStore)

    def open(self, token: int | None = None) -> Journal:
        return MemoryJournal(self.store, token)

    def read(self) -> Journal:
        return MemoryJournal.read(self.store)


@dataclass
class OnDisk:
    folder: Path
    run: str = "r1"

    @property
    def path(self) -> Path:
        return self.folder / f"{self.run}.sqlite"

    def open(self, token: int | None = None) -> Journal:
        # Without its file the old owner's lock keeps nobody out; the epoch has to.
        self.path.with_suffix(".lock").unlink(missing_ok=True)
        return SqliteJournal.open(self.path, token) if self.path.exists() else SqliteJournal.create(self.path)

    def read(self) -> Journal:
        return SqliteJournal.read(self.path)


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> JournalPlace:
    return InMemory() if request.param == "memory" else OnDisk(tmp_path)


@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_the_journal_keeps_its_contract(place: JournalPlace, check: Callable[[JournalPlace], Awaitable[None]]) -> None:
    """The numbered contract holds; its text is the check's own docstring."""

    async def checked() -> None:
        await check(place)

    asyncio.run(checked())


def test_every_check_is_listed() -> None:
    """No check is written and forgotten."""
    import chargehand.record.journal_checks as suite

    written = [value for name, value in vars(suite).items() if name[0] == "c" and name[1:3].isdigit()]
    assert tuple(written) == JOURNAL_CHECKS


TEXT = st.text(st.characters(exclude_categories=("Cs",)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
BATCHES = st.lists(st.lists(st.dictionaries(TEXT, JSON, max_size=4), max_size=4), max_size=4)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_what_is_appended_is_what_is_read(
    batches: list[list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any JSON data in any batches comes back equal, from both journals."""

    async def kept(place: JournalPlace) -> list[Event]:
        journal = place.open()
        seq = 0
        for batch in batches:
            events = [
                Event(place.run, seq + n, 0.5, None, None, read_body("any", data)) for n, data in enumerate(batch, 1)
            ]
            await journal.append(events, {})
            seq += len(batch)
        journal.close()
        reader = place.read()
        events = list(reader.events())
        reader.close()
        return events

    data = [data for batch in batches for data in batch]
    for place in (InMemory(), OnDisk(tmp_path_factory.mktemp("home"))):
        events = asyncio.run(kept(place))
        assert [event.data for event in events] == data
        assert [event.seq for event in events] == list(range(1, len(data) + 1))


@given(data=st.dictionaries(st.text(max_size=4), st.lists(st.floats() | st.text(max_size=4), max_size=3), max_size=3))
@settings(max_examples=examples(100), deadline=None)
def test_any_text_can_be_kept(data: dict[str, Any]) -> None:
    """Text with lone surrogates and floats that JSON does not know never fail an append."""
    store = MemoryStore()
    asyncio.run(MemoryJournal(store).append([Event("r1", 1, 0.0, None, None, read_body("any", data))], {}))
    (event,) = MemoryJournal.read(store).events()
    assert event.seq == 1
