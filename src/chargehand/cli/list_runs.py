"""`runs`, `show` and `cancel`: what is in the home, what became of a run, and stopping one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.command import Command, home, screen, verbosity

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.record.home import Home
    from chargehand.values.effect import Question


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@click.pass_context
def runs(ctx: click.Context, as_json: bool) -> None:
    """List the runs in this home, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from chargehand.trace.number_text import moment

    listed = home().runs(None)
    out = screen()
    if as_json:
        out.document({"runs": [info.to_json() for info in listed]})
    elif not listed:
        out.say('There are no runs here yet. Begin with: chargehand run "Compare ..."')
    else:
        rows = [(info.run, info.status, moment(info.started), info.team or "", info.request) for info in listed]
        out.table(("run", "status", "started", "team", "request"), rows)


@runs.command(cls=Command)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the N newest runs.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Remove only runs older than DAYS.")
@click.option("--dry-run", is_flag=True, help="Say which runs would go, and remove none.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune(keep: int | None, older_than: float | None, dry_run: bool, yes: bool) -> None:
    """Remove records of runs for good. Runs under way, and runs that wait for a person, stay.

    With both --keep and --older-than a run goes only if both say so.
    """
    from chargehand.errors import UsageError
    from chargehand.trace.number_text import several

    kept = home()
    chosen = kept.prunable(keep=keep, older_than_days=older_than)
    out = screen()
    if dry_run or not chosen:
        for name in chosen:
            out.put(name)
        out.say(f"{several(len(chosen), 'run')} would be removed." if chosen else "There is nothing to remove.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{several(len(chosen), 'run')} would be removed for good: add --yes, or look with --dry-run."
            )
        click.confirm(f"Remove {several(len(chosen), 'run')} for good?", abort=True, err=True)
    for name in kept.prune(keep=keep, older_than_days=older_than):
        out.put(name)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the report and the open questions as one JSON document.")
def show(run_id: str, as_json: bool) -> None:
    """Show what became of RUN, or how far it is. RUN is an id, the beginning of one, or `last`.

    The exit code is 0 whatever the run's status.
    """
    kept = home()
    out = screen()
    report, questions = _read_report(kept, kept.find(run_id))
    if as_json:
        asked = [{"id": q.id, "kind": q.kind, "prompt": q.prompt, "schema": q.answer_schema} for q in questions]
        out.document(report | {"questions": asked})
    else:
        _show(report, questions, out)


def _read_report(kept: Home, run: str) -> tuple[dict[str, Any], Sequence[Question]]:
    """The report as JSON, final or as far as the run has come, and the open questions."""
    from chargehand.record.stored_report import read_stored_report

    if (stored := read_stored_report(kept, run)) is not None:
        return stored, ()
    from chargehand.apps.registry import find_app
    from chargehand.runs.report_from_record import open_questions, replay_run, report_so_far

    state = replay_run(kept, run)
    report = report_so_far(kept, state)
    if (app := find_app(state)) is not None:
        report = app.show(report)
    return report.to_json(), open_questions(state)


def _show(report: dict[str, Any], questions: Sequence[Question], out: Screen) -> None:
    from chargehand.cli.answer import listing
    from chargehand.cli.report_footer import LABEL, commands, details, documents, figures, label_first, tokens
    from chargehand.trace.number_text import duration, several

    out.put(f"run      {report['run']}")
    out.put(f"request  {report['request']}")
    out.put(f"status   {report['status']}: {figures(report)}")
    if report["outcomes"]:
        out.put("")
        rows = [
            (
                each["task"],
                each["worker"],
                each["status"],
                str(each["attempts"]),
                duration(each["usage"]["seconds"]),
                f"{tokens(each['usage']):,}",
                each["summary"],
            )
            for each in report["outcomes"]
        ]
        out.table(("task", "worker", "status", "tries", "time", "tokens", "summary"), rows)
    left = (len(report["plan"]["tasks"]) if report["plan"] else 0) - len(report["outcomes"])
    if left > 0:
        out.put(f"{several(left, 'task')} not ended")
    out.put("")
    out.markdown(report["answer"])
    for line in listing(report["run"], questions):
        out.put(line)
    out.put("")
    found = (*details(report), *documents(report))
    for label, text in (*found, *label_first("next", commands(report)[1:])):
        out.put(f"{label:<{LABEL}}{text}")


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def cancel(run_id: str) -> int:
    """Stop RUN within a second, also a run of another process. Its results are kept; `resume` continues it."""
    import asyncio

    from chargehand.cli.make_supervisor import records

    door = records()
    name = door.home.find(run_id)
    status, stopped = asyncio.run(door.cancel(name))
    out = screen()
    if stopped:
        out.say(f"{name} is cancelled. Continue it with: chargehand resume {name}")
    elif status == "running":
        out.complain(f"{name} was asked to stop but has not yet: it is run by {door.home.owner(name)}.")
        return 1
    elif status == "interrupted":
        out.say(f"{name} was stopped before anything of it was recorded: there is nothing to cancel.")
    else:
        out.say(f"{name} has ended already: {status}.")
    return 0
