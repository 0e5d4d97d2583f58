"""A test file becomes one that can be offered: run three times in the sandbox, without what failed in any of them.

The runs differ in hash seed and in the order of the tests, and the last takes every warning for an error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chargehand.testgen.assemble import without
from chargehand.testgen.ghostwrite import notes_of
from chargehand.testgen.sandbox import Ended, Limits, Room, Step
from chargehand.testgen.walls import INSIDE

RUNS = (("1", "given", ()), ("2", "reversed", ()), ("3", "shuffled", ("-W", "error")))
ROUNDS = 4
RUN_S = 90
_PLACE = "generated"


@dataclass(frozen=True, slots=True)
class Verified:
    """The file as it passed all runs, empty when nothing did; and each test left out with what it said."""

    source: str
    tests: int
    failures: Mapping[str, str]


async def verify(room: Room, source: str, paths: Sequence[str]) -> Verified:
    """Run it three times; leave out what fails or hangs and run the rest three times again."""
    failures: dict[str, str] = {}
    for _ in range(ROUNDS):
        if not source:
            break
        runs = await room.run([_step(*run) for run in RUNS], _files(source), Limits(seconds=RUN_S), paths)
        found, passed = _read(runs)
        if not found:
            return Verified(source, passed, failures)
        failures |= found
        # What is wrong with the file as a whole cannot be cut out of it.
        source = "" if "" in found else without(source, found)
    return Verified("", 0, failures)


def pytest_command(*rest: str) -> tuple[str, ...]:
    """pytest on its own: no plugins of the machine, no settings or conftest of the project."""
    given = ("-q", "-c", "../pytest.ini", "--rootdir", ".", "-p", "no:cacheprovider", "--noconftest")
    return (sys.executable, "-m", "pytest", *given, "--import-mode=importlib", *rest)


def _files(source: str) -> dict[str, str]:
    return {"pytest.ini": "[pytest]\n", f"project/{_PLACE}/test_candidate.py": source}


def _step(seed: str, order: str, flags: tuple[str, ...]) -> Step:
    result = f"run-{seed}.jsonl"
    env = {
        "PYTHONHASHSEED": seed,
        "TESTGEN_ORDER": order,
        "TESTGEN_RESULT": f"../{result}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    # The plugin is found beside the programs, not on the path the tests see.
    start = f"import sys; sys.path.append({str(INSIDE)!r}); import account, pytest; sys.path.pop(); "
    start += "sys.exit(pytest.main(sys.argv[1:], plugins=[account]))"
    _, _, _, *rest = pytest_command(*flags, f"{_PLACE}/test_candidate.py")
    return Step((sys.executable, "-c", start, *rest), env, result)


def _read(runs: Sequence[Ended]) -> tuple[dict[str, str], int]:
    """Tests that failed in any run, each with what it said first, and how many passed in the last; "" is the file."""
    failures: dict[str, str] = {}
    passed: set[str] = set()
    for run in runs:
        notes = notes_of(run)
        for note in notes:
            if "broken" in note:
                failures.setdefault("", str(note["broken"]))
            elif "failed" in note:
                failures.setdefault(str(note["failed"]), str(note["why"]))
        passed = {str(note["passed"]) for note in notes if "passed" in note and not note.get("skipped")}
        if not any("ended" in note for note in notes):
            started = [str(note["started"]) for note in notes if "started" in note]
            failures.setdefault(started[-1] if started else "", f"stopped: {run.stopped or f'code {run.code}'}")
        elif run.code != 0 and not failures:
            failures[""] = f"pytest ended with code {run.code}: {run.stdout.strip()[-200:]}"
    return failures, len(passed)
