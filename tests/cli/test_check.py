"""`check` and `plan`, and plan files nobody should be able to break the command with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.terminal import Shell, plan, planned, task


def test_a_good_plan_is_ok(shell: Shell) -> None:
    """Exit code 0."""
    got = shell("check", shell.write("plan.json", plan(task("a"), task("b", "a"))), "--json")
    assert (got.code, got.json) == (0, {"ok": True, "problems": []})


def test_every_problem_is_named_at_once_with_file_and_line(shell: Shell) -> None:
    """The line is that of the task's id."""
    text = json.dumps(plan(task("a", "b"), task("b", "a"), task("c", "x", worker="nobody")), indent=1)
    path = shell.write("plan.json", text)
    got = shell("check", path, "--json")
    assert got.code == 2
    assert {problem["code"] for problem in got.json["problems"]} == {"cycle", "unknown_dependency", "unknown_worker"}
    line = text.splitlines().index('   "id": "c",') + 1
    unknown = next(problem for problem in got.json["problems"] if problem["code"] == "unknown_worker")
    assert unknown["message"].startswith(f"{path}:{line}: ")
    assert unknown.keys() == {"code", "severity", "task", "message"}
    assert "a -> b -> a" in shell("check", path).out


def test_warnings_alone_are_ok(shell: Shell) -> None:
    """A vague instruction does not stop a plan."""
    got = shell("check", shell.write("plan.json", plan(task("a") | {"instruction": "Do it"})), "--json")
    assert (got.code, got.json["ok"]) == (0, True)
    assert [problem["severity"] for problem in got.json["problems"]] == ["warning"]


def test_a_script_or_a_report_is_not_taken_for_a_plan(shell: Shell) -> None:
    """One line with what the file is and how it is used, wherever a plan is read."""
    script = shell.write("script.json", {"replies": []})
    shell("run", "Say it", "--model", shell.script())
    report = shell("show", "last", "--json").json
    whole = shell.write("report.json", report)
    for path, says in ((script, f"--model scripted:{script}"), (whole, f"show {report['run']} --plan --json")):
        for command in (("check", path), *((*each, "--plan", path) for each in (("run",), ("fork", "last")))):
            got = shell(*command)
            assert (got.code, len(got.complaint.splitlines()), says in got.complaint) == (2, 1, True)


def test_a_team_folder_is_checked(shell: Shell) -> None:
    """Problems come with file and line; a good one is ok."""
    folder = shell.folder / "team"
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text('name = "t"\ndescription = "d"\nsuprvisor = 1\n')
    (folder / "workers" / "w.md").write_text("---\nname: w\ndescription: Works\n---\nWork.\n")
    got = shell("check", folder, "--json")
    assert got.code == 2
    assert got.json["problems"][0]["message"].startswith("team.toml:3:1: ")
    (folder / "team.toml").write_text('name = "t"\ndescription = "d"\n')
    assert shell("check", folder).code == 0
    for name in ("x" * 5000, "~nosuchuser/x"):
        got = shell("check", shell.folder / "plan.json", "--team", name)
        assert (got.code, shell("check", name).code) == (2, 2), got.err
    assert shell("check", shell.write("plan.json", plan(task("a", worker="w"))), "--team", folder).code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("{\n  tasks", "not JSON: key must be a string at line 2 column 3"),
        ("[" * 100_000, "not JSON"),
        ("[]", "does not have the shape of a plan"),
        ('{"tasks": [{"id": 3}]}', "tasks[0].id"),
        ('{"tusks": []}', "tusks"),
        ("\x00\x01", "not JSON"),
        (json.dumps(plan()), "The plan has no tasks"),
        (json.dumps(plan(task("a", worker="nobody"))), "names the worker 'nobody'"),
    ],
)
def test_a_plan_that_cannot_be_run_is_exit_code_2(shell: Shell, content: str, said: str) -> None:
    """One complaint that names the problem; nothing is run."""
    got = shell("run", "--plan", shell.write("plan.json", content), "x", "--model", shell.script())
    assert (got.code, got.out) == (2, "")
    assert said in got.err
    assert got.complaint
    assert shell("runs", "--json").json == {"runs": []}


