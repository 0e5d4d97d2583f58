"""`run --single`: one plain call on the same record, with the same report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import UsageError
from chargehand.testing import ScriptedModel
from tests.cli.terminal import Shell

ANSWER = {"when": {"role": "worker"}, "reply": {"text": "It costs 64 kroner [ferry.md:1]."}}


def test_one_plain_call_answers_from_the_material(shell: Shell, tmp_path: Path) -> None:
    """No planner, no synthesis: one call that has the material in it, and a report like any other."""
    (tmp_path / "ferry.md").write_text("An adult pays 64 kroner.")
    asked = ("What does it cost?", "--with", str(tmp_path / "ferry.md"), "--model", shell.script(ANSWER), "--json")
    got = shell("run", "--single", *asked)
    report = json.loads(got.out)
    assert (got.code, report["status"], report["usage"]["calls"]) == (0, "complete", 1)
    assert "ferry.md:1" in report["outcomes"][0]["claims"][0]["sources"]
    assert "64 kroner" in report["answer"]
    assert "single agent" not in got.err
    assert not [note for note in report["notes"] if "single agent" in note]


def test_one_plain_call_has_no_team_and_no_plan(shell: Shell) -> None:
    """A wrong use, said before anything is read or called."""
    for more in (["--team", "general"], ["--plan", "plan.json"]):
        got = shell("run", "--single", "Why?", *more)
        assert got.code == 2
        assert "--single" in got.err


def test_one_plain_call_from_python(tmp_path: Path) -> None:
    """The supervisor's own team is not asked."""
    model = ScriptedModel([{"when": {"worker": "assistant"}, "reply": {"text": "Because."}}])
    door = Supervisor(Team([Worker("clerk", "Does clerical work")]), model=model, home=tmp_path)
    report = door.run_sync("Why?", single=True)
    assert (report.status, len(model.calls)) == ("complete", 1)
    with pytest.raises(UsageError, match="`single`"):
        door.run_sync("Why?", single=True, plan=report.plan)
