"""The small index of runs: one line per run, for listing without opening every record.

The index is a copy: all of it can be folded again from the records (`summarise`), so a missing or damaged index is made
again, and a failing index never fails a run.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from chargehand.events import Control, QuestionAnswered, QuestionAsked, RunEnded, RunStarted
from chargehand.record.journal import Journal
from chargehand.record.private_files import private_file
from chargehand.record.storage_errors import reading, storage_error
from chargehand.values.status_words import STATUSES, RunStatus

if TYPE_CHECKING:
    from chargehand.values.estimate import PastRun

REQUEST_CHARS = 200

_FORMAT = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS runs(run TEXT PRIMARY KEY, started REAL NOT NULL, ended REAL, status TEXT NOT NULL, "
    "request TEXT NOT NULL, team TEXT, parent TEXT)",
    f"PRAGMA user_version = {_FORMAT}",
)
_SELECT = "SELECT run, started, ended, status, request, team, parent FROM runs"
# A line that is written again gets the highest number.
_REPLACE = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)"
# Expected and real figures of runs, for the estimates of later runs. They cannot be folded again: if the table is lost,
# later runs fill it again. So it is made if it is missing, and it needs no format of its own.
_PAST = "CREATE TABLE IF NOT EXISTS past(run TEXT PRIMARY KEY, team TEXT, model TEXT, figures TEXT NOT NULL)"
_PAST_RUNS = "SELECT figures FROM past WHERE team = ? AND model = ? ORDER BY rowid DESC LIMIT ?"
# How many past runs of a team and a model are read, and how many are kept in total.
MOST_PAST, MOST_KEPT = 20, 5_000
_BUSY_S = 1.0
_NUMBER = (float, int)
_NUMBER_OR_NONE = (float, int, type(None))
_TEXT_OR_NONE = (str, type(None))
# SQLite's errors for a file that is not a valid index: only then is the index made again, never because it is busy.
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")


class RunInfo(NamedTuple):
    """One run in a listing. `request` is its head; times are seconds since 1970.

    Not a Value: a listing shows the content of the index without loading pydantic.
    """

    run: str
    started: float
    ended: float | None = None
    status: RunStatus = "running"
    request: str = ""
    team: str | None = None
    parent: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The line as plain JSON data."""
        return self._asdict()


class Lesson(NamedTuple):
    """The expected and the real figures of a run of a team with these models."""

    team: str
    model: str
    figures: PastRun


class RunIndex:
    """The index file. Best effort throughout: a failed read gives nothing, a failed write gives a warning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        # The lines of the last read; the file they came from, and the highest number of a line in it.
        self._lines: dict[str, RunInfo] = {}
        self._read_to: tuple[tuple[int, int], int] | None = None

    def load(self, *, all_again: bool = False) -> dict[str, RunInfo]:
        """All lines, by run; empty when the index is missing, damaged or cannot be read.

        Only lines written since the last read are read. Removed lines are noticed by the number of lines, unless as
        many were added: a caller that knows of removed lines asks for `all_again`.
        """
        with self._lock:
            try:
                self._catch_up(all_again)
            except (sqlite3.Error, OSError, ValueError):
                self._lines, self._read_to = {}, None
            return dict(self._lines)

    def _catch_up(self, all_again: bool) -> None:
        number = os.stat(self._path).st_ino
        with _connection(self._path, "ro") as connection:
            if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                raise ValueError("another version wrote it")
            connection.execute("BEGIN")
            # A file that replaces a removed one may have the same inode; then its mark differs.
            file = number, connection.execute("PRAGMA application_id").fetchone()[0]
            count, last = connection.execute("SELECT count(*), coalesce(max(rowid), 0) FROM runs").fetchone()
            read_file, read_to = self._read_to or (file, last + 1)
            grows = not all_again and read_file == file and read_to <= last
            if grows:
                self._lines |= _read_lines(connection, "rowid > ?", read_to)
            if not grows or len(self._lines) != count:
                self._lines = _read_lines(connection)
            self._read_to = file, last

    def put(self, infos: Collection[RunInfo], gone: Collection[str] = ()) -> str | None:
        """Write these lines and drop those of runs that are gone; a warning when that failed."""

        def put(connection: sqlite3.Connection) -> None:
            connection.executemany(_REPLACE, map(_row, infos))
            connection.executemany("DELETE FROM runs WHERE run = ?", ((run,) for run in gone))

        return self._write(put)

    def change(
        self, run: str, changed: Callable[[RunInfo | None], RunInfo], lesson: Lesson | None = None
    ) -> str | None:
        """Write a run's new line, made from the present one; a warning when that failed."""

        def change(connection: sqlite3.Connection) -> None:
            old = _read_lines(connection, "run = ?", run).get(run)
            connection.execute(_REPLACE, _row(changed(old)))
            if lesson is not None:
                connection.execute(_PAST)
                row = (run, lesson.team, lesson.model, json.dumps(lesson.figures))
                connection.execute("INSERT OR REPLACE INTO past VALUES (?, ?, ?, ?)", row)
                connection.execute("DELETE FROM past WHERE rowid <= (SELECT max(rowid) FROM past) - ?", (MOST_KEPT,))

        return self._write(change)

    def past_runs(self, team: str, model: str) -> list[PastRun]:
        """The last runs of the team with these models, oldest first; empty when there are none or none can be read."""
        from chargehand.values.estimate import Figures, PastRun

        if not self._path.exists():
            return []
        try:
            with _connection(self._path, "ro") as connection:
                rows = connection.execute(_PAST_RUNS, (team, model, MOST_PAST)).fetchall()
            return [PastRun(*(Figures(*each) for each in json.loads(text))) for (text,) in reversed(rows)]
        except (sqlite3.Error, OSError, ValueError, TypeError):
            return []

    def _write(self, write: Callable[[sqlite3.Connection], None]) -> str | None:
        try:
            try:
                self._transact(write)
            except (sqlite3.DatabaseError, ValueError) as error:
                if isinstance(error, sqlite3.Error) and not _is_damaged(error):
                    raise
                self._path.unlink(missing_ok=True)
                self._transact(write)
        except (sqlite3.Error, OSError) as error:
            return f"The list of runs was not updated. {storage_error(self._path, error)}"
        return None

    def _transact(self, write: Callable[[sqlite3.Connection], None]) -> None:
        with suppress(FileExistsError):
            os.close(private_file(self._path))
        with _connection(self._path, "rw") as connection:
            # Losing the last lines in a power cut costs one repair; waiting for the disk would cost time in every run.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                connection.execute("DROP TABLE IF EXISTS runs")
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {int.from_bytes(os.urandom(3))}")
            write(connection)
            connection.execute("COMMIT")


