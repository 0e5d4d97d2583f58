"""`runs`, `runs prune` and `cancel`: the runs in this home are listed, removed and stopped."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, home, screen, source, verbosity

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen

# How often a list that is watched is read again.
LOOK_S = 1.0


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@click.option("--watch", is_flag=True, help="Show the list on the terminal as it changes, until Ctrl-C.")
@click.pass_context
def runs(ctx: click.Context, as_json: bool, watch: bool) -> None:
    """List the runs in this home, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from chargehand.trace.number_text import moment

    out = screen()
    if watch:
        _watch(out, as_json=as_json)
        return
    listed = source().runs(None)
    if as_json:
        out.document({"runs": [info.to_json() for info in listed]})
    elif not listed:
        out.say('There are no runs here yet. Start with: chargehand run "Compare ..."')
    else:
        from chargehand.cli.screen import WIDEST, terminal_columns

        # The id of a run begins with when it started: that is enough where there is little room.
        brief = sys.stdout.isatty() and terminal_columns() < WIDEST
        rows = [
            (info.run, info.status, *([] if brief else [moment(info.started)]), info.team or "", info.request)
            for info in listed
        ]
        out.table(("run", "status", *([] if brief else ["started"]), "team", "request"), rows)


def _watch(out: Screen, *, as_json: bool) -> None:
    """The newest runs that fit on the screen, once a second."""
    from chargehand.errors import UsageError

    if as_json or not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal, and no --json: for a program, call `chargehand runs --json` again.")
    import time

    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from chargehand.cli.live_table import STYLES
    from chargehand.cli.screen import WIDEST, console
    from chargehand.trace.number_text import moment

    terminal = console(stderr=False)

    def render() -> Table:
        table = Table(box=None, padding=(0, 1), expand=True, header_style="dim")
        # The id of a run begins with when it started: that is enough where there is little room.
        brief = terminal.width < WIDEST
        for name in ("run", "status", *([] if brief else ["started"]), "team"):
            table.add_column(name, no_wrap=True)
        table.add_column("request", ratio=1, no_wrap=True, overflow="ellipsis")
        for info in source().runs(max(terminal.height - 3, 1)):
            status = Text(info.status, STYLES.get(info.status, "") or ("bold" if info.status == "waiting" else ""))
            cells = (info.run, status, *([] if brief else [moment(info.started)]), info.team or "", info.request)
            table.add_row(*(cell if isinstance(cell, Text) else Text(out.clean(cell)) for cell in cells))
        return table

    with suppress(KeyboardInterrupt), Live(console=terminal, auto_refresh=False) as live:
        while True:
            live.update(render(), refresh=True)
            time.sleep(LOOK_S)


@runs.command(cls=Command)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the N newest runs.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Remove only runs older than DAYS.")
@click.option("--dry-run", is_flag=True, help="List the runs that would be removed, and remove none.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune(keep: int | None, older_than: float | None, dry_run: bool, yes: bool) -> None:
    """Remove records of runs for good. Running runs, and runs that wait for a person, are kept.

    With both --keep and --older-than, a run is removed only if both select it.
    """
    from chargehand.errors import UsageError
    from chargehand.trace.number_text import several

    if keep is None and older_than is None:
        raise UsageError("Say which runs to remove: all but the newest, --keep N, or old ones, --older-than DAYS.")
    kept = home()
    chosen = kept.prunable(keep=keep, older_than_days=older_than)
    out = screen()
    if not chosen:
        out.say("There is nothing to remove.")
        return
    out.table(("run", "status", "request"), [(info.run, info.status, info.request) for info in chosen])
    sys.stdout.flush()  # before the question, which is on stderr
    if dry_run:
        out.say(f"{several(len(chosen), 'run')} would be removed.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{several(len(chosen), 'run')} would be removed for good: add --yes, or look with --dry-run."
            )
        if not click.confirm(f"Remove {several(len(chosen), 'run')} for good?", err=True):
            out.say("Nothing is removed.")
            return
    # Only runs that were listed: others may have ended since.
    removed = kept.remove(info.run for info in chosen)
    out.say(f"{several(len(removed), 'run')} removed.")
    if left := len(chosen) - len(removed):
        out.complain(f"Not removed, because a process runs them by now: {several(left, 'run')}.")


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def cancel(run_id: str) -> int:
    """Stop RUN within a second, also a run of another process. Its results are kept; `resume` continues it."""
    import asyncio

    from chargehand.cli.make_supervisor import supervisor_of_records

    supervisor = supervisor_of_records()
    name = supervisor.source.find(run_id)
    status, stopped = asyncio.run(supervisor.cancel(name))
    out = screen()
    if stopped:
        out.say(f"{name} is cancelled. Continue it with: chargehand resume {name}")
    elif status == "running":
        out.complain(f"{name} was asked to stop but has not yet: it is run by {supervisor.source.owner(name)}.")
        return 1
    elif status == "interrupted":
        out.say(f"{name} was stopped before anything of it was recorded: there is nothing to cancel.")
    else:
        out.say(f"{name} has ended already: {status}.")
    return 0
