"""`teams new` and the schema of team.toml: a team to begin with, and what an editor is told."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chargehand.team import file, shipped
from chargehand.team.code import shipped_home
from chargehand.team.schema import team_schema
from tests.cli.terminal import Shell


def test_a_new_team_passes_its_check_and_runs_on_its_script(shell: Shell) -> None:
    """Without a key, to a complete answer; its eval passes and it is listed."""
    made = shell("teams", "new", "teams/mine")
    assert made.code == 0
    assert "mine/team.toml" in made.out
    checked = shell("check", "teams/mine", "--json")
    assert (checked.code, checked.json) == (0, {"ok": True, "problems": []})
    assert "teams/mine" in [team["ref"] for team in shell("teams", "--json").json["teams"]]


@pytest.mark.parametrize("name", ["mine", "my dir/it's"])
def test_the_line_to_try_a_new_team_works_as_it_is(shell: Shell, name: str) -> None:
    """Copied from the screen into a shell, whatever the folder is called."""
    tried = shell("teams", "new", f"{name}/team1").err.partition("Try it: chargehand ")[2]
    ran = shell(*shlex.split(tried))
    assert ran.code == 0, ran.err
    assert "346 km" in ran.out


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


@pytest.mark.parametrize("name", [name for name, _ in shipped()])
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
