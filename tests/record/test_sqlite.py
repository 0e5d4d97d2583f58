"""The SQLite journal against a real disk: owners, crashes, cut files, full and read-only disks, other versions."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand.errors import JournalTooNew, OwnershipLost, RunNotFound, RunOwned, StorageError
from chargehand.events import Event, Warned
from chargehand.record.sqlite_journal import FORMAT, SqliteJournal
from tests.counts import STEP

# Owns the run at argv[1] and appends until it is killed, saying each seq once it is committed.
WRITER = """
import asyncio, sys
from pathlib import Path
from chargehand.events import Event, Warned
from chargehand.record.sqlite_journal import SqliteJournal

async def main():
    path = Path(sys.argv[1])
    journal = SqliteJournal.open(path) if path.exists() else SqliteJournal.create(path)
    seq = max((event.seq for event in journal.events()), default=0)
    while True:
        batch = [Event("r", seq + n, 0.0, None, None, Warned(message="x" * 50 * n)) for n in (1, 2, 3)]
        await journal.append(batch, {str(seq): b"blob"})
        seq += 3
        print(seq, flush=True)

asyncio.run(main())
"""


def event(seq: int, message: str = "") -> Event:
    return Event("r", seq, float(seq), None, None, Warned(message=message))


def append(journal: SqliteJournal, *events: Event) -> None:
    asyncio.run(journal.append(events, {}))


def seqs(path: Path) -> list[int]:
    journal = SqliteJournal.read(path)
    try:
        return [event.seq for event in journal.events()]
    finally:
        journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.sqlite"


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def said(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_kill_9_loses_nothing_acknowledged(path: Path) -> None:
    """Every seq a killed writer reported is there, without holes, and the next owner goes on at once, each time."""
    acknowledged = 0
    for lines in (1, 20, 7):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
            for _ in range(lines):
                acknowledged = said(process)
            process.send_signal(signal.SIGKILL)
            assert process.stdout is not None
            acknowledged = max([acknowledged, *(int(line) for line in process.stdout if line.endswith("\n"))])
        found = seqs(path)
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= acknowledged
        assert len(found) % 3 == 0, "a batch is whole or absent"
    journal = SqliteJournal.open(path)
    assert journal.epoch == 4
    assert journal.blobs(["0", "3"]) == {"0": b"blob", "3": b"blob"}
    journal.close()


def test_a_second_owner_is_told_who_the_first_is(path: Path, writer: subprocess.Popen[str]) -> None:
    """Opening an owned run raises RunOwned with the owner's process, host and what to do."""
    said(writer)
    with pytest.raises(RunOwned) as refused:
        SqliteJournal.open(path)
    assert f"process {writer.pid} on {os.uname().nodename}" in str(refused.value)
    assert "chargehand cancel r" in refused.value.command


def test_a_reader_follows_a_writer_in_another_process(path: Path, writer: subprocess.Popen[str]) -> None:
    """A reader sees what is committed while the owner goes on writing."""
    said(writer)
    reader = SqliteJournal.read(path)
    for _ in range(3):
        latest = said(writer)
        found = [event.seq for event in reader.events()]
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= latest
    reader.close()
    assert said(writer) > 0


def test_ownership_is_given_up_by_closing(path: Path) -> None:
    """A closed run can be opened again in the same process; an open one cannot."""
    first = SqliteJournal.create(path)
    with pytest.raises(RunOwned, match=f"process {os.getpid()} "):
        SqliteJournal.open(path)
    first.close()
    second = SqliteJournal.open(path)
    assert second.epoch == 2
    second.close()


def test_an_owner_that_wrote_nothing_yet_can_be_stale(path: Path) -> None:
    """A record taken over before its first append is the second owner's, and the first one makes no tables in it."""
    old = SqliteJournal.create(path)
    assert (old.epoch, list(old.events())) == (1, [])
    path.with_suffix(".lock").unlink()
    new = SqliteJournal.open(path)
    with pytest.raises(OwnershipLost, match="taken over"):
        append(old, event(1))
    append(new, event(1))
    assert new.epoch == 2
    assert [event.seq for event in new.events()] == [1]
    new.close()
    old.close()


