"""A report -> the few lines under its answer: how it ended, what is missing, its cost, and the next commands.

The functions that `show` uses take the report as JSON, so that it can print a stored one without loading its models.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.screen import WIDEST, Screen, terminal_columns, wrap
from chargehand.cli.shared_options import source
from chargehand.trace.number_text import LEAST_SPEEDUP, duration, money, several, share
from chargehand.trace.run_parts import tokens_in

if TYPE_CHECKING:
    from chargehand.values.effect import Question
    from chargehand.values.report import Report

# A report as JSON.
ReportData = dict[str, Any]
COLOURS = {
    "complete": "green",
    "partial": "yellow",
    "failed": "red",
    "cancelled": "red",
    "interrupted": "yellow",
    "paused": "yellow",
}
MOST = 12
MOST_RESTARTS = 3
MOST_ANSWERS = 5
LABEL = 15
DOCUMENT = "document"


def print_footer(report: Report, screen: Screen, questions: Sequence[Question] = ()) -> None:
    """Print the footer on stderr, unless -q; `questions` are those that are open."""
    if screen.quiet:
        return
    shown = report.to_json()
    # In a log, lines can be searched: they are not wrapped.
    width = min(terminal_columns(), WIDEST) if sys.stderr.isatty() else None
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    status = screen.clean(f"{report.status}: {figures(shown)}")
    first, *more = [status] if width is None else wrap(status, width - 2)
    if colour:
        first = first.replace(report.status, click.style(report.status, fg=COLOURS.get(report.status), bold=True), 1)
    lines = ["", first, *(f"  {line}" for line in more)]

    paint = partial(click.style, dim=True) if colour else str
    for name, text in details(shown):
        lines += label_lines(name, screen.clean(text), width, paint=paint)
    # Paths will be copied: they are not wrapped.
    lines += [paint(f"{name:<{LABEL}}") + screen.link(Path(path), sys.stderr) for name, path in documents(shown)]
    lines += next_lines(commands(shown, questions), width, paint)
    print("\n".join(lines), file=sys.stderr, flush=True)


def label_lines(
    label: str, text: str, width: int | None, column: int = LABEL, paint: Callable[[str], str] = str
) -> list[str]:
    """The text beside its label, wrapped to the width; None for one line."""
    first, *more = [text] if width is None else wrap(text, width - column)
    return [paint(f"{label:<{column}}") + first, *(" " * column + line for line in more)]


def next_lines(commands: Sequence[str], width: int | None, paint: Callable[[str], str] = str) -> list[str]:
    """The next commands. They will be copied: if one does not fit beside the label, all are below it."""
    if width is None or max(map(len, commands)) <= width - LABEL:
        return [paint(f"{'' if number else 'next':<{LABEL}}") + text for number, text in enumerate(commands)]
    return [paint("next"), *(f"  {text}" for text in commands)]


def details(report: ReportData) -> list[tuple[str, str]]:
    """What a reader should know in addition to the answer, as (label, text)."""
    # The reason for a missing answer has already been printed, and what `resume` still does is not missing.
    left = set[str]() if report["status"] != "interrupted" else _tasks_left(report)
    gaps = [gap for gap in report["gaps"] if gap["reason"] != report["answer"] and gap["task"] not in left]
    found = [("gap", _gap(gap)) for gap in gaps]
    found += [("contradiction", _contradiction(each)) for each in report["contradictions"]]
    # The code in front of a problem is for programs.
    found += [("citation", problem.partition(": ")[2] or problem) for problem in report["provenance"]["problems"]]
    if report["provenance"]["unused"]:
        found.append(("not used", ", ".join(report["provenance"]["unused"])))
    found += [("left out", f"{each['task']}: {each['reason']}") for each in report["provenance"]["left_out"]]
    found += [("note", note) for note in report["notes"]]
    if len(found) > MOST:
        found = [*found[:MOST], ("", f"and {len(found) - MOST:,} more: chargehand show {report['run']}")]
    return found


def missing_section(report: ReportData) -> str:
    """The end of an answer in a file: the gaps that it does not state itself. Its reader may see no terminal."""
    gaps = [" ".join(_gap(gap).split()) for gap in report["gaps"] if gap["reason"] not in report["answer"]]
    return "\n## What is missing\n\n" + "".join(f"- {gap}\n" for gap in gaps) if gaps else ""


def _tasks_left(report: ReportData) -> set[str]:
    """The tasks of the plan that have not ended."""
    tasks = {task["id"] for task in (report["plan"] or {"tasks": ()})["tasks"]}
    return tasks - {outcome["task"] for outcome in report["outcomes"]}


def documents(report: ReportData) -> list[tuple[str, str]]:
    """The paths of the documents that the run wrote; if there are many, their folder."""
    found = source().documents(report["run"])
    return [(DOCUMENT, str(path)) for path in (found if len(found) <= MOST else [found[0].parent])]


def figures(report: ReportData) -> str:
    """The tasks done, the time and the cost."""
    timing, usage = report["timing"], report["usage"]
    done = sum(outcome["status"] == "done" for outcome in report["outcomes"])
    total = len(report["plan"]["tasks"]) if report["plan"] else len(report["outcomes"])
    parts = [f"{done} of {several(total, 'task')} done" if total else "no plan"]
    faster = ""
    if timing["sequential_s"] > 0 and timing["speedup"] >= LEAST_SPEEDUP:
        faster = f" ({duration(timing['sequential_s'])} one after the other, {timing['speedup']:.1f} times as fast)"
    parts.append(f"{duration(timing['wall_s'])}{faster}")
    cached = usage["cached_tokens"]
    much = cached * 100 >= usage["input_tokens"]  # less than one per cent is not worth a mention
    hits = f" ({share(cached, usage['input_tokens'])} of the input from cache)" if cached and much else ""
    parts.append(f"{several(usage['calls'], 'call')}, {tokens_in(usage):,} tokens{hits}")
    if usage["calls"] or report["status"] != "running":
        # Before the first reply it is not known whether the model has a price.
        parts.append(f"cost {money(usage['usd'])}")
    if report["confidence"] is not None:
        parts.append(f"confidence {report['confidence']}")
    return " · ".join(parts)


def _gap(gap: dict[str, Any]) -> str:
    where, reason = f"{gap['task']}: " if gap["task"] else "", gap["reason"].rstrip()
    if not gap["impact"]:
        return f"{where}{reason}"
    return f"{where}{reason}{'' if reason.endswith(('.', '?', '!')) else '.'} {gap['impact']}"


def _contradiction(found: dict[str, Any]) -> str:
    claims = f": {' / '.join(found['claims']).removesuffix('.')}" if found["claims"] else ""
    if not found["resolved"]:
        return f"{found['subject']}{claims}. Not resolved.{_sentence(found['reason'])}"
    return f"{found['subject']}{claims}.{_sentence(found['verdict'], 'Resolved: ')}{_sentence(found['reason'])}"


def _sentence(text: str | None, before: str = "") -> str:
    return f" {before}{text.removesuffix('.')}." if text else ""


def commands(report: ReportData, questions: Sequence[Question] = (), *, has_orders: bool = False) -> list[str]:
    """Commands for the run in its present status; `has_orders` says that orders wait for its next resume."""
    found = [f"chargehand show {report['run']}", f"chargehand trace {report['run']} --format html"]
    if ways := _ways_to_continue(report, questions):
        return [*found, *ways]
    if has_orders:
        return [*found, f"chargehand resume {report['run']}"]
    return [*found, *(_ways_on(report) if report["status"] in ("partial", "failed") else ())]


def answer_with_commands(report: ReportData, questions: Sequence[Question] = ()) -> str:
    """What stands in for the answer of a run that has not ended, and the commands that continue it."""
    ways = _ways_to_continue(report, questions)
    return "\n  ".join([f"{report['answer'].removesuffix('.')}:", *ways]) if ways else report["answer"]


def _ways_to_continue(report: ReportData, questions: Sequence[Question]) -> list[str]:
    """Commands that continue or follow a run that has not ended; none for one that has."""
    run = report["run"]
    match report["status"]:
        case "interrupted" if not report["request"]:
            return ["chargehand run"]  # stopped before its request was recorded: there is nothing to continue
        case "running":
            return [f"chargehand show {run} --watch", f"chargehand pause {run}", f"chargehand cancel {run}"]
        case "waiting" | "interrupted" | "cancelled" | "paused":
            answers = [f"chargehand answer {run} {each.id} {_way_to_answer(each)}" for each in questions[:MOST_ANSWERS]]
            more = [f"chargehand show {run}"] if len(questions) > MOST_ANSWERS else []  # has all of them
            # A process that only waits for answers continues by itself.
            goes_on = report["status"] == "waiting" and bool(questions) and source().owner(run) is not None
            return [*answers, *more, *([] if goes_on else [f"chargehand resume {run}"])]
        case _:
            return []


def _way_to_answer(question: Question) -> str:
    """The answer that lets the run continue as it asks to; for any other question, the option that opens an editor."""
    is_yes_or_no = question.kind == "plan" or (question.kind == "tool" and question.answer_schema is None)
    return "approve" if is_yes_or_no else "--edit"


def _ways_on(report: ReportData) -> list[str]:
    """Commands for tasks or a plan that failed: more of what they lacked, another try, a restart of stopped tasks."""
    from chargehand.trace.ways_on import ways_on

    found = ways_on(report)
    resume = f"chargehand resume {report['run']}"
    forms = {"tokens": ".0f"}
    return [
        *(f"{resume} --{name} {number:{forms.get(name, 'g')}}" for name, number in found.limits.items()),
        *([f"{resume} --retry-failed"] if found.retry_failed else []),
        *(f"chargehand steer {report['run']} {task} --restart" for task in found.stopped[:MOST_RESTARTS]),
        *(_commands_for_another_plan(report["run"]) if found.another_plan or found.short_budget else []),
    ]


def _commands_for_another_plan(run: str) -> list[str]:
    """The plan is edited between the two. `rerun` would ask about the plan that was rejected: it reuses the planner's
    reply.
    """
    return [f"chargehand show {run} --plan --json > plan.json", f"chargehand fork {run} --plan plan.json"]
