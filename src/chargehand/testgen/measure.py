"""Tests before and after become two percentages: how much of the code under test they run, statement by statement."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from chargehand.testgen.sandbox import Ended, Limits, Room, Step
from chargehand.testgen.verify import pytest_command
from chargehand.testgen.walls import INSIDE
from chargehand.value import Value

TESTS_S = 120
# pytest's own codes: all passed, some failed, none found.
_RAN = (0, 1, 5)


class Coverage(Value):
    """Percent of statements run by the tests there were, and by those together with the new ones."""

    before: float
    after: float
    statements: int
    # Why the tests there were may count for less than they do elsewhere.
    note: str = ""


async def measure(
    room: Room, modules: Sequence[str], tests: Sequence[str], files: Mapping[str, str], paths: Sequence[str]
) -> Coverage:
    """Run the existing tests, then the new ones, each under coverage.py in the sandbox."""
    # The project's own settings and plugins count for its own tests, but not the flags it adds.
    own = ("-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", *tests)
    new = pytest_command(*(f"generated/{name}" for name in files))[1:]
    # Only what counts is traced: the test tools themselves would take most of the time.
    run = (sys.executable, "-m", "coverage", "run", "--rcfile=/dev/null", f"--include={','.join(modules)}")
    steps: list[Step] = []
    if tests:
        steps.append(Step((*run, "--data-file=../before", *own), seconds=TESTS_S))
    if files:
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        steps.append(Step((*run, "--data-file=../after", *new), alone, seconds=TESTS_S))
    told = ("../modules.json", "../lines.json", "../before", "../after")
    steps.append(Step((sys.executable, str(INSIDE / "lines.py"), *told), result="lines.json"))
    laid_out = {"pytest.ini": "[pytest]\n", "modules.json": json.dumps(list(modules))}
    laid_out |= {f"project/generated/{name}": text for name, text in files.items()}
    ended = await room.run(steps, laid_out, Limits(), paths)
    return _figures(ended[-1], ended[0] if tests else None)


def _figures(told: Ended, existing: Ended | None) -> Coverage:
    lines: dict[str, dict[str, list[int]]] = _read(told)
    statements = before = after = 0
    for found in lines.values():
        once = set(found.get("before", ()))
        statements += len(found.get("statements", ()))
        before += len(once)
        after += len(once | set(found.get("after", ())))
    note = ""
    if existing is None:
        note = "There were no tests to run."
    elif existing.stopped or existing.code not in _RAN:
        how = f"at its limit of {existing.stopped}" if existing.stopped else f"with code {existing.code}"
        note = f"The existing tests could not be run to their end in the sandbox: pytest ended {how}."
    elif existing.code == 1:
        note = "Some of the existing tests fail in the sandbox."
    share = 100 / statements if statements else 0.0
    return Coverage(before=round(before * share, 1), after=round(after * share, 1), statements=statements, note=note)


def _read(told: Ended) -> dict[str, Any]:
    try:
        return json.loads(told.result or "{}")
    except ValueError:
        return {}