def test_a_stale_owner_writes_nothing(path: Path) -> None:
    """With the lock file deleted under it, the old owner's append raises OwnershipLost and leaves no trace."""
    old = SqliteJournal.create(path)
    append(old, event(1))
    path.with_suffix(".lock").unlink()
    new = SqliteJournal.open(path)
    with pytest.raises(OwnershipLost, match="taken over"):
        append(old, event(2, "old"))
    append(new, event(2, "new"))
    assert [found.data["message"] for found in new.events()] == ["", "new"]
    old.close()
    new.close()


def test_only_the_owner_may_read_the_files(path: Path) -> None:
    """The record, its WAL, its shared memory and its lock have mode 0600 whatever the umask."""
    before = os.umask(0)
    try:
        journal = SqliteJournal.create(path)
        append(journal, event(1))
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    journal.close()
    assert modes == dict.fromkeys(["r.sqlite", "r.sqlite-wal", "r.sqlite-shm", "r.lock"], 0o600)


def test_a_closed_record_is_one_file(path: Path) -> None:
    """Closing folds the WAL in, so that a run can be copied as one file."""
    journal = SqliteJournal.create(path)
    append(journal, event(1))
    assert len(list(journal.events())) == 1
    journal.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["r.lock", "r.sqlite"]


def test_commits_are_synchronous(path: Path) -> None:
    """The record is in WAL mode and the owner's connection waits for the disk at each commit."""
    journal = SqliteJournal.create(path)
    connection = journal._writer._connection  # pyright: ignore
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    journal.close()


def test_a_long_run_does_not_keep_all_of_itself_in_the_wal(path: Path) -> None:
    """Every megabyte or so it is moved into the file, while the run goes on."""
    journal = SqliteJournal.create(path)
    for seq in range(1, 201):
        append(journal, event(seq, "x" * 50_000))
    wal, record = path.with_name("r.sqlite-wal").stat().st_size, path.stat().st_size
    assert wal < 4_000_000 < record
    journal.close()
    assert seqs(path) == list(range(1, 201))


def test_large_bodies_are_stored_once(path: Path) -> None:
    """Equal bodies over 64 KB are one blob, and are not in the events table."""
    journal = SqliteJournal.create(path)
    append(journal, event(1, "x" * 70_000), event(2, "x" * 70_000), event(3, "x" * 100))
    assert [len(found.data["message"]) for found in journal.events()] == [70_000, 70_000, 100]
    journal.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*), sum(length(body)) > 70000 FROM blobs").fetchone() == (1, 1)
    assert connection.execute("SELECT count(*) FROM events WHERE body IS NULL").fetchone() == (2,)
    connection.close()


@pytest.mark.slow
def test_a_wal_cut_at_any_byte_still_opens(path: Path, tmp_path: Path) -> None:
    """At each byte (each tenth but in a soak): what is left is the first batches, whole, and ever more of them."""
    small = sqlite3.connect(path)
    small.execute("PRAGMA page_size = 512")  # many frames in few bytes
    small.execute("VACUUM")
    small.close()
    journal = SqliteJournal.open(path)
    ends = [0]
    for size in (2, 1, 3):
        batch = [event(ends[-1] + n, "x" * 100) for n in range(1, size + 1)]
        asyncio.run(journal.append(batch, {f"blob {size}": b"y" * 100}))
        ends.append(batch[-1].seq)
    database, wal = path.read_bytes(), path.with_name("r.sqlite-wal").read_bytes()
    journal.close()
    assert len(wal) > 10 * (512 + 24)
    cut = tmp_path / "cut" / "r.sqlite"
    cut.parent.mkdir()
    cut.write_bytes(database)
    lengths: list[int] = []
    for offset in (*range(0, len(wal), STEP), len(wal)):
        cut.with_name("r.sqlite-wal").write_bytes(wal[:offset])
        found = seqs(cut)
        assert found == list(range(1, len(found) + 1)), offset
        lengths.append(len(found))
        cut.with_name("r.sqlite-shm").unlink(missing_ok=True)
    assert lengths == sorted(lengths), "more of the WAL never gives less of the record"
    assert list(dict.fromkeys(lengths)) == ends


