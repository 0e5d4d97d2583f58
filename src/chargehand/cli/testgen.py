"""`testgen`: a Python project becomes a watched run of the testgen team, files with tests, and what they came to."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.report import Report
    from chargehand.settings import Settings
    from chargehand.testgen.placing import Place
    from chargehand.testgen.playbook import Survey
    from chargehand.testgen.walls import Means


@click.command(cls=Command)
@click.argument("path", metavar="PATH")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the tests go; nothing there is overwritten. [default: tests/generated in PATH's project]",
)
@click.option("--model", metavar="MODEL", help="provider:name of a model that writes tests as well.")
@click.option("--unsafe-run", is_flag=True, help="Run the code without a sandbox where there is none to be had.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON document.")
def testgen(path: str, folder: Path | None, model: str | None, unsafe_run: bool, as_json: bool) -> int:
    """Write tests for the functions under PATH that have none.

    The code is run, in a sandbox: a throw-away copy without network, within limits of time and memory. Every test
    offered has passed three times; what failed is reported as a suspected bug. Works without a model and without a key.
    With --model, CHARGEHAND_MODEL or a model in a settings file, a model writes tests as well; a key alone sends
    nothing out.
    """
    import asyncio

    from chargehand.cli.driving import Stopped
    from chargehand.cli.front import by_consent
    from chargehand.testgen.playbook import place_of, survey, without_tasks
    from chargehand.testgen.project import read_project
    from chargehand.testgen.sandbox import find_means
    from chargehand.testgen.snapshot import digest
    from chargehand.testgen.writing import check_folder, default_folder

    out = screen()
    found = survey(read_project(Path(path)))
    target = folder or default_folder(found.project.root)
    check_folder(target)
    # What cannot be copied is refused before anything is spent.
    digest(found.project.root)
    settings, warnings = by_consent(model)
    if without_tasks(found, model=settings.has_model):
        _say_nothing(found, out)
        return 0
    means = asyncio.run(find_means(unsafe=unsafe_run))
    if means == "none":
        out.say("No sandbox: the code is run as you, in a throw-away copy, with limits of time and memory alone.")
    try:
        report, code = _run(found, means, target, settings, warnings, out)
    except Stopped as stopped:
        out.complain("Interrupted before the run began.")
        return stopped.exit_code
    _deliver(report, target, place_of(found, target), out, as_json=as_json)
    return code


def _run(
    found: Survey, means: Means, folder: Path, settings: Settings, warnings: list[str], out: Screen
) -> tuple[Report, int]:
    from chargehand.cli.driving import drive
    from chargehand.supervisor import Supervisor
    from chargehand.testgen.criterion import unsafe_run
    from chargehand.testgen.playbook import playbook

    door = Supervisor("testgen", settings=settings)
    door.warnings = warnings
    plan = playbook(found, means, model=settings.has_model, folder=folder)
    unsafe_run.set(means == "none")
    # Its workers see what their tasks say; the check of a model's tests finds the project here.
    material = [found.project.root] if settings.has_model else []
    return drive(partial(door.run, plan.goal, plan=plan, material=material), out)


def _deliver(report: Report, folder: Path, place: Place, out: Screen, *, as_json: bool) -> None:
    """The files to their folder, then what they came to: on stdout, once."""
    from chargehand.cli.driving import deliver, has_answer
    from chargehand.testgen.answer import answer, files_of
    from chargehand.testgen.writing import write_files

    if has_answer(report):
        written = write_files(files_of(report), folder, place.taken, place.conftest)
        report = report.model_copy(update={"answer": answer(report, written)})
    else:
        out.say("No file was written. `resume` finishes the run and writes none either: call testgen again for files.")
    deliver(report, out, as_json=as_json, as_data=False, output=None)


def _say_nothing(found: Survey, out: Screen) -> None:
    """Nothing was run: everything has tests, or may not be run."""
    if not found.targets and not found.skipped:
        out.say(f"Nothing to do: all {found.tested} public functions have tests, by {found.evidence}.")
        return
    out.say("No function here can be given tests without a model:" if found.targets else "No function here can be run:")
    for skip in found.skipped:
        out.say(f"  {skip.path}:{skip.line} {skip.name}: {skip.why}")
