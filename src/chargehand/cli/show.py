"""`show`: the record of a run becomes its report so far, its plan, or one of its tasks, for a person or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.shared_options import Command, screen, source

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.record.run_source import RunSource
    from chargehand.values.effect import Question

# Width of the labels above the table.
HEAD = 9
# How much of a summary the table has: `show RUN TASK` has all of it.
LONGEST_SUMMARY = 200
# Columns of the table that are on the right, as in the live table.
NUMBERS = ("tries", "time", "tokens")
REUSED = "reused"
# The exit code after Ctrl-C while a run is watched.
INTERRUPTED = 130


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("task", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the report and the open questions as one JSON document.")
@click.option("--plan", "as_plan", is_flag=True, help="Show the plan alone; with --json it can be edited and run.")
@click.option("--watch", is_flag=True, help="Follow a run, also one of another process, until it ends; then show it.")
def show(run_id: str, task: str | None, as_json: bool, as_plan: bool, watch: bool) -> int:
    """Show the result of RUN, or how far it is. RUN is an id, the beginning of one, or `last`.

    With TASK, such as t1, show what that task was asked and what it did: prompts, replies, tool calls, claims. The exit
    code is 0 whatever the run's status.
    """
    from chargehand.apps.shown_report import questions_json, read_report, waiting_json
    from chargehand.errors import UsageError

    if task is not None and as_plan:
        raise UsageError("TASK and --plan exclude each other: give one of them.")
    if as_plan and watch:
        raise UsageError("--plan and --watch exclude each other: give one of them.")
    runs = source()
    out = screen()
    run = runs.find(run_id)
    if watch:
        import asyncio

        from chargehand.cli.follow_run import follow_run

        try:
            asyncio.run(follow_run(runs, run, out))
        except KeyboardInterrupt:
            out.say(f"Not watched any more. The run continues; to stop it: chargehand cancel {run}")
            return INTERRUPTED
    if task is not None:
        from chargehand.cli.screen import fit
        from chargehand.cli.show_task import COLUMN, describe_task, read_task

        detail = read_task(runs, run, task)
        if as_json:
            out.document(detail)
        else:
            # Secrets are removed before a line is broken.
            out.put(fit(out.redactor.text("\n".join(describe_task(detail))), sys.stdout, below=COLUMN))
        return 0
    from chargehand.cli.late_orders import LateOrders

    late = LateOrders()
    report, questions = read_report(runs, run, late.take)
    if as_plan:
        _show_plan(report, out, as_json=as_json)
    elif as_json:
        waiting = waiting_json(runs, report["run"], report["status"])
        out.document(report | {"questions": questions_json(questions)} | waiting)
    else:
        # The process of a running run takes its orders at once.
        to_restart = [] if report["status"] == "running" else _tasks_to_restart(runs, run)
        _show(report, questions, to_restart, late.describe(), out)
    return 0


def _tasks_to_restart(runs: RunSource, run: str) -> list[str]:
    """The tasks that the next resume restarts, by orders that wait for it."""
    from chargehand.record.mailbox import UnreadableOrder

    orders = [each for each in runs.orders(run).pending() if not isinstance(each, UnreadableOrder)]
    return list(dict.fromkeys(each.task for each in orders if each.order == "restart" and each.task))


def _show_plan(report: dict[str, Any], out: Screen, *, as_json: bool) -> None:
    from chargehand.errors import UsageError

    if report["plan"] is None:
        raise UsageError(f"Run {report['run']} has no plan: it is {report['status']}. `show` without --plan says more.")
    if as_json:
        out.document(report["plan"])
        return
    from chargehand.cli.screen import WIDEST, terminal_columns
    from chargehand.text.plan_json import parse
    from chargehand.trace import to_text

    out.put(to_text(parse(report["plan"]), terminal_columns() if sys.stdout.isatty() else WIDEST))


def _show(
    report: dict[str, Any],
    questions: Sequence[Question],
    to_restart: Sequence[str],
    late: Sequence[str],
    out: Screen,
) -> None:
    from chargehand.cli.open_questions import describe_questions
    from chargehand.cli.report_footer import (
        LABEL,
        commands,
        details,
        documents,
        figures,
        label_lines,
        next_lines,
        tokens,
    )
    from chargehand.cli.screen import WIDEST, fit, terminal_columns
    from chargehand.trace.number_text import duration, first_line, several, short
    from chargehand.values.status_words import FINISHED

    width = min(terminal_columns(), WIDEST) if sys.stdout.isatty() else None

    def put(label: str, text: str, column: int = HEAD) -> None:
        # Secrets are removed before a line is broken.
        out.put("\n".join(label_lines(label, out.redactor.text(text), width, column)))

    put("run", report["run"])
    put("request", report["request"])
    put("status", f"{report['status']}: {figures(report)}")
    if report["outcomes"]:
        out.put("")
        rows = [
            (
                each["task"],
                each["worker"],
                each["status"],
                str(each["attempts"]),
                describe_time(each),
                f"{tokens(each['usage']):,}",
                short(first_line(out.redactor.text(each["summary"])), LONGEST_SUMMARY),
            )
            for each in report["outcomes"]
        ]
        # The rows add up to the total above and, in time, to that of all calls one after the other.
        if rest := tokens(report["usage"]) - sum(tokens(each["usage"]) for each in report["outcomes"]):
            took = report["timing"]["sequential_s"] - sum(each["usage"]["seconds"] for each in report["outcomes"])
            time = duration(took) if took >= 0.0005 else ""
            rows.append(("rest", "", "", "", time, f"{rest:,}", "plan, checks, answer and earlier attempts"))
        out.table(("task", "worker", "status", "tries", "time", "tokens", "summary"), rows, NUMBERS)
    left = (len(report["plan"]["tasks"]) if report["plan"] else 0) - len(report["outcomes"])
    if left > 0:
        out.put(f"{several(left, 'task')} not ended")
    out.put("")
    out.markdown(report["answer"] if report["status"] in FINISHED else _without_commands(report["answer"]))
    for line in describe_questions(report["run"], questions):
        out.put(fit(out.redactor.text(line), sys.stdout))
    out.put("")
    for label, text in details(report):
        put(label, text, LABEL)
    for label, path in documents(report):
        out.put(f"{label:<{LABEL}}{path}")
    for line in late:
        put("order", line, LABEL)
    if to_restart:
        put("order", f"the next resume restarts {', '.join(to_restart)}", LABEL)
    out.put("\n".join(next_lines(commands(report, has_orders=bool(to_restart))[1:], width)))


def _without_commands(answer: str) -> str:
    """How far a run has come. The commands that continue it are listed as the next ones."""
    from chargehand.runs.report_from_record import CONTINUE

    return answer.partition(CONTINUE)[0]


def describe_time(outcome: dict[str, Any]) -> str:
    """What the calls of a task took; nothing for a task that made none. Results that are reused cost no tokens."""
    from chargehand.cli.report_footer import tokens
    from chargehand.trace.number_text import duration

    usage = outcome["usage"]
    if usage["seconds"] or tokens(usage):
        return duration(usage["seconds"])
    # A fork takes over the results of any status, with the models but without the calls. A rerun reuses each call of a
    # task that is done; a call of this run that failed may be too short to measure.
    if usage.get("models") if not usage["calls"] else outcome["status"] == "done":
        return REUSED
    return duration(0.0) if usage["calls"] else ""
