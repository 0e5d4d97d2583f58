"""What a command needs is made once: files of teams are read once, a team and its models are checked once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from chargehand.models.scripted import ScriptedModel
from chargehand.runs.session import check_models
from chargehand.settings.toml_file import read
from chargehand.team import shipped_teams
from chargehand.team.problems import team_problems
from tests.cli.terminal import Shell
from tests.cli.test_run import failing

PLAN: dict[str, Any] = {
    "goal": "g",
    "tasks": [{"id": "t1", "worker": "writer", "instruction": "Write one line.", "success_criterion": "One line."}],
}


@contextmanager
def counted(*functions: Callable[..., Any]) -> Generator[Counter[str]]:
    """How often each function is called in this thread."""
    names = {function.__code__: function.__name__ for function in functions}
    calls: Counter[str] = Counter()

    def look(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code in names:
            calls[names[frame.f_code]] += 1

    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_team_is_read_and_checked_once(command: str, shell: Shell) -> None:
    """For a plan of a shipped team: one team.toml is read, and its problems are looked for once."""
    args = [shell.write("plan.json", PLAN)] if command == "check" else ["--plan", shell.write("plan.json", PLAN)]
    args += [] if command == "check" else ["--model", shell.script()]
    with counted(read, team_problems) as calls:
        done = shell(command, *args)
    assert done.code == 0, done.err
    assert calls == {"read": 1, "team_problems": 1}


def test_the_list_of_teams_reads_each_once(shell: Shell) -> None:
    """Their names come from the folders, not from the files."""
    with counted(read, team_problems) as calls:
        assert shell("teams", "--json").code == 0
    assert calls == {"read": len(shipped_teams()), "team_problems": len(shipped_teams())}


def test_models_are_made_and_checked_once(shell: Shell) -> None:
    """For a run and for its continuation: the script is read once, and every model is looked up once."""
    given = ["--plan", shell.write("plan.json", PLAN), "--model", shell.script(failing("t1"))]
    with counted(ScriptedModel.load, check_models) as calls:
        assert shell("run", *given).code == 1
    assert calls == {"load": 1, "check_models": 1}
    with counted(ScriptedModel.load, check_models) as calls:
        assert shell("resume", "last", "--retry-failed").code == 1
    assert calls == {"load": 1, "check_models": 1}
