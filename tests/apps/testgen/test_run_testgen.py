"""Test generation as a Python function, and what `resume` makes of its record."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chargehand.apps.testgen import Generated, run
from chargehand.events import Event
from chargehand.runs.session import Session
from chargehand.settings import Settings
from tests.apps.testgen.rooms import means, project
from tests.cli.terminal import Shell

CODE = "def f(n: int) -> int:\n    return n + 1\n"


def settings(home: Path) -> Settings:
    return Settings(home=str(home))


async def interrupted(root: Path, out: Path, home: Path) -> Generated:
    """Test generation that was stopped when its first function had been tried."""
    sessions: list[Session] = []

    def on_event(event: Event) -> None:
        if event.kind == "task_ended":
            sessions[0].interrupt()

    return await run(root, out=out, settings=settings(home), on_session=sessions.append, on_event=on_event)


def test_it_runs_inside_a_running_loop_and_says_what_it_wrote(tmp_path: Path) -> None:
    """`run` is a coroutine like any other; its files are on the disk when it gives its report."""
    means()
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": CODE})

    async def main() -> Generated:
        return await run(root, settings=settings(tmp_path / "home"))

    made = asyncio.run(main())
    assert made.report.status == "complete"
    assert dict(made.files) == {"test_mine.py": root / "tests" / "generated" / "test_mine.py"}
    assert "assert mine.f(1) == 2" in made.files["test_mine.py"].read_text()
    assert str(made.files["test_mine.py"]) in made.report.answer
    assert made.report.request == "Write tests for 1 function of project that has none"
    assert made.report.notes == ()


def test_nothing_to_do_is_a_report_without_a_run(tmp_path: Path) -> None:
    """No record, no file, and why."""
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "import os\ndef f(): os.remove('x')\n"})
    made = asyncio.run(run(root, settings=settings(tmp_path / "home")))
    assert (made.report.run, made.files) == ("", {})
    assert made.nothing[0] == "No function here can be run:"
    assert not (tmp_path / "home").exists()


def test_where_some_functions_have_tests_the_others_are_named(tmp_path: Path) -> None:
    """`tested` functions need nothing; the others cannot be run."""
    code = "import os\ndef f(): os.remove('x')\ndef g(n): return n\n"
    files = {
        "pyproject.toml": "",
        "mine.py": code,
        "test_mine.py": "import mine\ndef test_g(): assert mine.g(1) == 1\n",
    }
    made = asyncio.run(run(project(tmp_path / "project", files), settings=settings(tmp_path / "home")))
    assert made.nothing[0] == "Nothing new: 1 function has tests; these cannot be run:"
    assert [line.split()[1] for line in made.nothing[1:]] == ["mine.f:"]


def test_a_resumed_testgen_writes_its_files(shell: Shell, tmp_path: Path) -> None:
    """Where the first session would have written them, and the answer says so; a second resume changes nothing."""
    means()
    root = project(tmp_path / "project", {"pyproject.toml": "", "first.py": CODE, "second.py": CODE})
    out = tmp_path / "out"
    began = asyncio.run(interrupted(root, out, shell.home))
    assert (began.report.status, began.files) == ("interrupted", {})
    assert not out.exists()
    done = shell("resume", began.report.run)
    assert done.code == 0, done.err
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert {"test_first.py", "test_second.py"} <= written.keys()
    assert str(out / "test_second.py") in done.out
    assert shell("resume", "last").out == done.out
    assert {path.name: path.read_bytes() for path in out.iterdir()} == written
    # `show` gives the same answer and writes nothing.
    assert shell("show", "last", "--json").json["answer"] == done.out
    (out / "test_second.py").unlink()
    assert shell("show", "last", "--json").json["answer"] == done.out
    assert not (out / "test_second.py").exists()
