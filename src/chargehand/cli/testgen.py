"""`testgen`: a Python project becomes a watched run of the testgen team, and files with tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from chargehand.cli.shared_options import Command, screen


@click.command(cls=Command)
@click.argument("path", metavar="PATH")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder for the tests; nothing is overwritten. [default: tests/generated in PATH's project]",
)
@click.option("--model", metavar="MODEL", help="provider:name of a model that also writes tests.")
@click.option("--unsafe-run", is_flag=True, help="If no sandbox is available, run the code without one.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON document.")
def testgen(path: str, folder: Path | None, model: str | None, unsafe_run: bool, as_json: bool) -> int:
    """Write tests for the functions under PATH that have none.

    The code runs in a sandbox: a temporary copy without network, with limits of time and memory. Every test that is
    written has passed three times, and fails for at least one small change to the code it tests. What goes wrong
    each time is reported as a suspected bug, with a command that shows it. A file is written as soon as its tests
    have passed, and stays there when the command is stopped. If pytest does not work with the project's own settings,
    testgen says so and runs it without them.

    Works without a model and without a key. With --model, CHARGEHAND_MODEL or a model in a settings file, a model also
    writes tests. A key alone sends nothing out.
    """
    from chargehand.apps.testgen import run
    from chargehand.cli.watch_run import Stopped, deliver, drive

    out = screen()
    start = partial(run, path, out=folder, model=model, unsafe_run=unsafe_run, notify=out.say)
    try:
        generated, code = drive(start, out)
    except Stopped as stopped:
        out.complain(str(stopped))
        return stopped.exit_code
    if generated.nothing:
        for line in generated.nothing:
            out.say(line)
        return code
    if not generated.report.has_answer:
        out.say("What was verified by then was written:" if generated.files else "No file was written.")
        for file in generated.files.values():
            out.say(f"  {file}")
        out.say(f"`resume` finishes the run and writes the {'other files' if generated.files else 'files'}.")
    deliver(generated.report, out, as_json=as_json, as_data=False, output=None)
    return code
