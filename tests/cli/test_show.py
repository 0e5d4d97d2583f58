"""`show`: the table of tasks, the orders and the next commands of a run."""

from __future__ import annotations

import re

import pytest

from chargehand.record.home import Home
from chargehand.values.order import new_order
from tests.cli.terminal import DEFAULTS, Shell, finished, planned, slow, task
from tests.cli.test_life import begun
from tests.cli.test_run import failing


def test_a_task_has_one_time_in_both_views(shell: Shell) -> None:
    """What its calls took, not how long the attempt was open."""
    shell("run", "Say it", "--model", shell.script(planned(task("t1"), task("t2")), slow(1.0, "t1")))
    seconds = {each["task"]: each["usage"]["seconds"] for each in shell("show", "last", "--json").json["outcomes"]}
    [attempt] = shell("show", "last", "t1", "--json").json["attempts"]
    assert attempt["seconds"] == seconds["t1"]


def test_a_reused_attempt_has_no_time(shell: Shell) -> None:
    """It took none: the word is that of the table."""
    model = shell.script(planned(task("t1"), task("t2")))
    shell("run", "Say it", "--model", model)
    shell("rerun", "last", "--model", model)
    [line] = [line for line in shell("show", "last", "t1").out.splitlines() if line.startswith("attempt 1")]
    assert line.endswith("done, reused")


def test_a_task_whose_call_was_denied_is_not_reused(shell: Shell) -> None:
    """Nothing was sent for it, and nothing came from another run."""
    shell("run", "Say it", "--tokens", "2000", "--model", shell.script(planned(task("t1"), task("t2"))))
    outcomes = shell("show", "last", "--json").json["outcomes"]
    assert {(each["status"], each["usage"]["calls"]) for each in outcomes} == {("failed", 0)}
    assert not re.search(r"\breused\b", shell("show", "last").out)


def test_words_that_came_too_late_are_named(shell: Shell) -> None:
    """Sent during the last call of the task: the sender does not wait for the verdict, so `show` has it."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow(1.5)))
    home = Home(shell.home)
    run = home.find("last")
    home.orders(run).send(new_order("tell", task="t1", text="Give it in thousands."))
    got = finished(child)
    assert got.code == 0
    assert "the words for t1 came too late" in got.err
    [line] = [line for line in shell("show", run).out.splitlines() if line.startswith("order ")]
    assert "t1" in line
    assert '"Give it in thousands."' in line
    [order] = shell("show", run, "t1", "--json").json["orders"]
    assert (order["order"], order["verdict"], order["text"]) == ("tell", "too_late", "Give it in thousands.")
    [line] = [line for line in shell("show", run, "t1").out.splitlines() if line.startswith("order ")]
    assert line.endswith(f"chargehand steer {run} t1 --restart")


def test_an_order_to_a_run_that_has_ended_is_exit_code_1(shell: Shell) -> None:
    """Also to a cancelled one. To cancel what has ended is no mistake: it does not run, as was wanted."""
    shell("run", "Say it", "--model", shell.script())
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    cancelled = Home(shell.home).find("last")
    assert shell("cancel", cancelled).code == 0
    finished(child)
    complete = next(info.run for info in Home(shell.home).runs() if info.status == "complete")
    assert [shell("pause", run).code for run in (complete, cancelled)] == [1, 1]
    assert [shell("cancel", run).code for run in (complete, cancelled)] == [0, 0]
    assert [shell("steer", complete, "t1", *how).code for how in (("Use euros.",), ("--stop",))] == [1, 1]


def test_a_run_of_another_process_has_its_open_tasks_and_the_time_until_now(shell: Shell) -> None:
    """What runs and what waits for what; the next command follows it."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2"), task("t3", "t1")), slow()))
    run = Home(shell.home).find("last")
    last = max(event.at for event in Home(shell.home).events(run))
    first = next(Home(shell.home).events(run)).at
    # No event comes for 20 s: a clock that stands still with the last event never gets there.
    while (report := shell("show", run, "--json").json)["timing"]["wall_s"] < last + 1.0 - first:
        assert report["status"] == "running"
    shown = shell("show", run).out
    cells = {line.split()[0]: line.split() for line in shown.splitlines() if re.match(r"t\d ", line)}
    assert [row[2] for row in cells.values()] == ["running", "running", "waiting"]
    assert float(cells["t1"][4]) > 0.5
    assert cells["t3"][-2:] == ["after", "t1"]
    offered = [line.split("chargehand ")[1] for line in shown.splitlines()[-3:]]
    assert offered == [f"show {run} --watch", f"pause {run}", f"cancel {run}"]
    child.kill()
    finished(child)
    rows = [line.split()[2] for line in shell("show", run).out.splitlines() if re.match(r"t\d ", line)]
    assert rows == ["stopped", "stopped", "waiting"], "no process runs it any more"


def test_a_task_of_a_plan_that_waits_for_approval_is_shown(shell: Shell) -> None:
    """What it will be asked; an unknown task gets the names of the plan."""
    shell("run", "Say it", "--approve", "--model", shell.script())
    assert "t1, t2" in shell("show", "last", "t99").complaint
    detail = shell("show", "last", "t1", "--json").json
    assert (detail["status"], detail["instruction"]) == ("waiting", task("t1")["instruction"])


def test_the_row_of_the_rest_counts_time_and_tokens_of_the_same_calls(shell: Shell) -> None:
    """Also the attempts before --retry-failed and the answer that was written again; of a cancelled run the plan."""
    writes = {**DEFAULTS[2], "delay_ms": 400}
    made = {**planned(task("t1"), task("t2")), "delay_ms": 300}
    shell("run", "Say it", "--model", shell.script(made, failing("t2"), writes))
    first = shell("show", "last", "--json").json
    shell.script(made, writes)
    report = shell("resume", "last", "--retry-failed", "--json").json
    calls = [
        event.data["result"].get("seconds", 0.0)
        for event in Home(shell.home).events(report["run"])
        if event.kind == "model_replied"
    ]
    assert report["status"] == "complete"
    assert report["usage"]["seconds"] == pytest.approx(sum(calls), abs=0.01)
    # The answer was written again in 0.4 s, which a sum of fractions may miss by a little.
    assert report["usage"]["seconds"] > first["usage"]["seconds"] + 0.4 - 1e-6
    child = begun(shell, shell.script(made, slow()))
    shell("cancel", "last")
    finished(child)
    [row] = [line.split() for line in shell("show", "last").out.splitlines() if line.startswith("rest ")]
    assert row[1:3] == ["0.3", "s"]
    # What the calls that were broken off may have used is in that row, and not in those of their tasks.
    assert row[-2:] == ["broken", "off"]
    shown = shell("show", report["run"]).out
    assert not [line for line in shown.splitlines() if line.startswith("rest ") and "broken" in line]