def summarise(run: str, journal: Journal, started: float) -> RunInfo:
    """Fold a record into its line. `started` is used for a run that has recorded nothing yet."""
    info = RunInfo(run=run, started=started)
    asked: set[str] = set()
    paused = False
    first = True
    for event in journal.events():
        match event.body:
            case RunStarted() as body:
                info = _begin(info, event.at, body, first)
                first = False
            case RunEnded(status=status):
                info = info._replace(status=cast("RunStatus", status), ended=event.at)
            case QuestionAsked(key=key):
                asked.add(key)
            case QuestionAnswered(key=key):
                asked.discard(key)
            case Control(order="pause" | "continue" as order, verdict="accepted"):
                paused = order == "pause"
            case _:
                pass
    with reading(run):
        _check(info)
    if info.status == "running" and (paused or asked):
        return info._replace(status="paused" if paused else "waiting")
    return info


def head(request: str) -> str:
    """The part of a request the index keeps."""
    return request[:REQUEST_CHARS].encode("utf-8", "replace").decode()


def _begin(info: RunInfo, at: float, started: RunStarted, first: bool) -> RunInfo:
    again = info._replace(status="running", ended=None)
    if not first:
        return again
    return again._replace(
        started=at,
        request=head(_text(started.request.get("text")) or ""),
        team=_text(started.team.get("name")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _read_lines(connection: sqlite3.Connection, where: str = "", *values: object) -> dict[str, RunInfo]:
    rows = connection.execute(f"{_SELECT} WHERE {where}" if where else _SELECT, values)
    return {info.run: info for info in (_check(RunInfo(*row)) for row in rows)}


def _check(info: RunInfo) -> RunInfo:
    """The line; ValueError when a field has the wrong type."""
    # Spelled out, because a home may have ten thousand lines. SQLite keeps any type in any column.
    run, started, ended, status, request, team, parent = _row(info)
    right = (
        isinstance(run, str)
        and isinstance(request, str)
        and isinstance(started, _NUMBER)
        and isinstance(ended, _NUMBER_OR_NONE)
        and isinstance(team, _TEXT_OR_NONE)
        and isinstance(parent, _TEXT_OR_NONE)
        and status in STATUSES
    )
    if not right:
        raise ValueError(f"the line of run {info.run!r} cannot be read: {info}")
    return info


def _row(info: RunInfo) -> tuple[Any, ...]:
    return (info.run, info.started, info.ended, info.status, info.request, info.team, info.parent)


def _is_damaged(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(_DAMAGED)


@contextmanager
def _connection(path: Path, mode: str) -> Generator[sqlite3.Connection]:
    where = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(where, uri=True, timeout=_BUSY_S, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()
