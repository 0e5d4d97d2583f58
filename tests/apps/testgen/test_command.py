"""`chargehand testgen` as users run it: on the sample, on hostile code, with a model, and where it must refuse."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.testgen.project import read_project
from chargehand.apps.testgen.testgen_plan import make_testgen_plan, survey
from chargehand.apps.testgen.writing import FileWriter
from tests.apps.testgen.rooms import means, project
from tests.cli.terminal import ROOT, Shell, finished, process
from tests.cli.test_review_models import shell_settings
from tests.loopback import Answer, Seen, answer_json, serving
from tests.pace import PATIENCE_S

SAMPLE = ROOT / "examples" / "testgen-sample"
HOSTILE = """
import pathlib, os as system

def writes(n: int) -> int:
    for folder in (getattr(pathlib.Path, "ho" + "me")(), pathlib.Path({root!r})):
        try:
            getattr(folder / "planted", "write" + "_text")("x")
        except OSError:
            pass
    return n

def forks(n: int) -> int:
    start = vars(pathlib)["os"].fork
    while True:
        try:
            start()
        except OSError:
            pass

def allocates(n: int) -> int:
    return len(bytearray(10 << 30))

def prints(n: int) -> int:
    while True:
        print("x" * 100000)

def honest(n: int) -> int:
    return n + 1
"""


@pytest.mark.slow
def test_the_sample_gets_tests_that_pass_on_a_fresh_checkout(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coverage rises, the planted bug is surfaced, dangerous functions are listed, and a bare key sends no code out."""
    means()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    checkout = shutil.copytree(SAMPLE, tmp_path / "checkout")
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    done = shell("testgen", checkout, "--json")
    report = done.json
    assert (done.code, report["status"]) == (0, "complete")
    assert report["usage"]["calls"] == 0
    assert {outcome["worker"] for outcome in report["outcomes"]} == {"ghostwriter", "verifier", "surveyor"}
    folder = checkout / "tests" / "generated"
    assert sorted(path.name for path in folder.iterdir()) == [
        "test_kiosk_basket.py", "test_kiosk_prices.py", "test_kiosk_rows.py",
    ]  # fmt: skip
    assert {path: path.read_bytes() for path in before} == before

    (bug,) = report["findings"]
    assert bug["message"].startswith("encode_row(fields=[';']) does not come back the same")
    assert (bug["path"], bug["category"], bug["severity"]) == ("src/kiosk/rows.py", "suspected-bug", "warning")
    coverage = report["outcomes"][-1]["output"]["coverage"]
    assert coverage["before"] == 15.0
    assert coverage["after"] >= 70.0
    assert (
        "`kiosk.store.save` (src/kiosk/store.py:7): reaches files: open for writing through _append" in report["answer"]
    )
    assert "`kiosk.store.load_remote`" in report["answer"]
    assert "15 % -> " in report["answer"]

    fresh = shutil.copytree(SAMPLE, tmp_path / "fresh")
    shutil.copytree(folder, fresh / "tests" / "generated")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error"]
    ran = subprocess.run(command, cwd=fresh, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout


@pytest.mark.slow
def test_hostile_code_is_contained(shell: Shell, tmp_path: Path) -> None:
    """Writing to home and tree, forking, allocating and printing without end harm nothing."""
    means()
    root = project(
        tmp_path / "hostile", {"pyproject.toml": "", "trap.py": HOSTILE.format(root=str(tmp_path / "hostile"))}
    )
    before = sorted(path.name for path in Path.home().iterdir())
    done = shell("testgen", root, "--out", tmp_path / "out")
    assert done.code == 0
    assert sorted(path.name for path in Path.home().iterdir()) == before
    assert sorted(path.name for path in root.iterdir()) == ["pyproject.toml", "trap.py"]
    text = (tmp_path / "out" / "test_trap.py").read_text()
    assert "trap.honest(1) == 2" in text
    assert "forks(1) started more processes than it may" in done.out
    assert "allocates(1) raises MemoryError" in done.out or "allocates(n=0) raises MemoryError" in done.out
    assert "\n```sh\ncd " in done.out
    assert "prints(1) printed more than it may" in done.out
    assert "`trap.writes`: it was seen to reach files: ~/planted" in done.out


def test_without_a_sandbox_nothing_runs(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, one sentence, no run on record, no file."""
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "def f(n: int) -> int:\n    return n\n"})
    monkeypatch.setenv("PATH", "/nowhere")
    done = shell("testgen", root)
    assert done.code == 2
    assert "--unsafe-run" in done.complaint
    assert not (root / "tests").exists()


@pytest.mark.soak
def test_unsafe_run_works_without_a_sandbox_and_says_so(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The risk is named in one sentence before anything runs."""
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "def f(n: int) -> int:\n    return n + 1\n"})
    monkeypatch.setenv("PATH", "/nowhere")
    done = shell("testgen", root, "--unsafe-run")
    assert done.code == 0
    assert "No sandbox" in done.err
    assert "assert mine.f(1) == 2" in (root / "tests" / "generated" / "test_mine.py").read_text()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"mine.py": "def f(): return 1\n", "test_mine.py": "from mine import f\nassert f()\n"}, "Nothing to do"),
        ({"mine.py": "A = 1\n"}, "Nothing to do"),
        ({"mine.py": "import os\ndef f(): os.remove('x')\n"}, "mine.py:2 mine.f: reaches os: os.remove"),
        ({"mine.py": "async def f(): return 1\n"}, "mine.f"),
        ({"mine.py": "def f(:\n"}, "syntax error"),
    ],
)
def test_nothing_to_run_is_said_plainly(shell: Shell, tmp_path: Path, files: dict[str, str], said: str) -> None:
    """Everything has tests, or nothing may be run: exit code 0 and the reason."""
    done = shell("testgen", project(tmp_path / "project", {"pyproject.toml": "", **files}))
    assert done.code == 0
    assert said in done.err


