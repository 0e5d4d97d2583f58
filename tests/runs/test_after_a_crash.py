"""What is said of runs that were killed, that never began, and whose record went away under them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chargehand.record.home import Home
from tests.cli.terminal import Shell, finished, plan, process, slow, task
from tests.loopback import Answer, Seen, answer_json, serving
from tests.pace import PATIENCE_S

MODEL = "openai:some-model"
SAID = {"summary": "A few words.", "output": {"text": "Words that are its own."}, "claims": [], "confidence": 80}
USED = (300, 20, 0)


def events(shell: Shell) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]


def settled(shell: Shell) -> int:
    return sum(event["tokens"] for event in events(shell) if event["kind"] == "budget_settled")


def tokens(report: dict[str, Any]) -> int:
    return report["usage"]["input_tokens"] + report["usage"]["output_tokens"]


@pytest.mark.parametrize("kill_at", [1, 2, 3, 5])
def test_a_killed_run_reports_no_less_than_was_served(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, kill_at: int
) -> None:
    """Shown, cancelled or resumed: what the provider served is in the usage, and the budget's lines add up to it."""
    served: list[tuple[int, int, int]] = []
    reached = threading.Event()
    holds = [True]

    def answer(seen: Seen) -> Answer:
        if holds[0] and len(served) + 1 >= kill_at:
            reached.set()
            served.append(USED)  # the provider did its work, and bills it, whether or not anybody is there to read it
            return Answer(silent=True)
        served.append(USED)
        if seen.role == "synthesizer":
            return answer_json({"answer": "All is well [t1, t2, t3, t4].", "confidence": 80}, usage=USED)
        return answer_json(SAID, usage=USED)

    given = shell.write("plan.json", plan(*(task(f"t{n}") for n in range(1, 5))))
    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
        args = ("run", "--plan", given, "--model", MODEL, "--max-concurrent", 2)
        victim = process(*args, home=shell.home)
        assert reached.wait(PATIENCE_S)
        victim.kill()
        victim.communicate()
        billed = sum(input + output for input, output, _ in served)
        shown = shell("show", "last", "--json").json
        assert shown["status"] == "interrupted"
        assert tokens(shown) >= billed
        assert any("broken off" in note and "(estimated)" in note for note in shown["notes"])
        holds[0] = False
        resumed = shell("resume", "last", "--json")
    assert resumed.code == 0, resumed.err
    assert tokens(resumed.json) >= sum(input + output for input, output, _ in served)
    assert tokens(resumed.json) == settled(shell)
    assert any("broken off" in note for note in resumed.json["notes"])
    assert tokens(shell("show", "last", "--json").json) == tokens(resumed.json)


def test_a_killed_run_that_is_cancelled_reports_what_was_in_flight(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report that `cancel` writes counts the calls it knows were sent."""
    reached = threading.Event()

    def answer(_: Seen) -> Answer:
        reached.set()
        return Answer(silent=True)

    given = shell.write("plan.json", plan(task("t1")))
    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
        victim = process("run", "--plan", given, "--model", MODEL, home=shell.home)
        assert reached.wait(PATIENCE_S)
        victim.kill()
        victim.communicate()
    assert shell("cancel", "last").code == 0
    shown = shell("show", "last", "--json").json
    assert (shown["status"], shown["usage"]["calls"], shown["usage"]["usd"]) == ("cancelled", 1, None)
    assert tokens(shown) > 0


@pytest.mark.parametrize("what", ["record", "runs", "home"])
def test_a_record_removed_under_a_run_is_an_error_that_still_prints_the_report(shell: Shell, what: str) -> None:
    """The answer is on stdout, what happened on stderr, and the exit code is not that of a run on record."""
    model = shell.script(slow(1.0, task="t2"))
    given = shell.write("plan.json", plan(task("t1"), task("t2")))
    child = process("run", "--plan", given, "--model", model, home=shell.home, cwd=shell.folder)
    assert child.stderr is not None
    while "t1 done" not in child.stderr.readline():
        pass
    (record,) = (shell.home / "runs").glob("*.sqlite")
    match what:
        case "record":
            for file in (shell.home / "runs").glob("*.sqlite*"):
                file.unlink()
        case "runs":
            shutil.rmtree(shell.home / "runs")
        case _:
            shutil.rmtree(shell.home)
    got = finished(child)
    assert "All is *well* [t1, t2]." in got.out
    assert got.code == 2
    assert f"The record of {record.stem} was removed while it ran" in got.complaint


def never_begun(shell: Shell) -> str:
    """A run as one leaves it that is killed right after its record was made."""
    home = Home(shell.home)
    journal = home.create()
    run, record = journal.run, journal.path
    kept = record.read_bytes()
    journal.close()
    record.write_bytes(kept)
    return run


def test_a_run_killed_before_its_first_event_is_shown_as_what_it_is(shell: Shell) -> None:
    """Listed, shown, traced and cancelled without a word that is not so, and without changing it."""
    run = never_begun(shell)
    (line,) = shell("runs", "--json").json["runs"]
    assert (line["run"], line["status"]) == (run, "interrupted")
    shown = shell("show", run)
    assert shown.code == 0
    assert run in shown.out
    assert "Stopped before anything of it was recorded" in shown.out
    assert "resume" not in shown.out
    data = shell("show", "last", "--json").json
    assert (data["run"], data["status"], data["usage"]["calls"]) == (run, "interrupted", 0)
    document = shell("trace", run).json
    assert (document["run"], document["summary"]["status"], document["events"]) == (run, "interrupted", [])
    for form in ("json", "jsonl", "html"):
        got = shell("trace", run, "--format", form, "-o", "-")
        assert got.code == 0
        assert "was stopped before anything of it was recorded" in got.err
    cancelled = shell("cancel", run)
    assert cancelled.code == 0
    assert "there is nothing to cancel" in cancelled.err
    for command in ("resume", "rerun"):
        got = shell(command, run)
        assert got.code == 2
        assert "it stopped before it began" in got.complaint
    with closing(sqlite3.connect(Path(shell.home) / "runs" / f"{run}.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_run_that_lost_its_events_is_not_one_that_never_began(shell: Shell) -> None:
    """All events deleted, or the file emptied: damaged, in every command that looks into it."""
    shell("run", "Say it", "--model", shell.script())
    (record,) = (shell.home / "runs").glob("*.sqlite")
    with closing(sqlite3.connect(record)) as connection, connection:
        connection.execute("DELETE FROM events")
    for command in ("show", "trace", "resume", "rerun", "cancel"):
        assert "damaged (its events are missing)" in shell(command, record.stem).complaint
    record.write_bytes(b"")
    for command in ("show", "trace", "resume", "rerun", "cancel"):
        assert "damaged (it is empty" in shell(command, record.stem).complaint
