"""A test that hangs ends: the run goes on, names it and shows where it hung."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANGING = """
import re, time
import pytest

def test_that_swallows_everything():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass

def test_that_never_leaves_c_code():
    re.match(r"(a+)+$", "a" * 60 + "b")

@pytest.fixture
def never_closed():
    yield
    time.sleep(600)

def test_that_fails_and_then_hangs(never_closed):
    assert not "reached"

@pytest.mark.parametrize("number", range(9))
def test_that_is_fine(number):
    pass
"""
AT_THE_END = """
import threading, time

def test_that_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
"""


def run(folder: Path, text: str, limit: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:randomly", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(folder), "-c", os.devnull, *options, str(folder / "test_it.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CHARGEHAND_TEST_LIMIT_S": limit}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.soak
def test_a_hanging_test_hangs_no_run(tmp_path: Path) -> None:
    """Asleep, in C code with Python's lock held, in a teardown: it is named, with its stack, and the rest is run."""
    ended = run(tmp_path, HANGING, "2", "-n", "3", "--maxschedchunk=1")
    assert ended.returncode == 1
    for name in ("test_that_swallows_everything", "test_that_never_leaves_c_code", "test_that_fails_and_then_hangs"):
        assert f"crashed while running 'test_it.py::{name}'" in ended.stdout
    for where in ("test_that_swallows_everything", "test_that_never_leaves_c_code", "never_closed"):
        assert f" in {where}\n" in ended.stderr
    assert "9 passed" in ended.stdout


def test_a_thread_left_behind_hangs_no_run(tmp_path: Path) -> None:
    """The process ends though the interpreter would wait for the thread for minutes."""
    ended = run(tmp_path, AT_THE_END, "1")
    assert "1 passed" in ended.stdout
