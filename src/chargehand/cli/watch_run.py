"""Watches one run: progress on stderr, signals to the session. Its report is printed and gives the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from chargehand.cli.progress_lines import Lines, Progress
from chargehand.cli.report_footer import answer_with_commands, missing_section, print_footer
from chargehand.cli.screen import Screen, write, write_file
from chargehand.cli.shared_options import screen
from chargehand.cli.signals import Signals, Stopped
from chargehand.engine.engine_session import Listener
from chargehand.engine.people import Person
from chargehand.errors import RecordGone
from chargehand.runs.event_loop import run_in_loop
from chargehand.runs.session import Session
from chargehand.synthesizer import OnDraft
from chargehand.trace import RunState
from chargehand.values.report import Report
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.apps.app_port import App, HasReport
    from chargehand.runs.supervisor import Supervisor
    from chargehand.values.effect import Question

OnSession = Callable[[Session], None]


R = TypeVar("R", bound="Report | HasReport")
R_co = TypeVar("R_co", bound="Report | HasReport", covariant=True)


class Start(Protocol[R_co]):
    """Starts or continues a run, either of a supervisor, which returns a Report, or of an app."""

    def __call__(
        self, *, on_event: Listener, on_draft: OnDraft | None, on_session: OnSession, person: Person | None, stay: bool
    ) -> Coroutine[Any, Any, R_co]: ...


def drive(start: Start[R], screen: Screen, view: RunState | None = None) -> tuple[R, int]:
    """The result of the run and the exit code. `view` is the state of a resumed run so far."""
    return run_in_loop(_drive(start, screen, view or RunState()))


async def _drive(start: Start[R], screen: Screen, view: RunState) -> tuple[R, int]:
    progress = make_progress(screen, view)
    signals = Signals(screen, progress, view)
    async with progress:
        person = _person_at_terminal(screen, progress) if sys.stdin.isatty() else None
        on_draft = progress.on_draft if progress.shows_drafts else None
        started = start(
            on_event=progress.on_event,
            on_draft=on_draft,
            on_session=signals.on_session,
            person=person,
            stay=person is not None,
        )
        work = asyncio.ensure_future(started)
        signals.watch(work)
        gone: RecordGone | None = None
        try:
            result = await work
        except RecordGone as error:
            if error.report is None:
                raise
            gone, result = error, cast("R", error.report)
        except asyncio.CancelledError as error:
            if signals.exit_code is None:
                raise
            raise Stopped(signals.exit_code, *error.args) from None
    if gone is not None:
        screen.complain(gone.with_command)
        return result, gone.exit_code
    report = result if isinstance(result, Report) else result.report
    code = report.exit_code
    if report.status == "interrupted" and signals.exit_code is not None:
        code = signals.exit_code
    return result, code


def watch(
    supervisor: Supervisor,
    start: Start[Report],
    *,
    as_json: bool,
    output: Path | None,
    as_data: bool = False,
    app: App | None = None,
    view: RunState | None = None,
) -> int:
    """`app` is the app that began the run, if any."""
    out = screen()
    supervisor.say = out.say
    result: HasReport | None = None
    try:
        if app is None:
            report, code = drive(start, out, view)
        else:
            result, code = drive(partial(app.follow, start), out, view)
            report = result.report
    except Stopped as stopped:
        out.complain(str(stopped))
        return stopped.exit_code
    if result is not None and report.status in FINISHED:
        from chargehand.apps.review import Review

        if isinstance(result, Review):
            from chargehand.cli.print_review import print_review

            print_review(result, "json" if as_json else "text", code, output)
            return gate(result, code, out)
    # The data of an app's report is not its answer.
    as_data = as_data or (app is None and report.data is not None)
    questions = () if report.status in FINISHED else supervisor.questions(report.run)
    deliver(report, out, questions, as_json=as_json, as_data=as_data, output=output)
    if questions and report.status == "waiting":
        from chargehand.cli.open_questions import describe_questions

        for line in describe_questions(report.run, questions):
            out.say(line)
    return code if result is None else gate(result, code, out)


def gate(result: HasReport, code: int, screen: Screen) -> int:
    """The exit code: the code of the run, or 1 if its result fails the gate."""
    if code not in (0, 3) or (failed := result.failed_gate) is None:
        return code
    screen.complain(failed)
    return 1


def _person_at_terminal(screen: Screen, progress: Progress) -> Person | None:
    from chargehand.cli.ask_person import Terminal  # not needed in a script, where nobody is asked

    return Terminal(screen, progress) if Terminal.is_available() else None


def make_progress(screen: Screen, view: RunState, *, stays: bool = True) -> Progress:
    """A table on a terminal, lines elsewhere and with -v or -q. A table that does not stay is erased at the end."""
    watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if not watched or screen.quiet or screen.verbose:
        return Lines(screen, view)
    from chargehand.cli.live_table import LiveTable

    return LiveTable(screen, view, stays=stays)


def deliver(
    report: Report,
    screen: Screen,
    questions: Sequence[Question] = (),
    *,
    as_json: bool,
    as_data: bool,
    output: Path | None,
) -> None:
    """Write the answer once, to stdout or the file, and everything else to stderr; `questions` are those open."""
    text = _text(report, screen, as_json=as_json, as_data=as_data)
    if text is not None and output is not None:
        missing = "" if as_json or as_data else missing_section(report.to_json())
        write_file(output, text + screen.redactor.redact_delivered(missing))
        screen.say_file(f"{'Report' if as_json else 'Answer'} written to ", output, ".")
    elif text is not None and (as_json or as_data):
        write(text)
    elif text is not None:
        screen.answer(report.answer)
    sys.stdout.flush()
    if not report.has_answer:
        # Without -q the commands are below, as the next ones.
        screen.complain(answer_with_commands(report.to_json(), questions) if screen.quiet else report.answer)
    elif report.when_nothing:
        screen.complain(f"No worker could be reached: {report.error.message if report.error else 'see the gaps'}")
    print_footer(report, screen, questions)


def _text(report: Report, screen: Screen, *, as_json: bool, as_data: bool) -> str | None:
    """The text to print, without secrets; None when there is no result of the requested kind.

    The user asked for the answer and its data: only what is certainly a secret is removed from them.
    """
    answer = screen.redactor.redact_delivered(report.answer)
    data = screen.redactor.redact_delivered(report.data)
    if as_json:
        whole = screen.redactor.json(report.to_json())
        return screen.as_document(whole | {"answer": answer} | ({} if data is None else {"data": data}))
    if as_data:
        return None if data is None else screen.as_document(data)
    return answer.rstrip("\n") + "\n" if report.has_answer else None
