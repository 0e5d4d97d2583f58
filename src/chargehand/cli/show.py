"""`show`: the record of a run becomes its report so far, for a person or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.command import Command, screen, source

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.values.effect import Question


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the report and the open questions as one JSON document.")
def show(run_id: str, as_json: bool) -> None:
    """Show the result of RUN, or how far it is. RUN is an id, the beginning of one, or `last`.

    The exit code is 0 whatever the run's status.
    """
    from chargehand.apps.shown_report import questions_json, read_report

    runs = source()
    out = screen()
    report, questions = read_report(runs, runs.find(run_id))
    if as_json:
        out.document(report | {"questions": questions_json(questions)})
    else:
        _show(report, questions, out)


def _show(report: dict[str, Any], questions: Sequence[Question], out: Screen) -> None:
    from chargehand.cli.answer import describe_questions
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
    for line in describe_questions(report["run"], questions):
        out.put(line)
    out.put("")
    found = (*details(report), *documents(report))
    for label, text in (*found, *label_first("next", commands(report)[1:])):
        out.put(f"{label:<{LABEL}}{text}")
