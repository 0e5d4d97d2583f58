"""Bytes under a key, kept in the home from run to run. A lost entry is made again, so no failure here is an error.

`analyses.sqlite` in the folder, readable by its owner only. The entries unused for longest are removed when it is too
large.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from chargehand.errors import StorageError
from chargehand.record.private_files import private_folder

LARGEST = 64_000_000
# How long a process waits while another one writes.
PATIENCE_S = 2.0
# How exactly the last use of an entry is known. Because it is coarse, most reads write nothing.
NOTED_AGAIN_S = 3_600.0
_AT_ONCE = 500
_TABLE = """
create table if not exists entry (key text primary key, value blob not null, used real not null) without rowid;
create index if not exists entry_used on entry (used);
"""
T = TypeVar("T")


class Cache:
    """Holds nothing between calls, so that any number of processes and threads may share the folder."""

    def __init__(self, folder: Path, largest: int = LARGEST) -> None:
        self._path = folder / "analyses.sqlite"
        self._largest = largest

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The stored values of these keys."""
        wanted, now = list(dict.fromkeys(keys)), time.time()

        def read(database: sqlite3.Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            unused: list[tuple[float, str]] = []
            for start in range(0, len(wanted), _AT_ONCE):
                part = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"select key, value, used from entry where key in ({marks})"  # noqa: S608 -- question marks only
                for key, value, used in database.execute(query, part):
                    found[key] = value
                    if used < now - NOTED_AGAIN_S:
                        unused.append((now, key))
            # Even an update that changes nothing makes others wait.
            if unused:
                database.executemany("update entry set used = ? where key = ?", unused)
            return found

        return self._within(read, {}, may_make=False) if self._path.is_file() else {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store these, and remove the entries unused for longest when there is no room for all."""
        rows = [(key, value, time.time()) for key, value in entries.items()]

        def write(database: sqlite3.Connection) -> None:
            database.executemany("insert or replace into entry values (?, ?, ?)", rows)
            self._make_room(database)

        if rows:
            self._within(write, None)

    def _make_room(self, database: sqlite3.Connection) -> None:
        (size,) = database.execute("select coalesce(sum(length(value)), 0) from entry").fetchone()
        if size <= self._largest:
            return
        # More than needed, so that not every call has to remove entries.
        over = size - self._largest * 3 // 4
        gone: list[tuple[str]] = []
        for key, length in database.execute("select key, length(value) from entry order by used"):
            if over <= 0:
                break
            gone.append((key,))
            over -= length
        database.executemany("delete from entry where key = ?", gone)

    def _within(self, work: Callable[[sqlite3.Connection], T], nothing: T, *, may_make: bool = True) -> T:
        """One transaction. A cache that cannot be used counts as empty; a damaged one is made again."""
        try:
            if may_make:
                private_folder(self._path.parent)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(self._path, timeout=PATIENCE_S)) as database:
                # A cache that was damaged by a power cut is made again, so no commit has to wait for the disk.
                database.executescript(f"pragma synchronous = off;{_TABLE if may_make else ''}")
                done = work(database)
                database.commit()
                return done
        except (OSError, StorageError, sqlite3.OperationalError):
            return nothing  # in the way, locked, full or read-only
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            return nothing