def test_a_folder_that_cannot_be_written_is_refused_at_once(shell: Shell, tmp_path: Path) -> None:
    """Before anything is run."""
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "def f(): return 1\n", "taken": "x"})
    done = shell("testgen", root, "--out", root / "taken" / "below")
    assert done.code == 2
    assert "is not a folder" in done.complaint


def test_files_are_never_overwritten(tmp_path: Path) -> None:
    """A name that is taken gets a number; the same text is not written twice."""
    (tmp_path / "test_a.py").write_text("mine")
    for _ in range(2):
        writer = FileWriter(tmp_path)
        writer.write("test_a.py", "new")
        assert writer.written == {"test_a.py": tmp_path / "test_a_2.py"}
    writer.take_back("test_a.py")
    assert (tmp_path / "test_a_2.py").read_text() == "new", "it was there before"
    assert (tmp_path / "test_a.py").read_text() == "mine"


def test_a_file_that_is_taken_back_is_gone_with_the_conftest_made_for_it(tmp_path: Path) -> None:
    """Of what was written during the run, the suite keeps only what can stand beside it."""
    writer = FileWriter(tmp_path, conftest="import sys\n")
    writer.write("test_a.py", "a")
    writer.write("test_b.py", "b")
    writer.take_back("test_a.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conftest.py", "test_b.py"]
    writer.take_back("test_b.py")
    assert list(tmp_path.iterdir()) == []


def test_the_plan_has_a_task_for_each_function(tmp_path: Path) -> None:
    """One worker for each function, behind them the file of the module, coverage last; a model's tests join in."""
    code = "def f(n: int) -> int:\n    return n\nasync def g() -> int:\n    return 1\n"
    found = survey(read_project(project(tmp_path, {"pyproject.toml": "", "one.py": code, "two.py": code})))
    plain = make_testgen_plan(found, "unshare", model=False)
    assert [(task.id, task.worker) for task in plain.tasks] == [
        ("t1", "ghostwriter"), ("f1", "verifier"), ("t3", "ghostwriter"), ("f2", "verifier"), ("coverage", "surveyor"),
    ]  # fmt: skip
    workers = [task.worker for task in make_testgen_plan(found, "unshare", model=True).tasks]
    assert workers.count("tester") == 4
    assert workers.count("ghostwriter") == 2


def said(tests: str) -> dict[str, Any]:
    output = {"target": "mine.double", "tests": tests}
    return {"summary": "Tests.", "output": output, "claims": [], "findings": [], "confidence": 90}


GOOD = "from mine import double\n\n\ndef test_double_of_three_is_six():\n    assert double(3) == 6\n"
WRONG = GOOD + "\n\ndef test_double_of_two_is_five():\n    assert double(2) == 5\n"