@pytest.mark.slow
def test_a_wal_cut_anywhere_can_be_owned_and_gone_on_with(path: Path, tmp_path: Path) -> None:
    """Whatever is left of the WAL, readers and owners get a gapless beginning of the record, in whole batches."""
    journal = SqliteJournal.create(path)
    for seq in range(1, 41, 2):
        append(journal, event(seq), event(seq + 1))
    whole = path.with_name("r.sqlite-wal").read_bytes()
    cut = tmp_path / "cut" / "r.sqlite"
    cut.parent.mkdir()
    frame = 4096 + 24
    bounds = {32 + n * frame + d for n in range(len(whole) // frame + 1) for d in (-1, 0, 1, 24, 25)}
    offsets = sorted(
        {0, 1, 31, 32, len(whole)} | {n for n in bounds if 0 <= n <= len(whole)} | set(range(0, len(whole), 997))
    )
    lengths: list[int] = []
    for offset in offsets:
        for file in cut.parent.iterdir():
            file.unlink()
        shutil.copyfile(path, cut)
        cut.with_name("r.sqlite-wal").write_bytes(whole[:offset])
        found = seqs(cut)
        assert found == list(range(1, len(found) + 1))
        assert len(found) % 2 == 0
        lengths.append(len(found))
        owner = SqliteJournal.open(cut)
        append(owner, event(len(found) + 1))
        owner.close()
        assert seqs(cut) == [*found, len(found) + 1]
    journal.close()
    assert lengths == sorted(lengths), "more of the WAL never gives less of the record"
    assert lengths[0] == 0
    assert lengths[-1] == 40


def test_a_full_database_is_one_sentence_and_loses_nothing(path: Path) -> None:
    """When SQLite finds the disk full, the append fails whole, says what to do, and works again once there is room."""
    journal = SqliteJournal.create(path)
    append(journal, event(1))
    connection = journal._writer._connection  # pyright: ignore
    connection.execute("PRAGMA max_page_count = 10")
    with pytest.raises(StorageError, match=r"disk is full at .*r\.sqlite.*Free space") as failed:
        append(journal, event(2, "x" * 60_000))
    assert failed.value.exit_code == 2
    connection.execute("PRAGMA max_page_count = 100000")
    append(journal, event(2, "now"))
    journal.close()
    assert seqs(path) == [1, 2]


def test_a_limit_of_the_system_is_a_storage_error(path: Path) -> None:
    """A write the system refuses is one StorageError, and all that was acknowledged is there."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    ended = subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("chargehand.errors.StorageError: The disk ")
    assert "nothing more was recorded" in last
    acknowledged = int(ended.stdout.split()[-1])
    assert seqs(path) == list(range(1, acknowledged + 1))


def test_a_newer_record_is_refused_with_the_remedy(path: Path) -> None:
    """A record of a later format raises JournalTooNew, for readers and owners, and is left as it was."""
    SqliteJournal.create(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    for opened in (SqliteJournal.read, SqliteJournal.open, SqliteJournal.open):
        with pytest.raises(JournalTooNew, match=r"run r was written by a newer chargehand \(format \d.*Upgrade"):
            opened(path)


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look at" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_record_is_a_storage_error(path: Path, content: bytes) -> None:
    """A file that is no database raises StorageError naming the file, and leaves the run free."""
    path.write_bytes(content)
    for opened in (SqliteJournal.read, SqliteJournal.open, SqliteJournal.open):
        with pytest.raises(StorageError, match=r"r\.sqlite is damaged"):
            opened(path)


def test_another_database_is_not_taken_for_a_record(path: Path) -> None:
    """Somebody else's database is refused, not written to."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    with pytest.raises(StorageError, match="not a record of chargehand"):
        SqliteJournal.open(path)


def test_a_run_that_begins_while_it_is_opened_is_not_damaged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commit, between a reader's look at the format and its look at the tables."""
    owner = SqliteJournal.create(path)
    connect = sqlite3.connect
    committed: list[str] = []

    def commit_before(statement: str) -> None:
        if "sqlite_master" in statement and not committed:
            committed.append(statement)
            append(owner, event(1))

    def connect_traced(*given: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*given, **options)
        connection.set_trace_callback(commit_before)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_traced)
    assert seqs(path) == [1]
    assert committed
    owner.close()


def test_an_empty_file_is_an_empty_run(path: Path) -> None:
    """A crash right after the file was made leaves a run without events that can be read and owned."""
    path.touch()
    assert seqs(path) == []
    journal = SqliteJournal.open(path)
    append(journal, event(1))
    journal.close()
    assert seqs(path) == [1]


def test_a_missing_record_is_not_made(path: Path) -> None:
    """Opening or reading what is not there raises RunNotFound and creates nothing."""
    for opened in (SqliteJournal.read, SqliteJournal.open):
        with pytest.raises(RunNotFound, match="no record of run r"):
            opened(path)
    assert list(path.parent.iterdir()) == []


def test_a_record_is_created_once(path: Path) -> None:
    """Creating over an existing record fails and leaves it alone."""
    journal = SqliteJournal.create(path)
    append(journal, event(1))
    journal.close()
    with pytest.raises(StorageError, match="file exists"):
        SqliteJournal.create(path)
    assert seqs(path) == [1]


def test_a_reader_cannot_write(path: Path) -> None:
    """Appending through a reader, or after closing, is a StorageError."""
    owner = SqliteJournal.create(path)
    owner.close()
    reader = SqliteJournal.read(path)
    for journal in (owner, reader):
        with pytest.raises(StorageError, match="not open for writing"):
            append(journal, event(1))
    reader.close()
    with pytest.raises(StorageError, match="was closed"):
        list(reader.events())


def test_a_database_gone_read_only_is_one_sentence(path: Path) -> None:
    """A write that SQLite refuses as read-only says so with the remedy."""
    journal = SqliteJournal.create(path)
    connection = journal._writer._connection  # pyright: ignore
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StorageError, match=r"read-only.*home") as refused:
        append(journal, event(1))
    assert "CHARGEHAND_HOME" in refused.value.command
    journal.close()


