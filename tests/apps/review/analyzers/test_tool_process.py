"""Limits of the processes that analyzers run in."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import tool_process
from chargehand.errors import AnalyzerFailed
from chargehand.process import ProcessResult
from tests.pace import PATIENCE_S

FOREVER = "import time\nwhile True: time.sleep(0.01)"


def _python(code: str, **limits: float) -> ProcessResult:
    command = [sys.executable, "-I", "-c", code]
    return asyncio.run(tool_process.run(command, tool="tool", **limits))  # pyright: ignore[reportArgumentType]


def test_a_process_has_its_input_and_gives_output_and_code() -> None:
    """Both streams and the exit code come back."""
    code = "import sys; print(sys.stdin.read().upper()); print('oops', file=sys.stderr); sys.exit(3)"
    ended = asyncio.run(tool_process.run([sys.executable, "-I", "-c", code], tool="tool", stdin=b"hello"))
    assert (ended.code, ended.stdout, ended.last_words) == (3, b"HELLO\n", "oops")


def test_a_process_past_its_time_is_killed() -> None:
    """The error says after how long."""
    with pytest.raises(AnalyzerFailed, match=r"^tool was stopped after 0.3 s"):
        _python(FOREVER, seconds=0.3)


def test_a_process_that_writes_without_end_is_killed() -> None:
    """The cap holds while it writes, not after."""
    with pytest.raises(AnalyzerFailed, match=r"^tool wrote more than 97 KB"):
        _python("while True: print('x' * 1000)", max_output=100_000)


def test_a_command_that_is_not_there_is_an_error_of_one_sentence() -> None:
    """Not a traceback of the operating system."""
    with pytest.raises(AnalyzerFailed, match=r"^tool could not be started: No such file"):
        asyncio.run(tool_process.run(["/nowhere/at-all"], tool="tool"))


def test_a_cancelled_analysis_leaves_no_process_behind(tmp_path: Path) -> None:
    """Neither the process nor what it started."""
    note = tmp_path / "pids"
    code = (
        f"import os, subprocess, sys; child = subprocess.Popen([sys.executable, '-I', '-c', {FOREVER!r}]); "
        f"open({str(note)!r} + '.new', 'w').write(f'{{os.getpid()}} {{child.pid}}'); "
        f"os.rename({str(note)!r} + '.new', {str(note)!r}); child.wait()"
    )

    async def cancelled() -> None:
        task = asyncio.create_task(tool_process.run([sys.executable, "-I", "-c", code], tool="tool"))
        while not note.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), PATIENCE_S))
    # What was killed has let go of its pipes, and is gone as soon as the system has tidied up after it.
    patience = time.monotonic() + PATIENCE_S
    while (left := [pid for pid in note.read_text().split() if _runs(pid)]) and time.monotonic() < patience:
        os.sched_yield()
    assert left == []


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_process_knows_little_of_where_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It stands outside the tree and gets no variable that could load code."""
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "GIT_DIR", "RUFF_CONFIG", "MY_API_KEY"):
        monkeypatch.setenv(name, "x")
    ended = _python("import os; print(os.getcwd(), sorted(os.environ))")
    text = ended.stdout.decode()
    assert text.startswith("/ ")
    assert not any(name in text for name in ("PYTHON", "LD_PRELOAD", "GIT_DIR", "RUFF_CONFIG", "MY_API_KEY"))
