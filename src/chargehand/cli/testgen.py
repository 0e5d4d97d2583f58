"""`testgen`: a Python project becomes a watched run of the testgen team, files with tests, and what they came to."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from chargehand.apps.testgen.placing import SuitePlace
    from chargehand.apps.testgen.playbook import Survey
    from chargehand.apps.testgen.walls import Means
    from chargehand.apps.testgen.writing import Writer
    from chargehand.cli.screen import Screen
    from chargehand.engine.engine_session import Listener
    from chargehand.settings import Settings
    from chargehand.values.event import Event
    from chargehand.values.report import Report


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
    offered has passed three times; what failed is reported as a suspected bug. A file is written as soon as its tests
    have passed: what is there when the command is stopped stays there. Where pytest cannot be run with the project's
    own settings, it is said, and it is run without them.

    Works without a model and without a key. With --model, CHARGEHAND_MODEL or a model in a settings file, a model
    writes tests as well; a key alone sends nothing out.
    """
    import asyncio

    from chargehand.apps.testgen.playbook import place_of, survey, without_tasks
    from chargehand.apps.testgen.project import read_project
    from chargehand.apps.testgen.sandbox import find_means
    from chargehand.apps.testgen.snapshot import digest
    from chargehand.apps.testgen.try_settings import describe_settings
    from chargehand.apps.testgen.writing import Writer, check_folder, default_folder
    from chargehand.cli.make_supervisor import by_consent
    from chargehand.cli.watch_run import Stopped

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
    place = asyncio.run(_settings_tried(found, means, place_of(found, target)))
    if said := describe_settings(place):
        out.say(said)
    writer = Writer(target, place.taken, place.conftest)
    try:
        report, code = _run(found, means, place, writer, settings, warnings, out)
    except Stopped as stopped:
        out.complain("Interrupted before the run began.")
        return stopped.exit_code
    _deliver(report, writer, out, as_json=as_json)
    return code


async def _settings_tried(found: Survey, means: Means, place: SuitePlace) -> SuitePlace:
    from chargehand.apps.testgen.sandbox import room
    from chargehand.apps.testgen.try_settings import try_settings

    with room(found.project.root, means) as sealed:
        return await try_settings(sealed, found.project.import_roots, place)


def _run(
    found: Survey,
    means: Means,
    place: SuitePlace,
    writer: Writer,
    settings: Settings,
    warnings: list[str],
    out: Screen,
) -> tuple[Report, int]:
    from chargehand.apps.testgen.check_model_tests import unsafe_run
    from chargehand.apps.testgen.playbook import playbook
    from chargehand.cli.watch_run import drive
    from chargehand.runs.supervisor import Supervisor

    door = Supervisor("testgen", settings=settings)
    door.warnings = warnings
    plan = playbook(found, means, model=settings.has_model, place=place)
    unsafe_run.set(means == "none")
    # Its workers see what their tasks say; the check of a model's tests finds the project here.
    material = [found.project.root] if settings.has_model else []

    def start(*, on_event: Listener, **options: Any) -> Coroutine[Any, Any, Report]:
        def listen(event: Event) -> None:
            _write_verified(event, writer)
            on_event(event)

        return door.run(plan.goal, plan=plan, material=material, on_event=listen, **options)

    return drive(start, out)


def _write_verified(event: Event, writer: Writer) -> None:
    """The file of a module whose tests have passed, as soon as they have. What cannot be written is said at the end."""
    from chargehand.apps.testgen.generators import source_of
    from chargehand.errors import UsageError

    if event.kind != "task_ended":
        return
    outcome: dict[str, Any] = event.data["outcome"]
    if outcome["worker"] == "verifier" and (made := source_of(outcome.get("output"))) is not None:
        with suppress(UsageError):
            writer.write(*made)


def _deliver(report: Report, writer: Writer, out: Screen, *, as_json: bool) -> None:
    """All files that can stand beside the tests there are, then what they came to: on stdout, once."""
    from chargehand.apps.testgen.report_text import answer, files_of
    from chargehand.cli.watch_run import deliver, has_answer

    if has_answer(report):
        files = files_of(report)
        for name in writer.written.keys() - files.keys():
            writer.take_back(name)
        for name, text in files.items():
            writer.write(name, text)
        report = report.model_copy(update={"answer": answer(report, writer.written)})
    else:
        out.say("What was verified by then was written:" if writer.written else "No file was written.")
        for path in writer.written.values():
            out.say(f"  {path}")
        out.say("`resume` finishes the run and writes none: call testgen again for the others.")
    deliver(report, out, as_json=as_json, as_data=False, output=None)


def _say_nothing(found: Survey, out: Screen) -> None:
    """Nothing was run: everything has tests, or may not be run."""
    if not found.targets and not found.skipped:
        out.say(f"Nothing to do: all {found.tested} public functions have tests, by {found.evidence}.")
        return
    out.say("No function here can be given tests without a model:" if found.targets else "No function here can be run:")
    for skip in found.skipped:
        out.say(f"  {skip.path}:{skip.line} {skip.name}: {skip.why}")
