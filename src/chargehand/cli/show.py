"""`show`: the record of a run becomes its report so far, its plan, or one of its tasks, for a person or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from chargehand.cli.shared_options import Command, screen, source

if TYPE_CHECKING:
    from chargehand.cli.open_tasks import OpenTasks
    from chargehand.cli.screen import Screen
    from chargehand.events import Event
    from chargehand.record.run_source import RunSource
    from chargehand.values.effect import Question

# Width of the labels above the table.
HEAD = 9
# How much of a summary the table has: `show RUN TASK` has all of it.
LONGEST_SUMMARY = 200
# With more tasks that have not ended, only the first ones are listed.
MOST_OPEN = 40
# A time that is shorter is not shown: 0 ms.
LEAST_TIME_S = 0.0005
COLUMNS = ("task", "worker", "status", "tries", "time", "tokens", "summary")
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
    from chargehand.cli.order_lines import LateOrders, describe_pending_orders

    if task is not None:
        from chargehand.cli.screen import fit
        from chargehand.cli.show_task import COLUMN, describe_task, read_task

        detail = read_task(runs, run, task)
        if as_json:
            out.document(detail)
        else:
            lines = [*describe_task(run, detail, describe_pending_orders(runs, run, task))]
            # Secrets are removed before a line is broken.
            out.put(fit(out.redactor.text("\n".join(lines)), sys.stdout, below=COLUMN))
        return 0
    late, reused, unsettled = LateOrders(), _ReusedTasks(), _UnsettledCalls()

    def take(event: Event) -> None:
        late.take(event)
        reused.take(event)
        unsettled.take(event)

    report, questions = read_report(runs, run, take)
    if as_plan:
        _show_plan(report, out, as_json=as_json)
    elif as_json:
        waiting = waiting_json(runs, report["run"], report["status"])
        out.document(report | {"questions": questions_json(questions)} | waiting)
    else:
        pending = describe_pending_orders(runs, run)
        has_broken = unsettled.found or (bool(unsettled.sent) and runs.owner(run) is None)
        more = _More(late.describe(), pending, _open_tasks(runs, report), reused.tasks, has_broken)
        _show(report, questions, more, out)
    return 0


class _More(NamedTuple):
    """What the record has and the report does not."""

    # Orders that came too late, one line each.
    late: Sequence[str]
    # Orders that wait for the next resume, one line each.
    pending: Sequence[str]
    # None for a run that has ended.
    open: OpenTasks | None
    # Tasks whose results all came from another run or from the cache.
    reused: Collection[str]
    # Whether calls were broken off: what they may have used belongs to no task.
    has_broken_calls: bool


class _ReusedTasks:
    """Takes the events of a run in order. A task that made a call or asked a question of its own is not reused."""

    def __init__(self) -> None:
        self.tasks: set[str] = set()
        self._called: set[str] = set()

    def take(self, event: Event) -> None:
        if event.task is None:
            return
        is_taken = event.kind == "reused" or (event.kind == "question_asked" and event.data.get("source"))
        if is_taken and event.task not in self._called:
            self.tasks.add(event.task)
        elif not is_taken and event.kind in ("model_called", "tool_called", "tool_refused", "question_asked"):
            self._called.add(event.task)
            self.tasks.discard(event.task)


class _UnsettledCalls:
    """Takes the events of a run in order, and finds calls whose usage is not known because they were broken off."""

    def __init__(self) -> None:
        self.found = False
        # The keys of the calls whose usage is not on the record yet.
        self.sent: set[str] = set()

    def take(self, event: Event) -> None:
        if event.kind == "model_called":
            self.sent.add(event.data["key"])
        elif event.kind == "budget_settled":
            self.sent.discard(event.data["key"])
            self.found = self.found or bool(event.data.get("lost"))


def _open_tasks(runs: RunSource, report: dict[str, Any]) -> OpenTasks | None:
    from chargehand.values.status_words import FINISHED

    if report["status"] in FINISHED:
        return None
    import time

    from chargehand.cli.open_tasks import read_open_tasks

    return read_open_tasks(runs, report, time.time())


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


def _show(report: dict[str, Any], questions: Sequence[Question], more: _More, out: Screen) -> None:
    from chargehand.cli.open_questions import describe_questions
    from chargehand.cli.report_footer import LABEL, commands, details, documents, figures, label_lines, next_lines
    from chargehand.cli.screen import WIDEST, fit, terminal_columns

    width = min(terminal_columns(), WIDEST) if sys.stdout.isatty() else None

    def put(label: str, text: str, column: int = HEAD) -> None:
        # Secrets are removed before a line is broken.
        out.put("\n".join(label_lines(label, out.redactor.text(text), width, column)))

    put("run", report["run"])
    put("request", report["request"])
    put("status", f"{report['status']}: {figures(report)}")
    _show_tasks(report, more, out)
    out.put("")
    out.markdown(report["answer"])
    for line in describe_questions(report["run"], questions):
        out.put(fit(out.redactor.text(line), sys.stdout))
    if not questions:
        out.put("")
    for label, text in details(report):
        put(label, text, LABEL)
    for label, path in documents(report):
        out.put(f"{label:<{LABEL}}{path}")
    for line in (*more.late, *more.pending):
        put("order", line, LABEL)
    out.put("\n".join(next_lines(commands(report, questions, has_orders=bool(more.pending))[1:], width)))


def _show_tasks(report: dict[str, Any], more: _More, out: Screen) -> None:
    """The tasks in the order of the plan, and a row for all calls that belong to none of them."""
    from chargehand.trace.number_text import duration, first_line, several, short
    from chargehand.trace.run_parts import tokens_in

    rows: dict[str, tuple[str, ...]] = {}
    for each in report["outcomes"]:
        time = REUSED if each["task"] in more.reused else describe_time(each)
        cells = (each["worker"], each["status"], str(each["attempts"]), time)
        summary = first_line(out.redactor.text(each["summary"]))
        rows[each["task"]] = (each["task"], *cells, f"{tokens_in(each['usage']):,}", short(summary, LONGEST_SUMMARY))
    unended = () if more.open is None else more.open.tasks
    for each in unended[:MOST_OPEN]:
        cells = (each.worker, each.status, str(each.tries or ""))
        time = "" if each.seconds is None else duration(each.seconds)
        doing = short(first_line(out.redactor.text(each.doing)), LONGEST_SUMMARY)
        rows[each.id] = (each.id, *cells, time, f"{each.tokens:,}" if each.tokens else "", doing)
    if rows:
        planned: list[dict[str, Any]] = report["plan"]["tasks"] if report["plan"] else []
        places: dict[str, int] = {each["id"]: number for number, each in enumerate(planned)}
        listed = sorted(rows.values(), key=lambda row: places.get(row[0], len(places)))
        out.put("")
        out.table(COLUMNS, [*listed, *_rest(report, more)], NUMBERS)
    if len(unended) > MOST_OPEN:
        out.put(f"and {several(len(unended) - MOST_OPEN, 'more task')} not ended")


def _rest(report: dict[str, Any], more: _More) -> list[tuple[str, ...]]:
    """The row of the calls that belong to no task, if there are any: with it, the rows add up to all calls."""
    from chargehand.trace.number_text import duration
    from chargehand.trace.run_parts import tokens_in

    used = tokens_in(report["usage"]) - sum(tokens_in(each["usage"]) for each in report["outcomes"])
    if more.open is None:
        took = report["usage"]["seconds"] - sum(each["usage"]["seconds"] for each in report["outcomes"])
    else:
        used, took = used - sum(each.tokens for each in more.open.tasks), more.open.rest_s
    if used <= 0:
        return []
    time = duration(took) if took >= LEAST_TIME_S else ""
    what = "plan, checks, answer and so on" + (", and calls that were broken off" if more.has_broken_calls else "")
    return [("rest", "", "", "", time, f"{used:,}", what)]


def describe_time(outcome: dict[str, Any]) -> str:
    """What the calls of a task took; nothing for a task that made none. Results that are reused cost no tokens."""
    from chargehand.trace.number_text import duration
    from chargehand.trace.run_parts import tokens_in

    usage = outcome["usage"]
    if usage["seconds"] or tokens_in(usage):
        return duration(usage["seconds"])
    # A fork takes over the results of any status, with the models but without the calls. A rerun reuses each call of a
    # task that is done; a call of this run that failed may be too short to measure.
    if usage.get("models") if not usage["calls"] else outcome["status"] == "done":
        return REUSED
    return duration(0.0) if usage["calls"] else ""