def test_the_problems_of_a_plan_to_run_have_the_lines_that_check_gives(shell: Shell) -> None:
    """Also when the plan has its shape, and only the team shows that it cannot be run."""
    path = shell.write(
        "plan.json", json.dumps(plan(task("a"), task("b", "nope"), task("c", worker="nobody")), indent=1)
    )
    checked = [line.split(": ", 1)[1].rsplit(" [")[0] for line in shell("check", path).out.splitlines()[:-1]]
    first, *lines = shell("run", "--plan", path, "x", "--model", shell.script()).err.splitlines()
    assert first == "chargehand: The plan cannot be run:"
    assert [line.strip() for line in lines] == checked
    assert all(line.startswith(f"{path}:") for line in checked)


def test_ten_thousand_tasks_are_refused_with_a_short_list(shell: Shell) -> None:
    """The message is capped however much is wrong."""
    path = shell.write("plan.json", plan(*(task(f"t{n}", worker="nobody") for n in range(10_000))))
    got = shell("run", "--plan", path, "--model", shell.script())
    assert got.code == 2
    assert "10,000 tasks" in got.err
    assert len(got.err) < 10_000
    checked = shell("check", path)
    assert checked.code == 2
    assert len(checked.out.splitlines()) < 300


def test_a_huge_plan_file_is_not_read(shell: Shell) -> None:
    """More than 50 MB: exit code 2."""
    path = shell.folder / "huge.json"
    with path.open("wb") as file:
        file.truncate(60_000_000)
    got = shell("check", path)
    assert got.code == 2
    assert "60 MB" in got.complaint


def test_every_misshapen_field_is_a_problem(shell: Shell) -> None:
    """Together with all else that is wrong, by line."""
    path = shell.write(
        "plan.json", json.dumps({"tasks": [{"id": 3}, task("b", "x") | {"best_of": 0}], "more": 1}, indent=1)
    )
    got = shell("check", path, "--json")
    assert got.code == 2
    assert got.json.keys() == {"ok", "problems"}
    assert [(problem["code"], problem["task"]) for problem in got.json["problems"]] == [
        ("invalid_id", None),
        ("empty_plan", None),
        ("missing_instruction", None),
        ("missing_criterion", None),
        ("fan_out", "b"),
        ("unknown_dependency", "b"),
    ]
    assert got.json["problems"][4]["message"].startswith(f"{path}:7: tasks[1].best_of: ")


def test_a_folder_is_no_plan(shell: Shell) -> None:
    """Exit code 2 for `run --plan`."""
    assert "is a folder" in shell("run", "--plan", shell.folder, "--model", shell.script()).complaint


def test_plan_prints_a_plan_that_can_be_run_and_its_cost(shell: Shell) -> None:
    """JSON on stdout, the estimate on stderr, nothing in the home."""
    got = shell("plan", "Say it", "--model", shell.script())
    assert [each["id"] for each in got.json["tasks"]] == ["t1", "t2"]
    assert "2 tasks, all in parallel" in got.err
    assert "cost unknown" in got.err
    assert shell("check", shell.write("plan.json", got.out)).code == 0
    assert shell("runs", "--json").json == {"runs": []}


@pytest.mark.parametrize(("form", "begins"), [("mermaid", "flowchart LR"), ("text", "Goal      Say something")])
def test_plan_is_drawn(shell: Shell, form: str, begins: str) -> None:
    """As Mermaid and as text."""
    assert shell("plan", "Say it", "--format", form, "--model", shell.script()).out.startswith(begins)


def test_a_planner_that_gives_no_plan_is_exit_code_1(shell: Shell) -> None:
    """After its problems were sent back twice."""
    bad: dict[str, Any] = planned(task("t1", worker="nobody"))
    for command in ("plan", "run"):
        got = shell(command, "Say it", "--model", shell.script(bad))
        assert (got.code, got.out) == (1, "")
        assert "no valid plan in 3 rounds" in got.complaint


def test_a_settings_file_is_not_taken_for_a_plan(shell: Shell) -> None:
    """The message names the command that checks it."""
    shell.write("chargehand.toml", "[models]\n")
    got = shell("check", "chargehand.toml")
    assert (got.code, "chargehand doctor" in got.complaint) == (2, True)
