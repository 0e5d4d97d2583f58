"""A record damaged in any way is the typed error or gives what it gave before: never a bug, never another story."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.terminal import Result, Shell, planned, task

SOAK = os.environ.get("CHARGEHAND_SOAK") == "1"
# Damages of a record that ended, and as many of one that was killed: 300 of each, a tenth of them by default.
BATCHES = 10 if SOAK else 1
BATCH = 30
# The number of the record's format in SQLite's header: 3 there is a newer chargehand's, and nothing else.
VERSION_BYTES = range(60, 64)
LOOKS: tuple[tuple[str, ...], ...] = (
    ("show", "RUN"),
    ("show", "RUN", "--json"),
    ("trace", "RUN", "--format", "json"),
    ("trace", "RUN", "--format", "jsonl"),
    ("trace", "RUN", "--format", "html", "-o", "-"),
    ("runs", "--json"),
)
ACTS: tuple[tuple[str, ...], ...] = (("resume", "RUN", "--json"), ("rerun", "RUN", "--json"), ("cancel", "RUN"))

Damage = Callable[[Path, random.Random], str]


def truncate(record: Path, chance: random.Random) -> str:
    size = chance.randrange(record.stat().st_size)
    os.truncate(record, size)
    return f"cut to {size} bytes"


def empty(record: Path, _: random.Random) -> str:
    os.truncate(record, 0)
    return "emptied"


def flip(record: Path, chance: random.Random) -> str:
    body = bytearray(record.read_bytes())
    at = [chance.randrange(len(body) if chance.random() < 0.8 else 100) for _ in range(chance.randint(1, 4))]
    for place in at:
        body[place] ^= 1 << chance.randrange(8)
    record.write_bytes(body)
    return f"bits flipped at {sorted(at)}" + (" (format)" if set(at) & set(VERSION_BYTES) else "")


def zero(record: Path, chance: random.Random) -> str:
    body = bytearray(record.read_bytes())
    page = chance.randrange(0, len(body), 4096)
    body[page : page + 4096] = bytes(len(body[page : page + 4096]))
    record.write_bytes(body)
    return f"page at {page} zeroed" + (" (format)" if page == 0 else "")


def overwrite(record: Path, chance: random.Random) -> str:
    body = bytearray(record.read_bytes())
    at = chance.randrange(len(body))
    noise = chance.randbytes(chance.choice((8, 64, 5000)))
    body[at : at + len(noise)] = noise
    record.write_bytes(body)
    return f"{len(noise)} bytes of noise at {at}" + (" (format)" if at < VERSION_BYTES.stop else "")


def remove_blobs(record: Path, _: random.Random) -> str:
    return change(record, "DELETE FROM blobs")


def remove_a_row(record: Path, chance: random.Random) -> str:
    return change(record, f"DELETE FROM events WHERE seq = {chance.randint(1, events_in(record) - 1)}")


def remove_the_first_rows(record: Path, chance: random.Random) -> str:
    return change(record, f"DELETE FROM events WHERE seq <= {chance.randint(1, events_in(record) - 1)}")


def remove_all_rows(record: Path, _: random.Random) -> str:
    return change(record, "DELETE FROM events")


def garble(record: Path, chance: random.Random) -> str:
    value = chance.choice(("'{'", "'[1]'", "'7'", "x'ff00'", "'null'", "'{}'", "7", "NULL", "'{\"key\": 5}'"))
    return change(record, f"UPDATE events SET body = {value} WHERE seq = {chance.randint(1, events_in(record))}")


def mistype(record: Path, chance: random.Random) -> str:
    column, value = chance.choice(
        (
            *(("at", "'soon'"), ("at", "9e999"), ("kind", "x'ff'"), ("kind", "'run_started'"), ("task", "7")),
            *(("attempt", "'first'"), ("crc", "'x'"), ("crc", "0"), ("seq", "9999"), ("blob", "'nowhere'")),
        )
    )
    extra = ", body = NULL" if column == "blob" else ""
    where = chance.randint(1, events_in(record))
    return change(record, f"UPDATE OR IGNORE events SET {column} = {value}{extra} WHERE seq = {where}")


def drop_a_table(record: Path, chance: random.Random) -> str:
    return change(record, f"DROP TABLE {chance.choice(('events', 'blobs', 'meta'))}")


def forget_the_owner(record: Path, chance: random.Random) -> str:
    return change(record, chance.choice(("DELETE FROM meta", "UPDATE meta SET epoch = x'00'")))


def spoil_the_index(record: Path, chance: random.Random) -> str:
    index = record.parent.parent / "index.sqlite"
    statement = chance.choice(
        (
            "UPDATE runs SET status = 'gone'",
            "UPDATE runs SET started = 'soon'",
            "DROP TABLE runs",
            "DELETE FROM runs",
            "ALTER TABLE runs RENAME COLUMN team TO crew",
        )
    )
    if chance.random() < 0.5:
        index.write_bytes(chance.randbytes(chance.choice((0, 10, 5000))))
        return "index is noise"
    return change(index, statement)


DAMAGES_THERE_ARE: tuple[Damage, ...] = (
    truncate, empty, flip, flip, flip, zero, overwrite, remove_blobs, remove_a_row, remove_the_first_rows,
    remove_all_rows, garble, garble, mistype, mistype, drop_a_table, forget_the_owner, spoil_the_index,
)  # fmt: skip


def change(database: Path, statement: str) -> str:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)
    return statement


def events_in(record: Path) -> int:
    with closing(sqlite3.connect(record)) as connection:
        return connection.execute("SELECT count(*) FROM events").fetchone()[0]


@dataclass(frozen=True)
class Sound:
    """A home with one run, and what each command says of it."""

    home: Path
    run: str
    says: dict[tuple[str, ...], Result]

    def record(self, home: Path) -> Path:
        return home / "runs" / f"{self.run}.sqlite"


def copied(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(target)
    shutil.copytree(source, target)


def said(shell: Shell, run: str, command: tuple[str, ...]) -> Result:
    return shell(*(run if part == "RUN" else part for part in command))


def sound(shell: Shell, *, ended: bool) -> Sound:
    """A run that ended, or that was killed in the middle; each command is tried on a copy of its own."""
    model = shell.script(planned(task("t1"), task("t2", "t1")))
    assert shell("run", "Say it", "--model", model).code == 0
    (record,) = (shell.home / "runs").glob("*.sqlite")
    if not ended:
        change(record, f"DELETE FROM events WHERE seq > {events_in(record) // 2}")
        (shell.home / "index.sqlite").unlink()
        shell("runs")
    kept = shell.folder / f"kept-{ended}"
    shutil.move(shell.home, kept)
    says: dict[tuple[str, ...], Result] = {}
    for command in (*LOOKS, *ACTS):
        copied(kept, shell.home)
        says[command] = said(shell, record.stem, command)
        assert says[command].code == 0, says[command].err
    return Sound(kept, record.stem, says)


def check(got: Result, before: Result, command: tuple[str, ...], what: str) -> bool:
    """Whether the damage was told; else the command did what it did before."""
    where = f"{' '.join(command)} after {what}: {got}"
    assert "Traceback" not in got.err, where
    assert "An error in chargehand itself" not in got.err, where
    if command[0] == "runs":
        assert got.code == 0, where
        (line,) = got.json["runs"]
        (was,) = before.json["runs"]
        if {**line, "started": was["started"], "ended": was["ended"]} == was:
            return False
        assert "damaged" in line["request"] or "newer chargehand" in line["request"], where
        return True
    if got.code == 2:
        told = "damaged" in got.complaint or ("(format)" in what and "newer chargehand" in got.complaint)
        assert told, where
        assert not got.out, where
        return True
    assert got.code == before.code, where
    if command in LOOKS:
        assert got.out == before.out, where
    elif "--json" in command:
        assert got.json["answer"] == before.json["answer"], where
        assert [o["output"] for o in got.json["outcomes"]] == [o["output"] for o in before.json["outcomes"]], where
    return False


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "killed"])
def test_a_record_damaged_at_random_is_never_a_bug_nor_another_story(shell: Shell, ended: bool, batch: int) -> None:
    """Each damage, each command: the typed error with the place and the remedy, or what was said before."""
    before = sound(shell, ended=ended)
    told = 0
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        chance = random.Random(f"{ended} {number}")
        spoil = DAMAGES_THERE_ARE[number % len(DAMAGES_THERE_ARE)]
        damaged = shell.folder / "damaged"
        copied(before.home, damaged)
        what = spoil(before.record(damaged), chance)
        commands = (*LOOKS, *ACTS) if SOAK else (*chance.sample(LOOKS, 3), *chance.sample(ACTS, 2))
        for command in commands:
            copied(damaged, shell.home)
            told += check(said(shell, before.run, command), before.says[command], command, f"{spoil.__name__}, {what}")
    assert told > BATCH, "most damages are told"


def test_what_is_said_of_a_damaged_record_names_the_place_and_the_remedy(shell: Shell) -> None:
    """One sentence for what, one for what to do; the exit code is that of a home that cannot be used."""
    before = sound(shell, ended=True)
    copied(before.home, shell.home)
    record = before.record(shell.home)
    change(record, "UPDATE events SET body = '{}' WHERE seq = 1")
    got = shell("show", before.run)
    assert got.code == 2
    for part in (str(record), "event 1 was changed", "Restore it from a copy, or start the run again"):
        assert part in got.complaint


def test_a_record_of_the_format_before_is_read_and_gone_on_with(shell: Shell) -> None:
    """Its events have no checksums; those that are added do."""
    before = sound(shell, ended=False)
    copied(before.home, shell.home)
    record = before.record(shell.home)
    for statement in (
        "ALTER TABLE events DROP COLUMN crc",
        "ALTER TABLE meta DROP COLUMN began",
        "PRAGMA user_version = 1",
    ):
        change(record, statement)
    assert shell("show", before.run, "--json").json == before.says["show", "RUN", "--json"].json
    got = shell("resume", before.run, "--json")
    assert (got.code, got.json["status"]) == (0, "complete")
    with closing(sqlite3.connect(record)) as connection:
        (unchecked,) = connection.execute("SELECT count(*) FROM events WHERE crc IS NULL").fetchone()
    assert 0 < unchecked < events_in(record)
    change(record, "UPDATE events SET body = '[]' WHERE seq = 1")
    got = shell("rerun", before.run)
    assert (got.code, "damaged" in got.complaint) == (2, True)


def test_json_in_the_trace_is_whole_or_not_given(shell: Shell) -> None:
    """A message that is gone from the record is damage, not a trace without it."""
    before = sound(shell, ended=True)
    copied(before.home, shell.home)
    assert json.loads(shell("trace", before.run).out)["messages"]
    change(before.record(shell.home), "UPDATE blobs SET body = x'7b7d'")
    got = shell("trace", before.run)
    assert (got.code, got.out, "damaged" in got.complaint) == (2, "", True)
