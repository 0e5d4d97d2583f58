"""`trace`: the record of a run, exported without its secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.runs.supervisor import Supervisor
    from chargehand.trace.run_parts import Data


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--format", "form", type=click.Choice(["json", "jsonl", "html"]), default="json", show_default=True)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE; `-` is stdout. [default: stdout; html: chargehand-RUN.html]"
)
def trace(run_id: str, form: str, output: str | None) -> None:
    """Export the record of RUN: json is one document, jsonl one event a line, html a page in one file.

    RUN is an id, the beginning of one, or `last`. Secrets are removed.
    """
    from functools import partial

    from chargehand.cli.make_supervisor import supervisor_of_records
    from chargehand.cli.screen import check_writable, write_file, write_utf8
    from chargehand.text.escaping import dump_json
    from chargehand.trace import to_html, to_json, to_jsonl

    supervisor = supervisor_of_records()
    runs = supervisor.source
    name = runs.find(run_id)
    out = screen()
    file = Path(f"chargehand-{name}.html") if output is None and form == "html" else Path(output or "-")
    to_stdout = str(file) == "-"
    check_writable(None if to_stdout else file)
    # All of it is read before anything is written: half of a damaged record is not exported.
    if not sum(1 for _ in runs.events(name)) and runs.owner(name) is None:
        out.say(f"{name} was stopped before anything of it was recorded.")
    match form:
        case "html":
            known = {info.run: info for info in runs.runs(None)}.get(name)
            status = None if known is None else known.status
            shown = _shown_by_app(supervisor, name)
            parts = iter([to_html(runs.events(name), out.redactor, status=status, shown=shown)])
        case "jsonl":
            parts = to_jsonl(runs.events(name), out.redactor)
        case _:
            whole = to_json(runs.events(name), partial(runs.messages, name), out.redactor)
            if not whole["events"]:
                status = "interrupted" if runs.owner(name) is None else "running"
                whole = whole | {"run": name, "summary": whole["summary"] | {"status": status}}
            parts = iter([dump_json(whole, indent=2, ascii_only=True) + "\n"])
    if to_stdout:
        write_utf8(parts)
    else:
        write_file(file, "".join(parts))
        out.put(str(file.absolute()))


def _shown_by_app(supervisor: Supervisor, run: str) -> Data | None:
    """What the app that started the run shows: the findings it selected, and its own words for gaps."""
    from chargehand.apps.registry import find_app

    app = find_app(supervisor.source.state(run))
    if app is None:
        return None
    report = supervisor.report(run)
    shown = app.show(report, brief=True)
    if shown is report:
        return None
    whole = shown.to_json()
    return {name: whole[name] for name in ("answer", "findings", "gaps", "notes")}
