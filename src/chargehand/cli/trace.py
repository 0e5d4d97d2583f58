"""`trace`: the record of a run, exported without its secrets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen, source

if TYPE_CHECKING:
    from chargehand.apps.shown_report import TraceForm


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "html", "otlp"]),
    help="[default: the ending of FILE, else json]",
)
@click.option("--content", is_flag=True, help="With otlp: also the texts of the run, such as prompts and replies.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE; `-` is stdout. [default: stdout; html: chargehand-RUN.html]"
)
def trace(run_id: str, form: TraceForm | None, output: str | None, *, content: bool) -> None:
    """Export the record of RUN: json is one document, jsonl one event a line, html a page in one file, otlp the spans
    for OpenTelemetry.

    RUN is an id, the beginning of one, or `last`. Secrets are removed.
    """
    from chargehand.apps.shown_report import export_run
    from chargehand.cli.screen import check_writable, write_file, write_painted, write_utf8

    form = form or _form_of(output)
    if content and form != "otlp":
        raise click.UsageError("--content is for --format otlp: the other formats have the texts of the run anyway.")
    runs = source()
    name = runs.find(run_id)
    out = screen()
    file = Path(f"chargehand-{name}.html") if output is None and form == "html" else Path(output or "-")
    to_stdout = str(file) == "-"
    check_writable(None if to_stdout else file)
    # The whole record is read before anything is written, so that a damaged record is not half exported.
    if not sum(1 for _ in runs.events(name)) and runs.owner(name) is None:
        out.say(f"{name} was stopped before anything of it was recorded.")
    parts = export_run(runs, name, form, out.redactor, content=content)
    if to_stdout:
        write_utf8(parts)
        if sys.stdout.isatty():
            out.say(f"To read it as a page: chargehand trace {name} --format html")
    else:
        write_file(file, "".join(parts))
        write_painted(f"{out.link(file.absolute(), sys.stdout)}\n")


def _form_of(output: str | None) -> TraceForm:
    match Path(output or "").suffix:
        case ".html":
            return "html"
        case ".jsonl":
            return "jsonl"
        case _:
            return "json"
