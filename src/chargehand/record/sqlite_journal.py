"""The record as one SQLite file per run: WAL, every commit on disk before `append` returns, one owner at a time.

    <run>.sqlite   events with a checksum each, blobs, the owner's epoch; mode 0600, as are its -wal and -shm
    <run>.lock     the owner's lock (`lock.py`); the file stays, and means nothing when no process holds the lock

The lock keeps honest processes apart; the epoch, checked inside every append, keeps the record whole when the lock
does not (a deleted lock file, a network file system).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from chargehand.errors import JournalTooNew, OwnershipLost, RunNotFound, StorageError
from chargehand.events import Event, read_body
from chargehand.record.event_json import pack, unpack
from chargehand.record.journal import check_order, next_epoch
from chargehand.record.lock import OwnerLock
from chargehand.record.private_files import private_file
from chargehand.record.storage_errors import MISSHAPEN, damage_error, misread_error, storage

if TYPE_CHECKING:
    from concurrent.futures import Executor

FORMAT = 2
BLOB_BYTES = 64 * 1024

# An event's data is in `body`, or in the blob named by `blob` when it is over BLOB_BYTES. `crc` covers the whole event;
# events of format 1 have none. `began` is 1 once there is an event: a record with `began` and without events is
# damaged.
_SCHEMA = (
    "CREATE TABLE meta(run TEXT NOT NULL, epoch INTEGER NOT NULL, began INTEGER)",
    "CREATE TABLE events(seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, task TEXT, attempt INTEGER, "
    "body BLOB, blob TEXT, crc INTEGER)",
    "CREATE TABLE blobs(hash TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA user_version = {FORMAT}",
)
_FROM_1 = (
    "ALTER TABLE meta ADD COLUMN began INTEGER",
    "ALTER TABLE events ADD COLUMN crc INTEGER",
    f"PRAGMA user_version = {FORMAT}",
)
_SELECT = (
    "SELECT seq, at, kind, task, attempt, coalesce(events.body, blobs.body), {crc} FROM events "
    "LEFT JOIN blobs ON blobs.hash = events.blob WHERE seq > ? ORDER BY seq LIMIT ?"
)
# No format will ever have such a high number: the bytes that hold it are damaged.
_ABSURD_FORMAT = 1_000
# Small enough for a page of large bodies to fit in memory. Each page is its own read transaction, so that a slow reader
# never prevents the writer from shortening its WAL.
_PAGE = 200
_FOLD_BYTES = 2**20
# The most rows that one statement inserts.
_ROWS = 256
# SQLite takes at most 32,766 variables in a statement.
_VARIABLES = 32_766
_BUSY_S = 5.0
# How many runs of this process are written at once; each writes one batch after the other.
_WRITING_AT_ONCE = 4
_COLUMNS = 8


class SqliteJournal:
    """A handle on one run's file: its owner (`create`, `open`), or a reader (`read`) that never disturbs the owner."""

    def __init__(self, path: Path, writer: _Writer | None) -> None:
        self.path = path
        self.run = path.stem
        self._writer = writer
        self._reader: sqlite3.Connection | None = None
        self._closed = False
        # Gets events once they are on disk, for observers in the same process.
        self.on_commit: Callable[[Sequence[Event]], None] | None = None

    @classmethod
    def create(cls, path: Path) -> SqliteJournal:
        """A new run's record, owned by this process; the run's id is the file's name."""
        with storage(path):
            os.close(private_file(path))
        try:
            return cls(path, _Writer(path, new=True))
        except BaseException:
            # A run that never began does not count as a run.
            path.unlink(missing_ok=True)
            raise

    @classmethod
    def open(cls, path: Path, token: int | None = None) -> SqliteJournal:
        """An existing record, owned by this process from now on; RunOwned when another one has it."""
        _must_exist(path)
        return cls(path, _Writer(path, token=token))

    @classmethod
    def read(cls, path: Path, *, at_rest: bool = False) -> SqliteJournal:
        """An existing record for reading: needs no lock, and sees what is committed as it is committed.

        `at_rest`: no process has it open. Then nothing is made beside it, and what is read while a process opens it
        may be wrong.
        """
        _must_exist(path)
        journal = cls(path, None)
        journal._reader = _connect_at_rest(path) if at_rest else _connect_reader(path)
        return journal

    @property
    def epoch(self) -> int:
        return self._writer.epoch if self._writer else 0

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        if self._writer is None:
            raise StorageError(f"The record of run {self.run} is not open for writing; open it as its owner to write.")
        await self._writer.append(events, blobs)
        if self.on_commit is not None:
            self.on_commit(events)

    def events(self, after: int = 0) -> Iterator[Event]:
        while page := self._page(after):
            for row in page:
                after += 1
                yield self._event(row, after)

    def last_seq(self) -> int:
        """The number of the last committed event; 0 before there is one."""
        with storage(self.path):
            connection = self._connection()
            if not _format(connection):
                return 0
            return connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        wanted = list(dict.fromkeys(hashes))
        found: dict[str, bytes] = {}
        with storage(self.path):
            connection = self._connection()
            for start in range(0, len(wanted) if _format(connection) else 0, _VARIABLES):
                chunk = wanted[start : start + _VARIABLES]
                marks = ",".join("?" * len(chunk))
                found.update(connection.execute(f"SELECT hash, body FROM blobs WHERE hash IN ({marks})", chunk))  # noqa: S608
        return found

    def messages(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Blobs named by the hash of what they hold; RecordDamaged when one is missing or holds something else."""
        wanted = list(dict.fromkeys(hashes))
        found = self.blobs(wanted)
        for name in wanted:
            body: Any = found.get(name)
            if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != name:
                raise damage_error(self.path, f"the message {name[:12]} is {'changed' if name in found else 'missing'}")
        return found

    def close(self) -> None:
        # The reading connection is closed first: the last connection to close, a writing one, moves the WAL into the
        # file.
        self._closed = True
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _page(self, after: int) -> list[tuple[Any, ...]]:
        with storage(self.path):
            connection = self._connection()
            if not (found := _format(connection)):
                return []
            page = connection.execute(_SELECT.format(crc="crc" if found > 1 else "NULL"), (after, _PAGE)).fetchall()
            if page or after or found == 1:
                return page
            began = connection.execute("SELECT began FROM meta").fetchone()
        if began != (None,):
            raise damage_error(self.path, "its events are missing")
        return []

    def _event(self, row: tuple[Any, ...], expected: int) -> Event:
        seq, at, kind, task, attempt, body, crc = row
        if seq != expected:
            raise damage_error(self.path, f"event {expected} is missing")
        if body is None:
            raise damage_error(self.path, f"what event {seq} holds is missing")
        try:
            if crc is None:
                _check_types(row)
            elif not isinstance(body, bytes) or crc != _checksum(seq, at, kind, task, attempt, body):
                raise damage_error(self.path, f"event {seq} was changed")
            data: Any = unpack(body)
            if not isinstance(data, dict):
                raise TypeError(f"event {seq} holds no fields")
            return Event(self.run, seq, at, task, attempt, read_body(kind, cast("dict[str, Any]", data)))
        except MISSHAPEN as error:
            raise misread_error(self.path, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageError(f"The record of run {self.run} was closed; open it again to read it.")
        if self._reader is None:
            self._reader = _connect_reader(self.path)
        return self._reader


class _Writer:
    """The owner's lock, epoch and connection; SQL after the start happens in a thread, one at a time."""

    def __init__(self, path: Path, *, new: bool = False, token: int | None = None) -> None:
        self._path = path
        # The tables of a new file are made by the first append, in its transaction: one commit less.
        self._new = new
        self._lock = OwnerLock(path.with_suffix(".lock"), path.stem)
        try:
            with storage(path):
                self._connection = _connect(path, "mode=rw", new=new)
                try:
                    taken = _begin(self._connection) if new else _take_over(self._connection, path, token)
                    self.epoch, self._last = taken
                except BaseException:
                    self._connection.close()
                    raise
        except BaseException:
            self._lock.release()
            raise
        # Readers need neither a thread nor an event loop.
        from asyncio import get_running_loop

        self._loop = get_running_loop
        # Bytes that are only in the WAL.
        self._unfolded = 0
        # Held by the thread that uses the connection.
        self._in_use = Lock()

    async def append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        from asyncio import CancelledError, shield, wait

        writing = self._loop().run_in_executor(_threads(), self._append, events, blobs)
        try:
            await shield(writing)
        except CancelledError:
            # A thread may be about to write them: what is appended next must not come before them.
            await wait({writing})
            raise
        if self._unfolded > _FOLD_BYTES:
            _threads().submit(self._fold)

    def close(self) -> None:
        with self._in_use:
            self._connection.close()
        self._lock.release()

    def _append(self, events: Sequence[Event], blobs: Mapping[str, bytes]) -> None:
        large: dict[str, bytes] = {}
        rows = [column for event in events for column in _row(event, large)]
        with self._in_use, storage(self._path), _transaction(self._connection) as connection:
            if not self._is_owner(connection):
                raise OwnershipLost(f"Run {self._path.stem} was taken over by another process; nothing was written.")
            check_order(events, self._last)
            if events and not self._last:
                connection.execute("UPDATE meta SET began = 1")
            _insert(connection, "INSERT INTO events VALUES ", _COLUMNS, rows)
            stored = [column for item in (*blobs.items(), *large.items()) for column in item]
            _insert(connection, "INSERT OR IGNORE INTO blobs VALUES ", 2, stored)
        self._new = False
        self._last += len(events)
        self._unfolded += sum(len(value) for value in (*rows[5::_COLUMNS], *stored[1::2]) if value)

    def _is_owner(self, connection: sqlite3.Connection) -> bool:
        """Whether this is still the last process that opened the run. In a new file the tables are made here."""
        if self._new:
            if _format(connection):
                return False
            _make_tables(connection, self._path, self.epoch)
        return connection.execute("SELECT epoch FROM meta").fetchone() == (self.epoch,)

    def _fold(self) -> None:
        """Now and then move the WAL into the file: after a commit and not inside it, so that no caller waits for it."""
        self._unfolded = 0
        # If a reader prevents it, or the disk is full, it is done the next time or at the end.
        with self._in_use, suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


@lru_cache(maxsize=1)
def _threads() -> Executor:
    """The threads that write for all runs of this process: starting one for each would make the event loop wait."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_WRITING_AT_ONCE, thread_name_prefix="journal")


class _transaction:  # noqa: N801 - used as a statement
    """All or nothing: COMMIT at the end of the block, ROLLBACK when it or the COMMIT fails."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # A full disk may have rolled back already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _row(event: Event, large: dict[str, bytes]) -> tuple[Any, ...]:
    _, seq, at, task, attempt, _ = event
    at, kind, body = float(at), event.kind, pack(event.data)
    crc = _checksum(seq, at, kind, task, attempt, body)
    if len(body) <= BLOB_BYTES:
        return (seq, at, kind, task, attempt, body, None, crc)
    name = hashlib.sha256(body).hexdigest()
    large[name] = body
    return (seq, at, kind, task, attempt, None, name, crc)


def _checksum(seq: int, at: float, kind: str, task: str | None, attempt: int | None, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(f"{seq} {at!r} {kind} {task} {attempt}".encode()))


def _check_types(row: tuple[Any, ...]) -> None:
    """Damage that a checksum would have shown."""
    seq, at, kind, task, attempt, *_ = row
    if not (isinstance(at, float) and isfinite(at) and isinstance(kind, str)):
        raise TypeError(f"event {seq} has no time or kind")
    if not isinstance(task, str | None) or not isinstance(attempt, int | None):
        raise TypeError(f"event {seq} has no task or attempt")


def _insert(connection: sqlite3.Connection, head: str, width: int, columns: list[Any]) -> None:
    """Many rows per statement, which is several times cheaper; a full statement is prepared once for all batches."""
    row = "(" + ",".join("?" * width) + ")"
    for start in range(0, len(columns), _ROWS * width):
        chunk = columns[start : start + _ROWS * width]
        connection.execute(head + ",".join([row] * (len(chunk) // width)), chunk)


def _begin(connection: sqlite3.Connection) -> tuple[int, int]:
    """Make this process the first owner of a new file: its epoch, and the last `seq`."""
    connection.execute("PRAGMA synchronous = FULL")
    # The file has no earlier state to roll back to: its first page needs no journal on disk.
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return 1, 0


def _take_over(connection: sqlite3.Connection, path: Path, token: int | None) -> tuple[int, int]:
    """Make this process the owner: its epoch, and the last `seq` written by those before it."""
    # No schema: nothing was ever committed; the owner may still be running.
    known = _format(connection)
    if not known:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    with _transaction(connection):
        if not known and not _format(connection):
            _make_tables(connection, path, epoch=1)
        if _format(connection) == 1:
            for statement in _FROM_1:
                connection.execute(statement)
        owned = connection.execute("SELECT epoch FROM meta").fetchone()
        if owned is None or not isinstance(owned[0], int):
            raise damage_error(path, "its owner's number is missing")
        epoch = next_epoch(owned[0], token)
        connection.execute("UPDATE meta SET epoch = ?", (epoch,))
        (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()
    return epoch, last


def _make_tables(connection: sqlite3.Connection, path: Path, epoch: int) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO meta(run, epoch) VALUES (?, ?)", (path.stem, epoch))


def _format(connection: sqlite3.Connection) -> int:
    """The format; 0 when nothing was ever committed: a crash right after creation leaves a file without tables."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _connect(path: Path, how: str, *, new: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if not new:
            _check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_reader(path: Path) -> sqlite3.Connection:
    with storage(path):
        try:
            return _connect(path, "mode=ro")
        except sqlite3.OperationalError:
            # Reading a WAL file needs a writable folder, unless no process writes and all data is in the file itself.
            wal = path.with_name(path.name + "-wal")
            if wal.exists() and wal.stat().st_size > 0:
                raise
            return _connect_at_rest(path)


def _connect_at_rest(path: Path) -> sqlite3.Connection:
    with storage(path):
        return _connect(path, "immutable=1")


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    found = _format(connection)
    if not 0 <= found < _ABSURD_FORMAT:
        raise damage_error(path, f"format {found}")
    if found > FORMAT:
        raise JournalTooNew(
            f"The record of run {path.stem} was written by a newer chargehand (format {found}, this one reads up to "
            f"{FORMAT}). Upgrade chargehand to open it."
        )
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")} if found == 0 else set[str]()
    if tables and _format(connection):
        # The first commit of a new run, which makes the tables and the format, came between the two reads.
        return _check_format(connection, path)
    if tables >= {"meta", "events", "blobs"}:
        raise damage_error(path, "it names no format")
    if tables:
        raise StorageError(f"{path} is not a record of chargehand. Move it out of the home of runs.")


def _must_exist(path: Path) -> None:
    with storage(path):
        there = path.is_file()
    if not there:
        raise RunNotFound(
            f"There is no record of run {path.stem} at {path}.", command="`chargehand runs` lists those there are."
        )
