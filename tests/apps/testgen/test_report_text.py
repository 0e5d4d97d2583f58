"""The answer of a run: suspected bugs with the commands that show them, and the command that runs the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.apps.testgen.report_text import answer
from chargehand.values.outcome import Finding, done
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


@pytest.mark.parametrize(
    ("tests", "words"), [(1, "1 test of `unit`, which notices 4 of 5 "), (2, "2 tests of `unit`, which notice 4 of 5 ")]
)
def test_one_test_is_not_several(tmp_path: Path, tests: int, words: str) -> None:
    made = {"module": "unit", "file": "test_unit.py", "source": "x", "tests": tests, "mutants": {"unit.f": [4, 5]}}
    outcomes = (done("unit", "verifier", summary="", output=made | {"unusable": {}}),)
    told = report(tmp_path, [""]).model_copy(update={"outcomes": outcomes, "findings": ()})
    assert words in answer(told, {"test_unit.py": tmp_path / "test_unit.py"})


@pytest.mark.slow
@pytest.mark.parametrize("root", ["", "code here"])
@pytest.mark.parametrize("here", [".", "project", "elsewhere"])
def test_the_command_for_tests_that_do_not_find_the_code_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, here: str
) -> None:
    """Wherever the project, its code and the tests are."""
    at = project(tmp_path / "project", {f"{root}/unit.py".lstrip("/"): "def f():\n    return 1\n"})
    tests = project(
        tmp_path / "the tests", {"test_unit.py": "import unit\n\ndef test_f():\n    assert unit.f() == 1\n"}
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / here)
    made = {"module": "unit", "file": "test_unit.py", "source": "x", "tests": 1, "unusable": {}}
    outcomes = (
        done("unit", "verifier", summary="", output=made),
        done("coverage", "surveyor", summary="", output={"needs": [root], "skipped": []}),
    )
    told = report(at, [root]).model_copy(update={"outcomes": outcomes, "findings": ()})
    text = answer(told, {"test_unit.py": tests / "test_unit.py"})
    command = text.partition("\n```sh\n")[2].partition("\n```\n")[0]
    assert command.startswith("PYTHONPATH=")
    ran = subprocess.run(
        command.replace("python -m", f"{sys.executable} -m"), shell=True, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
