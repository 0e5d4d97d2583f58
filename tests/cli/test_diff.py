"""`diff`: two runs beside each other, at the width of the terminal and as JSON."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from chargehand.record.home import Home
from tests.cli.terminal import Shell, finished, plan, planned, slow, task
from tests.cli.test_life import begun
from tests.golden import check_wording

LONG = "Bergen is cheaper by a fifth, and its harbour is larger than that of Oslo, which has more people. " * 3


def two_runs(shell: Shell) -> tuple[str, str]:
    """Two runs that differ in a task of the plan, in a result, in a status and in their answers."""
    fails = {"when": {"role": "worker", "task": "t3"}, "reply": {"error": {"status": 400}}}
    says = {"when": {"role": "worker", "task": "t2"}, "reply": {"json": {"summary": "s", "output": {"n": [1, 2]}}}}
    answers = {
        "when": {"role": "synthesizer"},
        "reply": {"json": {"answer": f"# Both\n\n{LONG} [t1, t2]\n\n日本語 [t1]"}},
    }
    first = shell.write("a.json", plan(task("t1"), task("t2"), task("t3")))
    other = shell.write("b.json", plan(task("t1"), task("t2", tier="large"), task("t3"), task("t4")))
    a = shell("run", "--plan", first, "--model", shell.script(), "--json").json["run"]
    b = shell("run", "--plan", other, "--model", shell.script(fails, says, answers), "--json").json["run"]
    return a, b


def test_json_has_plans_tasks_and_answers(shell: Shell) -> None:
    """One document; outcomes are as in the reports."""
    a, b = two_runs(shell)
    found = shell("diff", a, b, "--json").json
    assert (found["a"]["run"], found["b"]["run"]) == (a, b)
    assert [(each["task"], each["field"]) for each in found["plan"]] == [("t2", "tier"), ("t4", None)]
    assert {each["task"]: each["differs"] for each in found["tasks"]} == {
        "t1": [],
        "t2": ["output"],
        "t3": ["status", "output"],
        "t4": ["status"],
    }
    reported = {each["task"]: each for each in shell("show", b, "--json").json["outcomes"]}
    assert found["tasks"][1]["b"] == reported["t2"]
    assert not found["answer"]["same"]
    assert found["answer"]["b"].startswith("# Both")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Characters that take two columns count as two."""
    a, b = two_runs(shell)
    monkeypatch.setenv("COLUMNS", str(width))
    got = shell("diff", a, b)
    assert got.code == 0
    assert max(map(cell_len, got.out.splitlines())) <= width
    assert "日本語" in got.out


def test_a_run_without_an_answer_is_compared_by_the_status_of_its_tasks(shell: Shell) -> None:
    """What it says instead of an answer is how to continue it, which is not compared."""
    a = shell("run", "Say it", "--model", shell.script(), "--json").json["run"]
    shell("run", "Say it", "--approve", "--model", shell.script())
    b = Home(shell.home).find("last")
    assert shell("answer", b, "plan", "approve").code == 0
    before, said = shell("diff", a, b).out, shell("show", a, "--json").json["answer"]
    assert "b has no answer yet (waiting)" in before
    assert "chargehand resume" not in before
    assert said.splitlines()[0] in before
    child = begun(shell, shell.script(planned(task("t1"), task("t2", "t1")), slow()), "t1 started")
    c = Home(shell.home).find("last")

    def statuses() -> list[str]:
        return [line.split()[-2] for line in shell("diff", a, c).out.splitlines() if re.match(r"t\d ", line)]

    # A line is printed as soon as its event is emitted, a moment before the event is on disk.
    while (found := statuses()) == ["-", "-"]:
        pass
    child.kill()
    finished(child)
    assert found == ["running", "waiting"]


def test_a_run_that_is_not_there_is_named(shell: Shell) -> None:
    """As in `show`."""
    a, _ = two_runs(shell)
    got = shell("diff", a, "nowhere")
    assert got.code == shell("show", "nowhere").code
    assert "nowhere" in got.complaint


def test_many_tasks_are_listed_only_where_they_differ(shell: Shell) -> None:
    """The others are counted."""
    wide = shell.write("wide.json", plan(*(task(f"t{n}") for n in range(60))))
    fails = {"when": {"role": "worker", "task": "t7"}, "reply": {"error": {"status": 400}}}
    a = shell("run", "--plan", wide, "--model", shell.script(), "--json").json["run"]
    b = shell("run", "--plan", wide, "--model", shell.script(fails), "--json").json["run"]
    got = shell("diff", a, b).out
    assert "\nt7 " in got
    assert "\nt8 " not in got
    assert "59 more tasks" in got


def test_how_it_reads(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 60, 80 and 120 columns."""
    monkeypatch.setattr("chargehand.cli.diff._figures", lambda side: str(side.status))
    monkeypatch.setattr("chargehand.cli.diff._outcome", lambda outcome: "-" if outcome is None else outcome.status)
    a, b = two_runs(shell)
    pages: dict[str, str] = {}
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        pages[f"{width} columns"] = shell("diff", a, b).out.replace(a, "RUN-A").replace(b, "RUN-B")
    check_wording("run_diff", pages)


def test_a_single_run_is_compared_with_the_one_it_came_from(shell: Shell) -> None:
    """For a fork and a rerun; any other run needs a second one."""
    first = shell("run", "Say it", "--model", shell.script(), "--json").json["run"]
    for command in (("fork", first, "--at", "t1"), ("rerun", first)):
        other = shell(*command, "--json").json["run"]
        found = shell("diff", other, "--json").json
        assert (found["a"]["run"], found["b"]["run"]) == (first, other)
    assert "name the run to compare it with" in shell("diff", first).complaint


def rows(shell: Shell, first: str) -> list[str]:
    """The rows of the tasks t1, t2, ... beside those of the newest run, one space between words of a cell."""
    lines = shell("diff", first, "last").out.splitlines()
    return [re.sub(" {2,}", "  ", line) for line in lines if re.match(r"t\d ", line)]


def test_what_was_taken_over_is_called_reused(shell: Shell) -> None:
    """In a rerun and in a fork, as in `show`; it has neither a time nor a cost."""
    fails = {"when": {"role": "worker", "task": "t2"}, "reply": {"error": {"status": 400}}}
    made = shell.write("plan.json", plan(task("t1"), task("t2"), task("t3")))
    first = shell("run", "--plan", made, "--model", shell.script(fails), "--json").json["run"]
    shell("fork", first, "--at", "t3")
    assert [row.split("  ")[-2] for row in rows(shell, first)][:2] == ["done, reused", "failed, reused"]
    assert "reused" not in rows(shell, first)[2]
    shell("rerun", first, "--plan", made)
    assert [row.count("reused") for row in rows(shell, first)] == [1, 0, 1]


def test_a_run_is_not_compared_with_itself(shell: Shell) -> None:
    """Two names of one run are a mistake: exit code 2."""
    run = shell("run", "Say it", "--model", shell.script(), "--json").json["run"]
    got = shell("diff", "last", run)
    assert (got.code, run in got.complaint) == (2, True)
