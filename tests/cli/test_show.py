"""`show`: the table of tasks, the orders and the next commands of a run."""

from __future__ import annotations

from chargehand.record.home import Home
from chargehand.values.order import new_order
from tests.cli.terminal import Shell, finished, planned, slow, task
from tests.cli.test_life import begun


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
