"""Existing and new tests become two percentages: the share of statements of the code under test that they run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from chargehand.apps.testgen.ghostwrite import notes_of
from chargehand.apps.testgen.places_of_tests import SuitePlace
from chargehand.apps.testgen.sandbox import CommandResult, Room, SandboxLimits, Step
from chargehand.apps.testgen.sandbox_command import INSIDE
from chargehand.apps.testgen.verify import ALONE, NO_OPTIONS, OWN_SETTINGS, at_home, conftest_of, pytest_command
from chargehand.values.base import Field, Value

TESTS_S = 120
# pytest's own codes: all passed, some failed, none found.
_RAN = (0, 1, 5)


class Coverage(Value):
    """Percent of statements that the existing tests run, and that existing and new tests run together."""

    before: float
    after: float
    statements: int
    # Why the existing tests may cover less here than elsewhere.
    note: str = ""
    # Files that pytest cannot collect together with the existing tests, each with the reason.
    refused: dict[str, str] = Field(default_factory=dict)


async def measure(
    room: Room,
    modules: Sequence[str],
    tests: Sequence[str],
    files: Mapping[str, str],
    paths: Sequence[str],
    place: SuitePlace = ALONE,
) -> Coverage:
    """Run the existing tests, then the new ones that can be collected with them, under coverage.py in the sandbox."""
    refused = await beside(room, tests, files, paths, place)
    files = {name: text for name, text in files.items() if name not in refused}
    # The project's own settings and plugins count for its own tests, but not the flags it adds.
    settings = ("-c", "../own/pytest.ini", "--rootdir", ".") if place.under == "none" else NO_OPTIONS
    own = ("-m", "pytest", "-q", *settings, "-p", "no:cacheprovider", *tests)
    new = pytest_command(*(f"{place.folder}/{name}" for name in files))[1:]
    # Only the code under test is traced: tracing the test tools would take most of the time.
    run = (sys.executable, "-m", "coverage", "run", "--rcfile=/dev/null", f"--include={','.join(modules)}")
    steps: list[Step] = []
    if tests:
        steps.append(Step((*run, "--data-file=../before", *own), seconds=TESTS_S))
    if files:
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        steps.append(Step((*run, "--data-file=../after", *new), alone, seconds=TESTS_S))
    reported = ("../modules.json", "../lines.json", "../before", "../after")
    steps.append(Step((sys.executable, str(INSIDE / "covered_lines.py"), *reported), result="lines.json"))
    laid_out = {"modules.json": json.dumps(list(modules)), **_laid_out(files, place)}
    ended = await room.run(steps, laid_out, SandboxLimits(), paths)
    return _figures(ended[-1], ended[0] if tests else None).model_copy(update={"refused": refused})


async def beside(
    room: Room, tests: Sequence[str], files: Mapping[str, str], paths: Sequence[str], place: SuitePlace
) -> dict[str, str]:
    """New files that pytest cannot collect together with the existing tests, each with the message of pytest."""
    if not tests or not files:
        return {}
    new = {f"{place.folder}/{name}": name for name in files}
    broken = await _uncollectable(room, [*tests, *new], _laid_out(files, place), paths, place)
    if not broken:
        return {}
    before = await _uncollectable(room, tests, OWN_SETTINGS, paths, place)
    worse = {where: why for where, why in broken.items() if where not in before}
    if others := [why for where, why in worse.items() if where not in new]:
        return dict.fromkeys(files, f"with it, the tests there are cannot be collected: {others[0]}")
    return {new[where]: why for where, why in worse.items()}


async def _uncollectable(
    room: Room, tests: Sequence[str], files: Mapping[str, str], paths: Sequence[str], place: SuitePlace
) -> dict[str, str]:
    """Test files that pytest cannot collect under the project's own settings."""
    step = at_home("collected", place, "--collect-only", *tests)
    (ended,) = await room.run([step], files, SandboxLimits(seconds=TESTS_S), paths)
    return {str(note["where"]): str(note["broken"]) for note in notes_of(ended) if "broken" in note}


def _laid_out(files: Mapping[str, str], place: SuitePlace) -> dict[str, str]:
    return {f"project/{place.folder}/{name}": text for name, text in files.items()} | conftest_of(place) | OWN_SETTINGS


def _figures(reported: CommandResult, existing: CommandResult | None) -> Coverage:
    lines: dict[str, dict[str, list[int]]] = _read(reported)
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


def _read(reported: CommandResult) -> dict[str, Any]:
    try:
        return json.loads(reported.result or "{}")
    except ValueError:
        return {}
