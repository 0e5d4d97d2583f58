"""`show`: the table of tasks, the orders and the next commands of a run."""

from __future__ import annotations

from tests.cli.terminal import Shell, planned, slow, task


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
