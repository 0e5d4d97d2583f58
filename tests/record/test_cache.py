"""The cache keeps bytes from run to run, within its size, and is never in the way."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from chargehand.record.cache import Cache


def test_what_is_put_is_there_for_the_next_process(tmp_path: Path) -> None:
    """Under its key, and only there; in a file nobody else may read."""
    Cache(tmp_path / "c").put({"a": b"1", "b": b"2"})
    assert Cache(tmp_path / "c").get(["a", "b", "missing"]) == {"a": b"1", "b": b"2"}
    assert stat.S_IMODE((tmp_path / "c" / "analyses.sqlite").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


def test_reading_makes_nothing(tmp_path: Path) -> None:
    """A home that has no cache gets none by being asked."""
    assert Cache(tmp_path / "c").get(["a"]) == {}
    assert not (tmp_path / "c").exists()


def test_many_keys_are_found_at_once(tmp_path: Path) -> None:
    """More than a statement of SQLite takes."""
    cache = Cache(tmp_path)
    entries = {str(n): bytes([n % 256]) for n in range(3_000)}
    cache.put(entries)
    assert cache.get(entries) == entries


def test_the_longest_unused_go_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked for lately stays."""
    now = [0.0]

    def clock() -> float:
        now[0] += 10_000
        return now[0]

    monkeypatch.setattr("time.time", clock)
    cache = Cache(tmp_path, largest=1_000)
    for n in range(10):
        cache.put({str(n): b"x" * 100})
    cache.get(["0"])
    cache.put({"new": b"x" * 100})
    kept = cache.get([*map(str, range(10)), "new"])
    assert {"0", "new", "9"} <= kept.keys()
    assert "1" not in kept
    assert sum(map(len, kept.values())) <= 1_000


def test_a_damaged_cache_is_begun_anew(tmp_path: Path) -> None:
    """The review does not notice."""
    (tmp_path / "analyses.sqlite").write_bytes(b"this is no database, by any means" * 100)
    cache = Cache(tmp_path)
    assert cache.get(["a"]) == {}
    cache.put({"a": b"1"})
    assert cache.get(["a"]) == {"a": b"1"}


def test_a_cache_that_cannot_be_used_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locked by another program, or where a file is in the way: as if nothing were there."""
    cache = Cache(tmp_path)
    cache.put({"a": b"1"})
    monkeypatch.setattr("chargehand.record.cache.PATIENCE_S", 0.0)
    holder = sqlite3.connect(tmp_path / "analyses.sqlite", isolation_level=None)
    holder.execute("begin exclusive")
    try:
        assert cache.get(["a"]) == {}
        cache.put({"b": b"2"})
    finally:
        holder.close()
    (tmp_path / "file").write_text("")
    other = Cache(tmp_path / "file" / "below")
    other.put({"a": b"1"})
    assert other.get(["a"]) == {}
