"""A project's pytest settings become the settings that work here, tried once on a test that does nothing.

Without the plugins its settings name, or with a conftest.py that needs what is not installed here, pytest would refuse
every file for a reason that has nothing to do with what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chargehand.apps.testgen.ghostwrite import notes_of
from chargehand.apps.testgen.places_of_tests import SuitePlace
from chargehand.apps.testgen.sandbox import INSTALL, CommandResult, Room, SandboxLimits, Step
from chargehand.apps.testgen.verify import OWN_SETTINGS, RUN_S, at_home, conftest_of
from chargehand.errors import UsageError

_NAME = "test_chargehand_trial.py"
_TEST = "def test_nothing():\n    pass\n"
_LONGEST = 300


async def try_settings(room: Room, paths: Sequence[str], place: SuitePlace) -> SuitePlace:
    """The place with as many settings as work there. Raises UsageError if pytest does not work even without them."""
    said: list[str] = []
    for tried in _less_and_less(place, paths):
        if (problem := await _problem(room, paths, tried)) is None:
            return tried if tried.under == "all" else tried.model_copy(update={"refused": said[0]})
        said.append(problem)
    raise UsageError(
        f"pytest cannot run even a test that does nothing in the sandbox, with the project's settings or without: "
        f"{said[-1]}. Put its installation in order: {INSTALL}"
    )


def _less_and_less(place: SuitePlace, paths: Sequence[str]) -> Iterator[SuitePlace]:
    """What to try, in order: a project's own conftest.py may need the project to be installed, as it is elsewhere."""
    for under in ("all", "no-addopts"):
        yield place.model_copy(update={"under": under})
        if not place.needs:
            yield place.model_copy(update={"under": under, "needs": tuple(paths)})
    yield place.model_copy(update={"under": "none"})


def describe_settings(place: SuitePlace) -> str:
    """The settings that the tests are run without, and what to do about it; empty if there are none."""
    match place.under:
        case "all":
            return ""
        case "no-addopts":
            without = "the options in `addopts`"
        case "none":
            without = "the project's pytest settings, plugins and conftest.py files"
    return (
        f"pytest cannot be run with the project's own settings in the sandbox: {place.refused}. The new tests are run "
        f"without {without}. If something is missing, install it where chargehand is installed and try again."
    )


async def _problem(room: Room, paths: Sequence[str], place: SuitePlace) -> str | None:
    """The message of pytest if it cannot run or collect the test; None if it does both."""
    path = f"{place.folder}/{_NAME}"
    files = {**OWN_SETTINGS, f"project/{path}": _TEST, **conftest_of(place)}

    async def run(step: Step) -> CommandResult:
        (ended,) = await room.run([step], files, SandboxLimits(seconds=RUN_S), paths)
        return ended

    ran = await run(at_home("ran", place, path))
    if ran.code != 0 or not any("passed" in note for note in notes_of(ran)):
        return _error_line(ran)
    collected = await run(at_home("collected", place, "--collect-only", path))
    return None if collected.code == 0 else _error_line(collected)


def _error_line(ended: CommandResult) -> str:
    """The line that says what is wrong: the last of a traceback, or what pytest marks as an error."""
    if ended.stopped is not None:
        return f"it was stopped at its limit of {ended.stopped}"
    lines = [line.strip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    if broken := [line for line in lines if line.startswith("INTERNALERROR>")]:
        line = broken[-1]
    elif marked := [line for line in lines if line.startswith(("E  ", "ERROR:", "FAIL", "ERROR"))]:
        # Below its usage, pytest says what it did not understand.
        wrong = [line for line in lines if "error: " in line]
        line = next((line for line in marked if line.startswith("E  ")), (wrong or marked)[0])
    else:
        line = f"it ended with code {ended.code}{f' and said {lines[-1]!r}' if lines else ''}"
    for mark in ("INTERNALERROR>", "ERROR:", "E  "):
        line = line.removeprefix(mark)
    return line.strip()[:_LONGEST].rstrip(".")
