"""`worker`: carries out steps of runs on Temporal until it is asked to stop."""

from __future__ import annotations

import click

from chargehand.cli.shared_options import Command, screen


@click.command(cls=Command)
@click.option("--team", "teams", multiple=True, metavar="TEAM", help="A shipped team or a folder. [default: general]")
@click.option("--only", multiple=True, metavar="WORKER", help="Only steps of this worker: no plans and no answers.")
@click.option("--slots", type=click.IntRange(1, 1000), default=100, show_default=True, help="Steps at once, per queue.")
@click.option("--model", metavar="MODEL", help="provider:name for every role, where a run names none.")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    metavar="F",
    help="The part of each provider's limits that this worker uses: 0.25 for each of four.",
)
@click.option("--health", metavar="[HOST:]PORT", help="Answer GET /healthz there: 200 while it works, else 503.")
@click.option("--dev", is_flag=True, help="Also start a development server of Temporal on this machine.")
def worker(
    teams: tuple[str, ...],
    only: tuple[str, ...],
    slots: int,
    model: str | None,
    share: float,
    health: str | None,
    dev: bool,
) -> None:
    """Carry out steps of runs that were started with `run --engine temporal`, on this machine.

    Start as many as you like, anywhere: they share the Temporal server and the blob store of [temporal], and nothing
    else. A worker gets the steps of the teams that it has, in just its version of them. SIGTERM lets steps end for 10
    seconds; what is left then is done by another worker.
    """
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.engine.temporal.blob_store import INSTALL
    from chargehand.errors import UsageError

    try:
        from chargehand.runs.temporal_fleet_worker import WorkerOptions, run_worker
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "temporalio":
            raise
        install = INSTALL.replace("temporal", "temporal-dev") if dev else INSTALL
        raise UsageError(f"`worker` needs {error.name}, which is not installed: {install}") from None
    supervisors = [make_supervisor(team, {"model": model}) for team in teams or (None,)]
    out = screen()
    for warning in dict.fromkeys(warning for each in supervisors for warning in each.warnings):
        out.say(f"warning: {warning}")
    run_worker(supervisors, WorkerOptions(only, slots, share, _address(health), dev), out.say)


def _address(given: str | None) -> tuple[str, int] | None:
    """Host and port; only this machine unless a host is given."""
    from chargehand.errors import UsageError

    if given is None:
        return None
    host, _, port = given.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"--health is {given!r}: give PORT or HOST:PORT, such as 8421 or 0.0.0.0:8421.")
    return host or "127.0.0.1", int(port)
