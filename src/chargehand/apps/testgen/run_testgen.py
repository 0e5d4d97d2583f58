"""`await run(path)`: a Python project becomes a run of the testgen team, and files with the tests that passed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from chargehand.apps.app_port import Notify, StartRun, Watch
from chargehand.apps.consent import make_supervisor
from chargehand.apps.testgen.check_model_tests import unsafe_run as may_run_unsafely
from chargehand.apps.testgen.generators import source_of
from chargehand.apps.testgen.places_of_tests import SuitePlace
from chargehand.apps.testgen.project import read_project
from chargehand.apps.testgen.project_copy import digest
from chargehand.apps.testgen.report_text import answer, files_of
from chargehand.apps.testgen.sandbox import find_means, room
from chargehand.apps.testgen.testgen_plan import Survey, make_testgen_plan, place_of, survey, without_tasks
from chargehand.apps.testgen.try_settings import describe_settings, try_settings
from chargehand.apps.testgen.writing import FileWriter, check_folder, default_folder
from chargehand.errors import RecordGone, UsageError
from chargehand.events import Event, TaskEnded
from chargehand.models import ModelClient
from chargehand.process.namespaces import Means
from chargehand.runs.check_arguments import NOTIFY, RULES, WATCH, check_arguments
from chargehand.settings import Settings
from chargehand.values.argument_rules import flag, optional
from chargehand.values.argument_rules import path as path_rule
from chargehand.values.base import JSON, Value
from chargehand.values.report import Report
from chargehand.values.request import AppRun

NAME = "testgen"


@dataclass(frozen=True, slots=True)
class Generated:
    """The result: the report, and the files on disk by the names from the run."""

    report: Report
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    # Lines that say why no run was made; empty if one was made.
    nothing: tuple[str, ...] = ()

    @property
    def failed_gate(self) -> None:
        """Suspected bugs do not change the exit code."""


class TestgenOptions(Value):
    """The options of test generation in the record of its run: the place of its files, and the files next to them."""

    folder: str
    taken: tuple[str, ...] = ()
    conftest: str = ""
    # The user accepted that the code runs without a sandbox.
    unsafe: bool = False


_RULES = {
    **{name: RULES[name] for name in ("model", "home", "settings")},
    "path": path_rule,
    "out": optional(path_rule),
    "unsafe_run": flag,
    "notify": NOTIFY,
    **WATCH,
}


async def run(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str | ModelClient | None = None,
    unsafe_run: bool = False,
    home: str | Path | None = None,
    settings: Settings | None = None,
    notify: Notify | None = None,
    **watch: Unpack[Watch],
) -> Generated:
    """Write tests for the functions under `path` that have none, into `out`: by default the project's tests/generated.

    The code is run in a sandbox; `unsafe_run` allows to do without one. Without `model`, CHARGEHAND_MODEL or a model in
    a settings file, no model is used. `notify` gets what to know before the run begins: what is tried first, that there
    is no sandbox, or that the project's settings of pytest do not work in it. `watch` are the callbacks of
    `Supervisor.run`.
    """
    check_arguments({**locals(), **watch}, _RULES)
    # In a thread: it reads thousands of files.
    found = await asyncio.to_thread(lambda: survey(read_project(Path(path))))
    root = found.project.root
    folder = default_folder(root) if out is None else Path(out)
    check_folder(folder)
    # A project that cannot be copied is refused before anything costs money.
    await asyncio.to_thread(digest, root)
    door = make_supervisor(NAME, model, home, settings)
    has_model = door.settings.has_model
    if without_tasks(found, model=has_model):
        return _nothing_to_do(found)
    notify = notify or _ignore
    notify("Trying the sandbox, and pytest in it.")
    means = await find_means(unsafe=unsafe_run)
    if means == "none":
        notify("No sandbox: the code runs with your rights, in a temporary copy, with limits of time and memory only.")
    place = await _try_settings(found, means, place_of(found, folder))
    if said := describe_settings(place):
        notify(said)
    options = TestgenOptions(
        folder=str(folder.absolute()), taken=place.taken, conftest=place.conftest, unsafe=means == "none"
    )
    plan = await asyncio.to_thread(make_testgen_plan, found, means, model=has_model, place=place)
    start = partial(
        door.run,
        plan.goal,
        plan=plan,
        # Workers see only their tasks; the check of a model's tests finds the project here.
        material=[root] if has_model else [],
        app=AppRun(name=NAME, options=options.to_json()),
    )
    return await TestgenApp(options, folder).follow(start, **watch)


def recall(options: JSON) -> TestgenApp:
    """The app with the options in the record of its run."""
    return TestgenApp(TestgenOptions.model_validate(options))


@dataclass(frozen=True, slots=True)
class TestgenApp:
    """Test generation that began: its options, and the folder as the user named it."""

    options: TestgenOptions
    folder: Path | None = None

    async def follow(self, start: StartRun, **watch: Any) -> Generated:
        """Carry out the run. The file of a module is written as soon as its tests have passed."""
        kept = self.options
        writer = FileWriter(self.folder or Path(kept.folder), kept.taken, kept.conftest)
        listener = watch.pop("on_event", None)

        def on_event(event: Event) -> None:
            _write_verified(event, writer)
            if listener is not None:
                listener(event)

        allowed = may_run_unsafely.set(kept.unsafe)
        try:
            report = await start(on_event=on_event, **watch)
        except RecordGone as error:
            if isinstance(error.report, Report):
                error.report = _write_all(cast("Report", error.report), writer)
            raise
        finally:
            may_run_unsafely.reset(allowed)
        return _write_all(report, writer)

    def show(self, report: Report, *, brief: bool = False) -> Report:
        """The report with the answer from the time when the files were written."""
        if not report.has_answer:
            return report
        writer = FileWriter(Path(self.options.folder), self.options.taken, self.options.conftest)
        written = {name: writer.find(name, text) for name, text in files_of(report).items()}
        notes = _own_notes(report)
        return report.model_copy(
            update={"answer": answer(report, written, writer.conftest, brief=brief), "notes": notes}
        )


def _write_verified(event: Event, writer: FileWriter) -> None:
    """A file that cannot be written now is tried again at the end, where a failure is an error."""
    match event.body:
        case TaskEnded(outcome={"worker": "verifier", "output": output}) if (made := source_of(output)) is not None:
            with suppress(UsageError):
                writer.write(*made)
        case _:
            pass


def _write_all(report: Report, writer: FileWriter) -> Generated:
    """Write all files that pytest can collect with the existing tests; the answer says where they are."""
    if report.has_answer:
        files = files_of(report)
        for name in writer.written.keys() - files.keys():
            writer.take_back(name)
        for name, text in files.items():
            writer.write(name, text)
        said = answer(report, writer.written, writer.conftest)
        report = report.model_copy(update={"answer": said, "notes": _own_notes(report)})
    return Generated(report, dict(writer.written))


def _own_notes(report: Report) -> tuple[str, ...]:
    """The notes without one about a missing model: code writes this answer."""
    return tuple(note for note in report.notes if not note.startswith("No model "))


async def _try_settings(found: Survey, means: Means, place: SuitePlace) -> SuitePlace:
    with room(found.project.root, means) as sealed:
        return await try_settings(sealed, found.project.import_roots, place)


def _nothing_to_do(found: Survey) -> Generated:
    """Everything has tests, or may not be run."""
    if not found.targets and not found.skipped and not found.tested:
        lines = [f"Nothing to do: there is no public function under {found.project.root}."]
    elif not found.targets and not found.skipped:
        lines = [f"Nothing to do: {_all_of(found.tested)}, by {found.evidence}."]
    else:
        names = ", ".join(target.full_name for target in found.targets)
        needs = f"Tests for {names} need a model: name one with --model."
        lines = [needs] if found.targets else [_nothing_new(found.tested)]
        lines += [f"  {skip.path}:{skip.line} {skip.name}: {skip.why}" for skip in found.skipped]
    request = f"Write tests for {found.project.root.name}"
    report = Report(run="", request=request, status="complete", answer="\n".join(lines) + "\n")
    return Generated(report, nothing=tuple(lines))


def _nothing_new(tested: int) -> str:
    if not tested:
        return "No function here can be run:"
    have = "1 function has tests" if tested == 1 else f"{tested:,} functions have tests"
    return f"Nothing new: {have}; these cannot be run:"


def _all_of(tested: int) -> str:
    return "the one public function has tests" if tested == 1 else f"all {tested:,} public functions have tests"


def _ignore(_said: str) -> None:
    """Ignores the sentence, for callers without `notify`."""
