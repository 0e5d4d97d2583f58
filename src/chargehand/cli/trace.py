"""`trace`: the record of a run, exported without its secrets."""

from __future__ import annotations

from pathlib import Path

import click

from chargehand.cli.command import Command, screen


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--format", "form", type=click.Choice(["json", "jsonl", "html"]), default="json", show_default=True)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE; `-` is stdout. [default: stdout; for html RUN.html]"
)
def trace(run_id: str, form: str, output: str | None) -> None:
    """Export the record of RUN: json one document, jsonl one event a line, html a page that needs nothing else.

    RUN is an id, the beginning of one, or `last`. Secrets are taken out.
    """
    from contextlib import closing

    from chargehand.cli.front import records
    from chargehand.cli.screen import check_writable, write_file, write_utf8
    from chargehand.escaping import dump_json
    from chargehand.trace import to_html, to_json, to_jsonl

    home = records().home
    name = home.find(run_id)
    out = screen()
    file = Path(f"chargehand-{name}.html") if output is None and form == "html" else Path(output or "-")
    to_stdout = str(file) == "-"
    check_writable(None if to_stdout else file)
    with closing(home.read(name)) as record:
        match form:
            case "html":
                known = {info.run: info.status for info in home.runs(None)}
                parts = iter([to_html(record.events(), out.redactor, status=known.get(name))])
            case "jsonl":
                parts = to_jsonl(record.events(), out.redactor)
            case _:
                whole = to_json(record.events(), record.blobs, out.redactor)
                parts = iter([dump_json(whole, indent=2, ascii_only=True) + "\n"])
        if to_stdout:
            write_utf8(parts)
        else:
            write_file(file, "".join(parts))
            out.put(str(file.absolute()))
