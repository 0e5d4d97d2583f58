"""A test file becomes one that can be offered: run three times in the sandbox, without tests that failed in any run.

The runs differ in hash seed and order; the second is on another day, in another time zone, and treats warnings as
errors. The third run is in the final place of the file, with the project's own settings and only the path that the
project sets.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chargehand.apps.testgen.assemble import hide_from_collection, without
from chargehand.apps.testgen.ghostwrite import notes_of
from chargehand.apps.testgen.places_of_tests import CONFTEST, ELSEWHERE, SuitePlace
from chargehand.apps.testgen.sandbox import CommandResult, Room, SandboxLimits, Step
from chargehand.apps.testgen.sandbox_command import ABROAD, installed_folders, start_program

ROUNDS = 4
# Other seeds than those for writing the tests, so that a test that depends on the order of a set fails.
SEEDS = ("11", "202", "346")
RUN_S = 90
ALONE = SuitePlace(folder=ELSEWHERE, names={})
# Empty settings, in place of the project's.
OWN_SETTINGS = {"own/pytest.ini": "[pytest]\n"}
NO_OPTIONS = ("-o", "addopts=")


@dataclass(frozen=True, slots=True)
class Verified:
    """The file that passed all runs, empty if nothing did; and each test left out with its message."""

    source: str
    tests: int
    failures: Mapping[str, str]


async def verify(
    room: Room, source: str, paths: Sequence[str], name: str = "test_candidate.py", place: SuitePlace = ALONE
) -> Verified:
    """Run it three times. Leave out tests that fail or hang, and run the rest three times again."""
    failures: dict[str, str] = {}
    source = hide_from_collection(source)
    path = f"{place.folder}/{name}"
    for _ in range(ROUNDS):
        if not source:
            break
        files = {**OWN_SETTINGS, f"project/{path}": source, **conftest_of(place)}
        home = at_home("home", place, path) if place is not ALONE else alone(path, SEEDS[2], "shuffled")
        steps = [alone(path, SEEDS[0], "given"), alone(path, SEEDS[1], "reversed", shifted=True), home]
        found, passed = read(await room.run(steps, files, SandboxLimits(seconds=RUN_S), paths))
        if not found:
            return Verified(source, passed, failures)
        failures |= found
        # An error of the whole file cannot be removed from it.
        source = "" if "" in found else without(source, found)
    return Verified("", 0, failures)


def pytest_command(*rest: str) -> tuple[str, ...]:
    """pytest on its own: no plugins of the machine, no settings or conftest of the project."""
    given = ("-q", "-c", "../own/pytest.ini", "--rootdir", ".", "-p", "no:cacheprovider", "--noconftest")
    return (sys.executable, "-m", "pytest", *given, "--import-mode=importlib", *rest)


def conftest_of(place: SuitePlace) -> dict[str, str]:
    return {f"project/{place.folder}/{CONFTEST}": place.conftest} if place.conftest else {}


def alone(path: str, seed: str, order: str, *, shifted: bool = False) -> Step:
    """The file by itself."""
    env = {"PYTHONHASHSEED": seed, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(ABROAD if shifted else {})}
    _, _, _, *rest = pytest_command("-W", "error", path) if shifted else pytest_command(path)
    return _step_with_notes(f"run-{seed}", rest, env, order, shifted=shifted)


def at_home(result: str, place: SuitePlace, *rest: str) -> Step:
    """Run like the tests of the project, as far as its settings work here."""
    if place.under == "none":
        _, _, _, *own = pytest_command(*rest)
        return _step_with_notes(
            result, own, {"PYTHONHASHSEED": SEEDS[2], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, "shuffled"
        )
    # If nothing in the project puts the code on the path, the answer says that the user must do it.
    env = {} if place.needs or place.folder == ELSEWHERE else {"PYTHONPATH": ":".join(installed_folders())}
    # The sandbox limits the time of a test, because it knows how busy the machine is.
    env |= {"PYTHONHASHSEED": SEEDS[2], "PYTEST_TIMEOUT": "0"}
    options = NO_OPTIONS if place.under == "no-addopts" else ()
    return _step_with_notes(result, ["-q", "-p", "no:cacheprovider", *options, *rest], env, "shuffled")


def pytest_step(result: str, plugin: str, path: str) -> Step:
    """The file by itself, with a plugin of chargehand. The order for the plugin, if any, is next to the copy."""
    start = start_program(plugin, f"import pytest; sys.exit(pytest.main(sys.argv[1:], plugins=[{plugin}]))")
    _, _, _, *rest = pytest_command(path)
    variables = {"TESTGEN_RESULT": f"../{result}.jsonl", f"TESTGEN_{result.upper()}": f"../{result}.json"}
    env = {**variables, "PYTHONHASHSEED": SEEDS[0], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return Step((sys.executable, "-c", start, *rest), env, f"{result}.jsonl")


def _step_with_notes(
    result: str, rest: Sequence[str], env: Mapping[str, str], order: str, *, shifted: bool = False
) -> Step:
    start = start_program("shifted_clock", "shifted_clock.shift(); ") if shifted else ""
    start += start_program("pytest_notes", "import pytest; sys.exit(pytest.main(sys.argv[1:], plugins=[pytest_notes]))")
    variables = {"TESTGEN_ORDER": order, "TESTGEN_RESULT": f"../{result}.jsonl", **env}
    return Step((sys.executable, "-c", start, *rest), variables, f"{result}.jsonl")


def read(runs: Sequence[CommandResult]) -> tuple[dict[str, str], int]:
    """Tests that failed in any run, each with its first message, and how many passed in the last; "" is the file."""
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