def test_a_record_is_read_where_nothing_can_be_written(path: Path) -> None:
    """Without a place for SQLite's shared memory a closed record is read as it is; one with a WAL says why not."""
    journal = SqliteJournal.create(path)
    append(journal, event(1))
    left = path.with_name("r.sqlite-wal").read_bytes()
    journal.close()
    # A link to nowhere does to SQLite what a read-only home does, for root too.
    path.with_name("r.sqlite-shm").symlink_to(path.parent / "nowhere" / "shm")
    assert seqs(path) == [1]
    path.with_name("r.sqlite-wal").write_bytes(left)
    with pytest.raises(StorageError, match="Cannot open"):
        SqliteJournal.read(path)


def test_a_cancelled_append_is_whole_or_absent(path: Path) -> None:
    """Cancelling the wait never leaves half a batch, and the journal goes on."""

    async def cancelled() -> int:
        journal = SqliteJournal.create(path)
        waiting = asyncio.ensure_future(journal.append([event(n) for n in range(1, 501)], {}))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await journal.append([], {"h": b"after"})
        found = len(list(journal.events()))
        await journal.append([event(found + 1)], {})
        journal.close()
        return found

    assert asyncio.run(cancelled()) in {0, 500}


def test_many_runs_of_a_process_are_written_by_a_few_threads(tmp_path: Path) -> None:
    """The event loop waits while a thread starts: one for each of hundreds of runs would hold it up."""

    async def main() -> None:
        journals = [SqliteJournal.create(tmp_path / f"r{n}.sqlite") for n in range(20)]
        event = Event("r", 1, 0.0, None, None, Warned(message="x"))
        await asyncio.gather(*(journal.append([event], {}) for journal in journals))
        writing = [thread for thread in threading.enumerate() if thread.name.startswith("journal")]
        assert 1 <= len(writing) <= 4
        assert [len(list(journal.events())) for journal in journals] == [1] * 20
        for journal in journals:
            journal.close()

    asyncio.run(main())
