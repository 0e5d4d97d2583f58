"""The answer of a run: suspected bugs with the commands that show them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.apps.testgen.report_text import answer
from chargehand.values.outcome import Finding
from chargehand.values.plan import Plan, SynthesisSpec, Task
from chargehand.values.report import Report
from tests.apps.testgen.rooms import project


def report(root: Path, paths: list[str]) -> Report:
    context = {"root": str(root), "options": {"paths": paths}}
    last = Task(id="coverage", worker="surveyor", instruction="Measure.", context=context, success_criterion="Done.")
    plan = Plan(goal="Write tests.", tasks=(last,), synthesis=SynthesisSpec(mode="select"), team="testgen")
    bug = Finding(
        severity="warning",
        category="suspected-bug",
        path="unit.py",
        line=1,
        message="f() raises ZeroDivisionError",
        suggestion="Handle it.\nReproduce: python -c 'import unit as _m; print(_m.f())'",
        confidence=70,
    )
    return Report(run="r", request="", status="complete", answer="", plan=plan, findings=(bug,))


@pytest.mark.parametrize("paths", [[""], ["src"], ["the code"]])
@pytest.mark.parametrize("here", [".", "project", "elsewhere"])
def test_the_command_of_a_bug_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], here: str
) -> None:
    """It is one line of a block of its own, changes to the project and finds its modules."""
    root = project(tmp_path / "project", {f"{paths[0]}/unit.py".lstrip("/"): "def f():\n    return 1 / 0\n"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / here)
    text = answer(report(root, paths), {})
    before, _, rest = text.partition("\n```sh\n")
    command, _, _ = rest.partition("\n```\n")
    assert "confidence 70" in before
    assert "\n" not in command
    assert command.startswith("cd ") == (here != "project")
    done = subprocess.run(
        command.replace("python -c", f"{sys.executable} -c"), shell=True, capture_output=True, text=True, check=False
    )
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