def test_a_models_tests_are_run_and_mended_over_http(shell: Shell, tmp_path: Path) -> None:
    """The tester is sent the source of its function alone, and again, rewritten from the error, when its tests fail.

    The file holds what passed, of both workers. How tests came about is nothing workers could disagree in.
    """
    means()
    mine = "def double(n: int) -> int:\n    return n * 2\ndef shown(n: int) -> None:\n    pass\n"
    files = {"mine.py": mine, "other.py": "PRIVATE = 'kept here'\n", "test_mine.py": "import mine\nmine.shown(1)\n"}
    root = project(tmp_path / "project", {"pyproject.toml": "", **files})

    def reply(request: Seen) -> Answer:
        if request.role == "refiner":
            return answer_json({"instruction": "Write the tests again: two doubled is four, and not five."})
        return answer_json(said(WRONG if request.headers["x-chargehand-attempt"] == "1" else GOOD))

    with serving(reply) as server:
        shell_settings(shell, f"{server.url}/v1")
        done = shell("testgen", root, "--model", "local:m", "--json")
    assert done.code == 0, done.err
    assert [seen.role for seen in server.requests] == ["worker", "refiner", "worker"]
    first, about, second = (seen.text for seen in server.requests)
    assert "def double(n: int)" in first
    assert "assert 4 == 5" in about, "what failed goes back with its error"
    assert "and not five" in second
    assert not any("kept here" in seen.text for seen in server.requests)
    outcome = next(each for each in done.json["outcomes"] if each["worker"] == "tester")
    assert (outcome["status"], outcome["attempts"]) == ("done", 2)
    assert (done.json["status"], done.json["contradictions"]) == ("complete", [])
    text = (root / "tests" / "generated" / "test_mine_2.py").read_text()
    assert "test_double_of_three_is_six" in text
    assert "def test_double_of_1_is_2()" in text
    assert "is_five" not in text


def test_a_project_too_large_to_copy_is_refused_at_once(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and one sentence, before anything is run."""
    monkeypatch.setattr("chargehand.apps.testgen.project_copy._MOST_BYTES_COPIED", 1000)
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "def f(): return 1\n" + "# \n" * 500})
    done = shell("testgen", root)
    assert done.code == 2
    assert "to copy" in done.complaint


FIRST = "def f(n: int) -> int:\n    return n + 1\n"


@pytest.mark.soak
def test_settings_that_do_not_work_in_the_sandbox_cost_no_test(shell: Shell, tmp_path: Path) -> None:
    """They are tried before anything else; what pytest says of them and what is done is told then and in the answer."""
    means()
    settings = "[tool.pytest.ini_options]\naddopts = ['-p', 'of_no_package']\n"
    root = project(tmp_path / "project", {"mine.py": FIRST, "pyproject.toml": settings})
    done = shell("testgen", root)
    assert done.code == 0, done.err
    for text in (done.err.partition("  run ")[0], done.out):
        said = " ".join(text.split())
        assert "No module named 'of_no_package'" in said
        assert "without the options in `addopts`" in said
    assert "assert mine.f(1) == 2" in (root / "tests" / "generated" / "test_mine.py").read_text()


def test_pytest_that_does_not_work_at_all_is_told_before_anything_is_run(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 with what it says, no run on record, no file."""
    means()
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": FIRST})
    monkeypatch.setattr("chargehand.apps.testgen.try_settings._TEST", "import of_no_package\n")
    done = shell("testgen", root)
    assert done.code == 2
    assert "of_no_package" in done.complaint
    assert not (root / "tests").exists()
    assert shell("runs", "--json").json["runs"] == []


@pytest.mark.soak
def test_an_interrupted_testgen_names_what_it_has_written(tmp_path: Path) -> None:
    """Ctrl-C: exit code 130, the files, and how to get the others. A file is on the disk when its line is shown."""
    means()
    endless = "def g(n: int) -> int:\n    while True:\n        n += 1\n"
    root = project(tmp_path / "project", {"pyproject.toml": "", "first.py": FIRST, "second.py": endless})
    child = process("testgen", root, "--out", tmp_path / "out", home=tmp_path / "home")
    assert child.stderr is not None
    lines = iter(child.stderr.readline, "")
    assert any("f1 done" in line for line in lines)
    assert "assert first.f(1) == 2" in (tmp_path / "out" / "test_first.py").read_text()
    child.send_signal(signal.SIGINT)
    done = finished(child)
    assert done.code == 130
    assert f"What was verified by then was written:\n  {tmp_path / 'out' / 'test_first.py'}\n" in done.err
