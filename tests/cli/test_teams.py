"""`teams new` and the schema of team.toml: a team to begin with, and what an editor is told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chargehand.team import shipped_teams
from chargehand.team import team_file as file
from chargehand.team.scaffold import REQUEST
from chargehand.team.team_schema import team_schema
from chargehand.team.team_tools import shipped_home
from tests.cli.terminal import Shell
from tests.pace import PATIENCE_S


def test_a_new_team_passes_its_check_and_runs_on_its_script(shell: Shell) -> None:
    """Without a key, to a complete answer; its eval passes and it is listed."""
    made = shell("teams", "new", "teams/mine")
    assert made.code == 0
    assert "mine/team.toml" in made.out
    checked = shell("check", "teams/mine", "--json")
    assert (checked.code, checked.json) == (0, {"ok": True, "problems": []})
    assert "teams/mine" in [team["ref"] for team in shell("teams", "--json").json["teams"]]


def test_a_folder_of_agents_is_listed_by_the_name_that_its_runs_have(shell: Shell) -> None:
    """With the folder to give as --team, and nothing where it has no description."""
    agents = shell.folder / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "clerk.md").write_text("---\nname: clerk\ndescription: Looks cities up\n---\nYou look.\n")
    for listed in (shell("teams").out, shell("teams", "show", ".claude/agents").out):
        assert "agents  (folder .claude/agents)\n    clerk" in listed


@pytest.mark.parametrize("name", ["mine", "my dir/it's"])
def test_the_line_to_try_a_new_team_works_as_it_is(shell: Shell, name: str) -> None:
    """Copied from the screen into a shell, whatever the folder is called."""
    said = shell("teams", "new", f"{name}/team1").err
    run, evaluate, test = (shlex.split(line) for line in said.partition("Try it:\n")[2].splitlines())
    ran = shell(*run[1:])
    assert ran.code == 0, ran.err
    assert ran.out.startswith("South is cheapest over 36 months")
    assert (run[0], evaluate[0], test) == ("chargehand", "chargehand", ["pytest", f"{name}/team1"])


@pytest.mark.slow
def test_a_new_team_passes_its_own_test_and_its_own_eval(shell: Shell) -> None:
    """As it is written, in a process that trusts nothing: a test of a team loads the team's tools by itself."""
    shell("teams", "new", "mine")
    evaluated = shell("eval", "mine", "--model", "scripted", "--no-single", "--json")
    assert evaluated.code == 0, evaluated.err
    assert [result["passed"] for result in evaluated.json["results"]] == [True]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "mine"]
    environment = {**os.environ, "CHARGEHAND_HOME": str(shell.folder / "elsewhere")}
    tested = subprocess.run(
        command, cwd=shell.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed" in tested.stdout


def test_a_new_team_works_in_parallel_and_uses_its_tool(shell: Shell) -> None:
    """Three readers that wait for nobody, then the tool of tools.py; nothing is warned of or contradicted."""
    shell("teams", "new", "mine")
    done = shell("run", REQUEST, "--team", "mine", "--with", "mine/examples/material", "--model", "scripted", "--json")
    assert [len(task["depends_on"]) for task in done.json["plan"]["tasks"]] == [0, 0, 0, 3]
    assert (done.json["status"], done.json["contradictions"], done.json["notes"]) == ("complete", [], [])
    assert "warning" not in done.err
    traced = shell("trace", "last", "--format", "jsonl").out
    assert traced.count('"kind": "tool_returned"') - traced.count('"read_material"') > 0


def test_a_script_does_not_plan_a_request_it_was_not_written_for(shell: Shell) -> None:
    """Neither the script of a shipped team nor that of a new one: the request is named, and what to do."""
    shell("teams", "new", "mine")
    for name in ("general", "contract", "mine"):
        for command in ("run", "plan"):
            got = shell(command, "What is the weather in Rome?", "--team", name, "--model", "scripted")
            assert got.code == 1
            assert "the script was written for others. Name a model" in got.err
            assert "What is the weather in Rome?" in got.err
            assert "You plan the work of a team" not in got.err


@pytest.mark.parametrize("name", ["general", "teams/support"])
def test_a_new_team_does_not_take_the_name_of_a_shipped_one(name: str, shell: Shell) -> None:
    """`--team general` would use the shipped team, so the new one would never run."""
    refused = shell("teams", "new", name)
    assert refused.code == 2
    assert f"A shipped team is called {Path(name).name}" in refused.complaint
    assert not (shell.folder / name).exists()


def test_nothing_is_overwritten(shell: Shell) -> None:
    """A folder with something in it is refused, and so is a name that is none."""
    shell.write("taken.txt", "mine")
    (shell.folder / "full").mkdir()
    shell.write("full/notes.md", "keep me")
    for name in ("taken.txt", "full", "not a name"):
        got = shell("teams", "new", name)
        assert got.code == 2
        assert "Traceback" not in got.err
    assert (shell.folder / "full" / "notes.md").read_text() == "keep me"


def test_the_schema_has_every_key_the_file_may_have() -> None:
    """And is a schema."""
    schema = team_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(file._KEYS)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("name", shipped_teams())
def test_shipped_teams_satisfy_the_schema(name: str) -> None:
    """What loads is what an editor accepts."""
    data = tomllib.loads((shipped_home() / name / "team.toml").read_text())
    jsonschema.validate(data, team_schema())


@pytest.mark.parametrize(
    "data",
    [
        {"description": "d", "supervisor": {"mode": "vote"}},
        {"description": "d", "routes": [{"match": "x"}]},
        {"description": "d", "factory": {"tiers": ["huge"]}},
        {"description": "d", "recovery": {"attempts": 9}},
        {"description": "d", "recovery": {"evidence": "some"}},
        {"description": "d", "suprvisor": {}},
        {"description": "d", "budget": {"usd": float("inf")}},
        {"description": "d", "limits": {"deadline": float("inf")}},
        {"description": "d", "recovery": {"hedge_after": float("inf")}},
        {"name": "x"},
    ],
)
def test_the_schema_refuses_what_loading_refuses(data: dict[str, Any], tmp_path: Path) -> None:
    """An editor marks it before it is run."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, team_schema())


@pytest.mark.parametrize("by", ["flag", "environment", "settings", "team"])
def test_scripted_without_a_file_plays_the_script_the_team_brings(
    by: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is named; a run it was forced on keeps the path, so that it is run again from another folder."""
    shell("teams", "new", "mine")
    given: list[str] = []
    match by:
        case "flag":
            given = ["--model", "scripted"]
        case "environment":
            monkeypatch.setenv("CHARGEHAND_MODEL", "scripted")
        case "settings":
            shell.write("chargehand.toml", 'model = "scripted"\n')
        case _:
            team = shell.folder / "mine" / "team.toml"
            team.write_text(
                team.read_text() + '\n[models]\nlarge = "scripted"\nmedium = "scripted"\nsmall = "scripted"\n'
            )
    done = shell("run", REQUEST, "--team", "mine", "--with", "mine/examples/material", *given)
    assert done.code == 0, done.err
    assert "South is cheapest" in done.out
    if by not in ("flag", "environment"):
        return  # files of now decide in a rerun
    monkeypatch.delenv("CHARGEHAND_MODEL", raising=False)
    (shell.folder / "elsewhere").mkdir()
    monkeypatch.chdir(shell.folder / "elsewhere")
    again = shell("rerun", "last")
    assert (again.code, again.out) == (0, done.out), again.err


def test_scripted_with_a_team_that_brings_no_script_says_where_it_was_looked_for(shell: Shell) -> None:
    """Exit code 2, the file, and what to name instead."""
    for command in (["run", "Do it"], ["plan", "Do it"], ["eval"]):
        args = [*command, "--team", "mine"] if command != ["eval"] else ["eval", "mine"]
        shell("teams", "new", "mine")
        (shell.folder / "mine" / "script.json").unlink(missing_ok=True)
        done = shell(*args, "--model", "scripted")
        assert done.code == 2
        assert str(shell.folder / "mine" / "script.json") in done.complaint
        assert "scripted:FILE" in done.complaint


def test_doctor_and_models_take_scripted_for_a_model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which file that is, the team of a run says."""
    monkeypatch.setenv("CHARGEHAND_MODEL", "scripted")
    assert {"name": "models", "state": "ok", "detail": "scripted"} in shell("doctor", "--json").json["checks"]
    assert {each["model"] for each in shell("models", "--json").json["models"]} == {"scripted"}


def test_the_short_list_of_teams_has_a_line_for_each(shell: Shell) -> None:
    """`-q` leaves out the workers, not the problems of a team."""
    lines = shell("teams", "-q").out.splitlines()
    assert [line.split()[0] for line in lines] == list(shipped_teams())
    shell("teams", "new", "mine")
    shell("trust", "mine", "--remove")
    assert "is not trusted" in shell("teams", "-q").out


def test_teams_show_gives_a_team_of_ones_own_too(shell: Shell) -> None:
    """Its files and how to try it; a team that cannot be loaded is refused with what is wrong."""
    shell("teams", "new", "mine")
    shown = shell("teams", "show", "mine", "--json").json
    assert (shown["source"], shown["material"]) == ("folder", str(shell.folder / "mine" / "examples" / "material"))
    assert shown["script"] == str(shell.folder / "mine" / "script.json")
    assert "Try it: chargehand eval mine --model scripted" in shell("teams", "show", "mine").out
    missing = shell("teams", "show", "suport")
    assert (missing.code, "did you mean 'support'" in missing.complaint.lower()) == (2, True)
