"""`runs`, `runs prune` and `cancel`: the runs in this home are listed, removed and stopped."""

from __future__ import annotations

import sys

import click

from chargehand.cli.command import Command, home, screen, source, verbosity


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@click.pass_context
def runs(ctx: click.Context, as_json: bool) -> None:
    """List the runs in this home, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from chargehand.trace.number_text import moment

    listed = source().runs(None)
    out = screen()
    if as_json:
        out.document({"runs": [info.to_json() for info in listed]})
    elif not listed:
        out.say('There are no runs here yet. Start with: chargehand run "Compare ..."')
    else:
        rows = [(info.run, info.status, moment(info.started), info.team or "", info.request) for info in listed]
        out.table(("run", "status", "started", "team", "request"), rows)


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

    kept = home()
    chosen = kept.prunable(keep=keep, older_than_days=older_than)
    out = screen()
    if dry_run or not chosen:
        for name in chosen:
            out.put(name)
        out.say(f"{several(len(chosen), 'run')} would be removed." if chosen else "There is nothing to remove.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{several(len(chosen), 'run')} would be removed for good: add --yes, or look with --dry-run."
            )
        click.confirm(f"Remove {several(len(chosen), 'run')} for good?", abort=True, err=True)
    for name in kept.prune(keep=keep, older_than_days=older_than):
        out.put(name)


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
