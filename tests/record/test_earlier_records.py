"""Homes that earlier versions wrote still open: `earlier/home.json` holds one whole, its records in format 1."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Shell

HERE = Path(__file__).parent / "earlier"
ENDED = "20261116-144851-3z14"
# Killed with two of three tasks done and a call under way.
KILLED = "20261116-144903-0mjs"
# Waits for a person to approve its plan.
WAITING = "20261116-144909-p4vp"
REVIEW = "20261116-144913-kx81"


@pytest.fixture
def earlier(shell: Shell) -> Shell:
    """A shell whose home is the one of before, with the paths in it led to this folder."""
    text = (HERE / "home.json").read_text(encoding="utf-8").replace("@FOLDER@", str(shell.folder))
    stored: dict[str, Any] = json.loads(text)
    (shell.folder / "script.json").write_bytes((HERE / "script.json").read_bytes())
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "a.py").write_text("def f(x=[]):\n    return eval(x)\n")
    runs = shell.home / "runs"
    runs.mkdir(parents=True)
    rows = stored["index"]["runs"]
    _write(shell.home / "index.sqlite", stored["index"], {"runs": rows})
    for name, run in stored["runs"].items():
        events = [[*event[:5], None if event[5] is None else event[5].encode(), event[6]] for event in run["events"]]
        blobs = [[hash, body.encode()] for hash, body in run["blobs"].items()]
        _write(runs / f"{name}.sqlite", run, {"meta": run["meta"], "events": events, "blobs": blobs})
    return shell


def _write(path: Path, stored: dict[str, Any], tables: dict[str, list[list[Any]]]) -> None:
    connection = sqlite3.connect(path)
    for statement in stored["schema"]:
        connection.execute(statement)
    for table, rows in tables.items():
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    connection.execute(f"PRAGMA user_version = {stored['version']}")
    connection.commit()
    connection.close()


def test_runs_of_before_are_listed(earlier: Shell) -> None:
    """The index is read as it is, without opening a record."""
    listed = {each["run"]: each["status"] for each in earlier("runs", "--json").json["runs"]}
    assert listed == {ENDED: "complete", KILLED: "interrupted", WAITING: "waiting", REVIEW: "complete"}


@pytest.mark.parametrize("run", [ENDED, KILLED, WAITING, REVIEW])
def test_a_run_of_before_is_shown_and_exported(earlier: Shell, run: str) -> None:
    """show, its JSON, and each format of trace give the run."""
    shown = earlier("show", run)
    assert (shown.code, run in shown.out + shown.err) == (0, True)
    assert earlier("show", run, "--json").json["run"] == run
    for form in ("json", "jsonl", "html"):
        exported = earlier("trace", run, "--format", form, "-o", "-")
        assert (exported.code, run in exported.out) == (0, True)


def test_a_run_of_before_that_ended_prints_its_report_on_resume(earlier: Shell) -> None:
    """Nothing is done again."""
    ended = earlier("resume", ENDED)
    assert (ended.code, ended.out.startswith("Oslo has 717,710 inhabitants [t1]")) == (0, True)


def test_a_run_killed_before_continues(earlier: Shell) -> None:
    """Its two done tasks stay done; the call under way is made again, and the answer is written."""
    ended = earlier("resume", KILLED, "--json")
    assert (ended.code, ended.json["status"]) == (0, "complete")
    replied = [event["key"] for event in _events(earlier, KILLED) if event["kind"] == "model_replied"]
    tasks = ["t1/1/model/1", "t2/1/model/1", "t3/1/model/1"]
    assert replied == ["@plan/1", *tasks, "@judge/1/1", "@synthesis/1"]


def test_a_run_that_waited_before_takes_its_answer(earlier: Shell) -> None:
    """The plan is approved and run as it was drafted then."""
    (question,) = earlier("show", WAITING, "--json").json["questions"]
    assert earlier("answer", WAITING, question["id"], "approve").code == 0
    assert earlier("resume", WAITING).code == 0


@pytest.mark.slow
def test_a_review_of_before_is_run_again(earlier: Shell) -> None:
    """rerun finds the same findings in the same file."""
    before = earlier("show", REVIEW, "--json").json["findings"]
    again = earlier("rerun", REVIEW, "--json").json
    assert [each["category"] for each in again["findings"]] == [each["category"] for each in before]


def _events(shell: Shell, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("trace", run, "--format", "jsonl", "-o", "-").out.splitlines()]


@pytest.mark.parametrize("run", [ENDED, KILLED])
def test_runs_of_before_can_be_forked(earlier: Shell, run: str) -> None:
    """What was done is taken over, the rest is done by the plan of before."""
    tasks = [each["id"] for each in earlier("show", run, "--json").json["plan"]["tasks"]]
    forked = earlier("fork", run, "--at", tasks[-1], "--json").json
    assert forked["run"] != run
    assert [each["task"] for each in forked["outcomes"]] == tasks
    assert {each["status"] for each in forked["outcomes"]} == {"done"}
    assert forked["outcomes"][0]["usage"]["calls"] == 0
