"""`run --single`: one plain call on the same record, with the same report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import UsageError
from chargehand.testing import ScriptedModel
from tests.cli.terminal import Shell, plan, task

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


@pytest.fixture
def small(shell: Shell, tmp_path: Path) -> list[str]:
    """A request with material to a model that its name calls small."""
    (tmp_path / "ferry.md").write_text("An adult pays 64 kroner.")
    script = tmp_path / "tiny-1b.json"
    script.write_text(json.dumps({"replies": [ANSWER, {"when": {}, "reply": {"text": "?"}}]}))
    return ["What does it cost?", "--with", str(tmp_path / "ferry.md"), "--model", f"scripted:{script}", "--json"]


def test_a_small_open_model_with_short_material_takes_one_plain_call(shell: Shell, small: list[str]) -> None:
    """Code decides it, and the report says so in one sentence."""
    report = json.loads(shell("run", *small).out)
    assert [outcome["worker"] for outcome in report["outcomes"]] == ["assistant"]
    assert "64 kroner" in report["answer"]
    assert [note.partition(":")[0] for note in report["notes"]][:1] == ["`run` takes one plain call instead of a team"]


@pytest.mark.parametrize("flags", [["--no-single"], ["--team", "general"], ["--critic"], ["--model", "scripted:big"]])
def test_a_team_that_is_asked_for_works_however_small_the_model(
    shell: Shell, small: list[str], flags: list[str], tmp_path: Path
) -> None:
    """So does one that a flag needs, and a larger model's."""
    if flags[0] == "--model":
        script = Path(small[4].removeprefix("scripted:"))
        flags = ["--model", f"scripted:{script.rename(tmp_path / 'big.json')}"]
    got = shell("run", *small, *flags)
    assert "planner" in got.out + got.err
    assert "one plain call instead" not in got.out


def test_material_that_does_not_fit_into_the_prompt_is_for_the_team(
    shell: Shell, small: list[str], tmp_path: Path
) -> None:
    """There must be room for the answer as well."""
    (tmp_path / "ferry.md").write_text("An adult pays 64 kroner.\n" * 2_000)
    assert "one plain call instead" not in shell("run", *small).out


def test_a_short_answer_of_a_small_model_from_material_is_partial(shell: Shell, small: list[str]) -> None:
    """One call, and the gap says why: nothing here can tell a right answer of such a model from a wrong one."""
    got = shell("run", *small)
    report = json.loads(got.out)
    assert (got.code, report["status"], report["usage"]["calls"]) == (3, "partial", 1)
    assert "tiny-1b" in report["gaps"][0]["reason"]
    assert "64 kroner" in report["answer"]


def test_a_rerun_of_one_plain_call_is_one_plain_call(shell: Shell) -> None:
    """Not a plan for a team that nobody chose. A plan that is given is for the team."""
    model = shell.script({"reply": {"text": "Oslo has 717,710 inhabitants."}})
    assert shell("run", "--single", "Describe Oslo", "--model", model).code == 0
    got = shell("rerun", "last", "--json")
    assert (got.code, got.json["plan"]["team"]) == (0, "single"), got.err
    assert got.json["usage"]["calls"] == 0
    shell.write("plan.json", plan(task("t1")))
    assert [each["worker"] for each in shell("rerun", "last", "--plan", "plan.json", "--json").json["outcomes"]] == [
        "writer"
    ]
