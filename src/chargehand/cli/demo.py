"""`demo`: writes logs to a folder, shows a scripted run about them, and writes the page of the run."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, home, screen

if TYPE_CHECKING:
    from chargehand.runs.supervisor import Supervisor

DEFAULT_FOLDER = Path("chargehand-demo")


@click.command(cls=Command)
@click.argument("folder", required=False, default=DEFAULT_FOLDER, type=click.Path(path_type=Path))
def demo(folder: Path) -> int:
    """Watch a whole run without a key and without a network, in a few seconds.

    Six logs of a web shop are written to FOLDER (chargehand-demo), more than one prompt could hold. A team finds out
    why checkout failed. A script answers in place of the model; the planner's checks, the dispatcher, the tools, the
    recovery, the record and the report are those of every run. You see parallel work, a rate limit, a worker that fails
    and is tried again, two logs that contradict each other, and an answer that says what is missing. FOLDER/page.html
    is the page of the run, FOLDER/tutorial.json the script of the tutorial.

    The run ends partial, for which `chargehand run` has exit code 3. `demo` itself exits with 0 when it has shown that.
    """
    from chargehand.apps.demo import REQUEST, TUTORIAL
    from chargehand.apps.demo.material import LOGS, write_logs
    from chargehand.apps.shown_report import export_run
    from chargehand.cli.screen import write_file
    from chargehand.cli.signals import Stopped
    from chargehand.cli.watch_run import deliver, drive
    from chargehand.errors import UsageError

    logs, page, tutorial = folder / "logs", folder / "page.html", folder / TUTORIAL.name
    if folder.is_dir() and any(folder.iterdir()) and not (logs.is_dir() or tutorial.is_file()):
        raise UsageError(f"{folder} has files of yours: name a folder that is new or empty, `chargehand demo FOLDER`.")
    try:
        size = write_logs(logs)
        shutil.copyfile(TUTORIAL, tutorial)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written to: {error.strerror}. Name another folder: `chargehand demo FOLDER`."
        ) from None
    out = screen()
    for line in (
        f"Request: {REQUEST}",
        f"Material: {len(LOGS)} logs, {size / 1e6:.1f} MB or about {size // 4:,} tokens, too long for one prompt.",
        "Model: a script, so that nothing is sent anywhere. All else is a run like any other.",
    ):
        out.say(line, below=2)
    out.say("")
    supervisor = _supervisor()
    try:
        report, code = drive(partial(supervisor.run, REQUEST, material=[str(logs)]), out)
    except Stopped as stopped:
        out.complain(str(stopped))
        return stopped.exit_code
    deliver(report, out, as_json=False, as_data=False, output=None)
    if report.status not in ("complete", "partial"):
        return code
    write_file(page, "".join(export_run(home(), report.run, "html", out.redactor)))
    out.say("")
    out.say_file("The page of this run: ", page.absolute())
    out.say(f"All runs in a browser: {_serve_command()}")
    return 0


def _supervisor() -> Supervisor:
    """Reads no settings, so that the demo is the same everywhere."""
    from chargehand.apps.demo import SCRIPT, TEAM
    from chargehand.runs.supervisor import Supervisor
    from chargehand.settings import Settings

    return Supervisor(TEAM, settings=Settings(home=str(home().path), model=f"scripted:{SCRIPT}"))


def _serve_command() -> str:
    from importlib.util import find_spec

    command = "chargehand serve --open"
    return command if find_spec("starlette") and find_spec("uvicorn") else f"pip install 'chargehand[serve]'; {command}"
