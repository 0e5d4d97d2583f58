"""The home of runs: finding, listing with repair, cancelling, pruning; and that looking never makes anything."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.errors import RunNotFound, RunOwned, StorageError, UsageError
from chargehand.record.home import Home, default_path, new_run_id
from chargehand.record.index import RunIndex, RunInfo, summarise
from chargehand.record.journal import Journal
from chargehand.record.run_source import RunSource
from chargehand.record.sqlite_journal import SqliteJournal
from chargehand.values.status_words import STATUSES, RunStatus
from tests.counts import examples
from tests.events import make_event

# Owns a run of the home at argv[1], says its id, and waits to be killed.
OWNER = """
import sys
from pathlib import Path
from chargehand.record.home import Home

journal = Home(Path(sys.argv[1])).create()
print(journal.run, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def record(journal: SqliteJournal, *happened: tuple[str, dict[str, Any]], at: float = 1000.0) -> None:
    start = max((event.seq for event in journal.events()), default=0)
    events = [
        make_event(kind, run=journal.run, seq=start + n, at=at + n, **data)
        for n, (kind, data) in enumerate(happened, 1)
    ]
    asyncio.run(journal.append(events, {}))


def finished(home: Home, run: str, status: RunStatus = "complete", at: float = 1000.0) -> str:
    """A run that ended, known to its record and to the index."""
    journal = home.create(run)
    begun = {"request": {"text": f"request of {run}"}, "team": {"name": "general"}}
    record(journal, ("run_started", begun), ("run_ended", {"status": status}), at=at)
    journal.close()
    home.note(run, status=status, started=at + 1, ended=at + 2, request=f"request of {run}", team="general")
    return run


def listed(home: Home) -> dict[str, str]:
    return {info.run: info.status for info in home.runs()}


def test_the_home_is_where_the_environment_says() -> None:
    """CHARGEHAND_HOME wins; unset or empty, it is .chargehand in the user's folder."""
    assert default_path({"CHARGEHAND_HOME": "/elsewhere"}) == Path("/elsewhere")
    assert default_path({}) == default_path({"CHARGEHAND_HOME": ""}) == Path.home() / ".chargehand"


def test_run_ids_sort_by_time_and_can_be_typed() -> None:
    """An id is the time in UTC and four characters."""
    assert re.fullmatch(r"20231114-221320-[a-z0-9]{4}", new_run_id(1_700_000_000))
    assert new_run_id(1_700_000_000) < new_run_id(1_700_000_001)


def test_a_run_is_read_through_its_source(home: Home) -> None:
    """Events from anywhere in the record and what they fold to, while another process owns and writes it."""
    source: RunSource = home
    journal = home.create("r1")
    record(journal, ("run_started", {"request": {"text": "x"}}), ("warning", {"message": "m"}))
    assert [event.kind for event in source.events("r1", after=1)] == ["warning"]
    record(journal, ("run_ended", {"status": "failed", "report": {"answer": "none"}}))
    assert (source.state("r1").seq, source.state("r1").status) == (3, "failed")
    assert source.state(source.find("r")).report == {"answer": "none"}
    journal.close()
    with pytest.raises(RunNotFound):
        next(source.events("nowhere"))


def test_looking_makes_nothing(home: Home) -> None:
    """Reading, listing and finding in a home that is not there leave it so."""
    assert home.runs() == []
    assert home.owner("x") is None
    assert home.cancel_requested("x") is False
    for look in (home.read, home.open, home.find, home.folder, home.request_cancel):
        with pytest.raises(RunNotFound):
            look("x")
    with pytest.raises(RunNotFound, match=r"no runs in .* yet"):
        home.find("last")
    assert not home.path.exists()


def test_a_home_is_for_its_owner_only(home: Home) -> None:
    """Folders are made with mode 0700 and files with 0600 whatever the umask."""
    before = os.umask(0)
    try:
        journal = home.create("r1")
        (home.folder("r1") / "stdin.txt").touch(mode=0o600)
        home.request_cancel("r1")
    finally:
        os.umask(before)
    journal.close()
    for file in (home.path, *home.path.rglob("*")):
        assert file.stat().st_mode & 0o777 == (0o700 if file.is_dir() else 0o600), file


def test_a_home_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    """A home that cannot be made is a StorageError with the remedy, and an empty list of runs."""
    (tmp_path / "file").touch()
    home = Home(tmp_path / "file" / "home")
    with pytest.raises(StorageError, match=r"Cannot use .*not a directory.*home") as refused:
        home.create()
    assert "CHARGEHAND_HOME" in refused.value.command
    assert home.runs() == []


@pytest.mark.parametrize("name", ["../up", "a/b", "a.sqlite", "", "last", ".x", "a b", "x" * 81])
def test_a_run_is_not_named_like_a_path(home: Home, name: str) -> None:
    """Names that could leave the home or mean something else are refused, when making and when looking."""
    with pytest.raises(UsageError, match="cannot name a run"):
        home.create(name)
    with pytest.raises(RunNotFound):
        home.read(name)


def test_a_run_is_created_once(home: Home) -> None:
    """A name that is taken is refused."""
    finished(home, "r1")
    with pytest.raises(UsageError, match="There is a run r1 already"):
        home.create("r1")


def test_runs_are_found_by_id_and_by_beginning(home: Home) -> None:
    """An id, or a beginning that fits one run only."""
    for run in ("20250101-000000-aaaa", "20250101-000000-aaab", "20250102-000000-cccc"):
        finished(home, run)
    assert home.find("20250101-000000-aaaa") == "20250101-000000-aaaa"
    assert home.find("20250102") == "20250102-000000-cccc"
    with pytest.raises(RunNotFound, match=r"^2 runs .*: 20250101-000000-aaab, 20250101-000000-aaaa\. "):
        home.find("20250101")
    for number in range(6):
        finished(home, f"20250103-00000{number}-dddd")
    with pytest.raises(RunNotFound, match=r"^6 runs .*: 20250103-000005-dddd, .* 20250103-000001-dddd and 1 more\. "):
        home.find("20250103")
    with pytest.raises(RunNotFound, match="Did you mean 20250102-000000-cccc"):
        home.find("20250102-000000-cccd")
    with pytest.raises(RunNotFound) as missing:
        home.find("")
    assert "`chargehand runs`" in missing.value.command


def test_a_whole_id_is_found_without_reading_the_folder(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests about one run take as long in a home of ten thousand; a path is not an id."""
    finished(home, "a")

    def refuse(path: object) -> list[str]:
        raise AssertionError(path)

    with monkeypatch.context() as patched:
        patched.setattr("os.listdir", refuse)
        assert home.find("a") == "a"
    with pytest.raises(RunNotFound):
        home.find("../runs/a")


def test_last_is_the_newest_run_without_a_parent(home: Home) -> None:
    """`last` goes by when a run started, and passes over runs that belong to others."""
    finished(home, "a")
    finished(home, "b")
    finished(home, "c")
    assert home.find("last") == "c"
    assert home.note("c", parent="b") is None
    assert home.find("last") == "b"


def test_the_index_says_what_was_noted(home: Home) -> None:
    """Notes are kept field by field; the request is cut to its head; running again takes back the end."""
    journal = home.create("r1")
    assert home.note("r1", request="q" * 500, team="general") is None
    assert home.note("r1", status="partial", ended=5.0) is None
    (info,) = home.runs()
    assert (info.status, info.ended, info.team, info.request) == ("partial", 5.0, "general", "q" * 200)
    assert home.note("r1", status="running") is None
    (info,) = home.runs()
    assert (info.status, info.ended, info.team) == ("running", None, "general")
    journal.close()


@pytest.mark.parametrize("damage", ["missing", "garbage", "other format", "row gone"])
def test_the_index_is_repaired_from_the_records(home: Home, damage: str) -> None:
    """Whatever happens to the index, the list is made again from the records, and kept."""
    finished(home, "a", "complete", at=1000.0)
    finished(home, "b", "failed", at=2000.0)
    index = home.path / "index.sqlite"
    match damage:
        case "missing":
            index.unlink()
        case "garbage":
            index.write_bytes(b"garbage " * 1000)
        case "other format":
            import sqlite3

            connection = sqlite3.connect(index)
            connection.executescript("DROP TABLE runs; CREATE TABLE runs(x); PRAGMA user_version = 9")
            connection.close()
        case _:
            home._index.put([], ["a", "b"])  # pyright: ignore
    expected = [("b", "failed", 2001.0, 2002.0), ("a", "complete", 1001.0, 1002.0)]
    for _ in range(2):
        infos = home.runs()
        assert [(info.run, info.status, info.started, info.ended) for info in infos] == expected
        assert {(info.request, info.team) for info in infos} == {
            ("request of a", "general"),
            ("request of b", "general"),
        }
    assert set(home._index.load()) == {"a", "b"}  # pyright: ignore
    assert index.stat().st_mode & 0o777 == 0o600


def test_listing_runs_at_rest_makes_no_files_beside_their_records(home: Home) -> None:
    """The folder is read for each list after a change; two more files for each run would make that slow."""
    for run in ("a", "b"):
        finished(home, run)
    (home.path / "index.sqlite").unlink()
    before = sorted(os.listdir(home.path / "runs"))
    assert listed(home) == {"a": "complete", "b": "complete"}
    assert sorted(os.listdir(home.path / "runs")) == before


@pytest.mark.parametrize("meanwhile", ["changed", "not readable then"])
def test_a_record_that_a_process_opens_while_it_is_listed_is_read_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """What was read from the file alone counts only if the record was at rest all the time."""
    finished(home, "a", "partial")
    (home.path / "index.sqlite").unlink()
    reads: list[RunStatus] = []

    def fold(run: str, journal: Journal, started: float) -> RunInfo:
        info = summarise(run, journal, started)
        if not reads:
            owner = home.open(run)
            # Longer, because both changes may come in one tick of the file system's clock.
            begun = ("run_started", {"request": {"text": "again " * 2_000}})
            record(owner, begun, ("run_ended", {"status": "complete"}))
            owner.close()
        reads.append(info.status)
        if len(reads) == 1 and meanwhile != "changed":
            raise StorageError("The file is a mixture of two states.")
        return info

    monkeypatch.setattr("chargehand.record.home.summarise", fold)
    assert listed(home) == {"a": "complete"}
    assert reads == ["partial", "complete"]


def test_runs_that_another_process_makes_and_removes_are_seen_in_the_next_list(home: Home) -> None:
    """Also by a reader that has listed before, and also if the other process was killed before it used the index."""
    theirs = Home(home.path)
    finished(theirs, "a")
    assert listed(home) == {"a": "complete"}
    journal = theirs.create("b")
    record(journal, ("run_started", {}))
    assert listed(home) == {"a": "complete", "b": "running"}
    journal.close()
    assert listed(home) == {"a": "complete", "b": "interrupted"}
    theirs.prune(keep=0)
    assert listed(home) == {}


def test_a_failing_index_never_fails_a_run(home: Home) -> None:
    """With the index unusable runs are made, noted with a warning, and listed."""
    home.path.mkdir()
    (home.path / "index.sqlite").mkdir()
    finished(home, "a")
    warning = home.note("a", status="complete")
    assert warning is not None
    assert "list of runs was not updated" in warning
    assert listed(home) == {"a": "complete"}


def test_a_run_whose_record_is_unreadable_is_still_listed(home: Home) -> None:
    """A damaged record is listed as failed, saying why, until it can be read again."""
    finished(home, "a")
    record_file = home.path / "runs" / "a.sqlite"
    whole = record_file.read_bytes()
    (home.path / "index.sqlite").unlink()
    record_file.write_bytes(b"garbage " * 1000)
    (info,) = home.runs()
    assert info.status == "failed"
    assert "is damaged" in info.request or "a.sqlite" in info.request
    record_file.write_bytes(whole)
    assert listed(home) == {"a": "complete"}


def test_a_run_whose_owner_died_is_interrupted(home: Home) -> None:
    """While its process lives a run is running and owned; killed, interrupted and free at once; resumed, running."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        run = process.stdout.readline().strip()
        assert listed(home) == {run: "running"}
        assert f"process {process.pid} on" in (home.owner(run) or "")
        with pytest.raises(RunOwned):
            home.open(run)
        assert home.prune(keep=0) == []
        process.kill()
    assert home.owner(run) is None
    assert listed(home) == {run: "interrupted"}
    resumed = home.open(run)
    assert listed(home) == {run: "running"}
    resumed.close()


def test_an_end_the_index_missed_is_found_in_the_record(home: Home) -> None:
    """A crash between the run's end and the note of it leaves no run shown as interrupted."""
    finished(home, "a", "partial")
    home.note("a", status="running")
    assert listed(home) == {"a": "partial"}


def test_an_open_question_makes_a_run_wait(home: Home) -> None:
    """A record that stops at an unanswered question is waiting; answered, it is interrupted."""
    journal = home.create("a")
    record(journal, ("run_started", {"request": {"text": "plain text"}}), ("question_asked", {"key": "t1/ask/1"}))
    journal.close()
    (info,) = home.runs()
    assert (info.status, info.request, info.team) == ("waiting", "plain text", None)
    journal = home.open("a")
    record(journal, ("question_answered", {"key": "t1/ask/1"}))
    journal.close()
    (home.path / "index.sqlite").unlink()
    assert listed(home) == {"a": "interrupted"}


def test_a_run_the_index_has_not_heard_of_is_noted_whole(home: Home) -> None:
    """The line of a run that is noted first when it goes on, or cancelled, says what its record says."""
    journal = home.create("a")
    begun = {"request": {"text": "count the boats"}, "team": {"name": "general"}}
    record(journal, ("run_started", begun), at=1000.0)
    assert home.note("a", status="running") is None
    (info,) = home.runs()
    assert (info.status, info.request, info.team, info.started) == ("running", "count the boats", "general", 1001.0)
    journal.close()


def test_a_run_that_says_when_it_started_is_noted_unread(home: Home) -> None:
    """With `started` the line is made of what is given."""
    home.create("a").close()
    assert home.note("a", status="complete", started=5.0, ended=7.0, request="why", team="general") is None
    (info,) = home.runs()
    assert (info.status, info.started, info.ended, info.request) == ("complete", 5.0, 7.0, "why")


def test_the_list_is_newest_first_and_can_be_cut(home: Home) -> None:
    """`runs(limit)` gives the newest ones."""
    for number, run in enumerate(("c", "a", "b")):
        finished(home, run, at=1000.0 + number)
    assert [info.run for info in home.runs()] == ["b", "a", "c"]
    assert [info.run for info in home.runs(2)] == ["b", "a"]


@pytest.mark.parametrize(
    "name", [".sqlite", "a b.sqlite", "a.sqlite.sqlite", "a.sqlite\n", "-a.sqlite", "a.sqlite-wal", "a.lock", "asqlite"]
)
def test_a_file_that_is_not_named_like_a_record_is_not_a_run(home: Home, name: str) -> None:
    """Neither before the runs are in the index, nor after."""
    run = finished(home, "b")
    (home.path / "runs" / name).touch()
    for _ in range(2):
        assert [info.run for info in home.runs()] == [run]


def test_cancelling_is_a_marker_any_process_can_set(home: Home) -> None:
    """The wish to cancel is seen through another handle, until cleared; clearing twice is fine."""
    finished(home, "a")
    other = Home(home.path)
    assert not other.cancel_requested("a")
    home.request_cancel("a")
    home.request_cancel("a")
    assert other.cancel_requested("a")
    other.clear_cancel("a")
    other.clear_cancel("a")
    assert not home.cancel_requested("a")


def test_pruning_removes_all_of_a_run(home: Home) -> None:
    """Record, lock, marker, folder and line go; other runs stay whole."""
    finished(home, "old")
    finished(home, "new", at=2000.0)
    (home.folder("old") / "sub").mkdir()
    (home.folder("old") / "sub" / "stdin.txt").write_text("x")
    home.request_cancel("old")
    home.runs()
    assert home.prune(keep=1) == ["old"]
    assert sorted(file.name for file in (home.path / "runs").iterdir()) == ["new.lock", "new.sqlite"]
    assert listed(home) == {"new": "complete"}
    with pytest.raises(RunNotFound):
        home.read("old")


def test_pruning_by_age_looks_at_the_end(home: Home) -> None:
    """Runs that ended longer ago go; with `keep` besides, only those that are not among the newest."""
    now = time.time()
    for run, days in (("a", 40), ("b", 20), ("c", 1)):
        finished(home, run)
        home.note(run, status="complete", ended=now - days * 86_400)
    assert home.prune(keep=2, older_than_days=10) == ["a"]
    assert home.prune(older_than_days=10) == ["b"]
    assert home.prune(older_than_days=10) == []
    assert listed(home) == {"c": "complete"}


def test_pruning_spares_runs_that_wait_unless_told(home: Home) -> None:
    """A run waiting for a person goes only when `waiting` is named; nothing at all said is an error."""
    finished(home, "w")
    home.note("w", status="waiting")
    finished(home, "f")
    home.note("f", status="failed")
    assert home.prune(keep=0, statuses=["complete"]) == []
    assert home.prune(keep=0) == ["f"]
    assert home.prune(statuses=["waiting"]) == ["w"]
    with pytest.raises(UsageError, match="Say which runs"):
        home.prune()


def test_pruning_never_removes_an_owned_run(home: Home) -> None:
    """Even told to remove running ones, a run somebody owns stays."""
    journal = home.create("a")
    assert home.prune(keep=0, statuses=["running", "interrupted"]) == []
    journal.close()
    assert home.prune(keep=0, statuses=["running", "interrupted"]) == ["a"]


STEPS = st.sampled_from(["put", "drop", "read", "replace file"])


@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 5), st.sampled_from(STATUSES)), max_size=25))
@settings(max_examples=examples(60), deadline=None)
def test_an_index_that_was_read_before_sees_what_others_wrote(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, RunStatus]]
) -> None:
    """Lines that were added, changed and removed by another process, or a file that was made again."""
    path = tmp_path_factory.mktemp("index") / "index.sqlite"
    ours, theirs = RunIndex(path), RunIndex(path)
    gone = False
    for step, number, status in steps:
        match step:
            case "put":
                theirs.put([RunInfo(run=f"r{number}", started=float(number), status=status)])
            case "drop":
                theirs.put([], [f"r{number}"])
                gone = True
            case "replace file":
                # As a copy of the home: another file under the same name.
                path.rename(path.with_suffix(".old")) if path.exists() else None
            case _:
                # That runs are gone shows in the folder of runs.
                assert ours.load(all_again=gone) == RunIndex(path).load()
                gone = False
    assert ours.load(all_again=gone) == RunIndex(path).load()
