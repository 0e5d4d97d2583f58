"""`steer` and `pause`: an order to a run, of this or another process, and the verdict on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.runs.send_order import SentOrder


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("task")
@click.argument("reason", required=False, default="")
@click.option("--stop", is_flag=True, help="End TASK as failed; it is not tried again, not even by a resume.")
def steer(run_id: str, task: str, reason: str, stop: bool) -> int:
    """Stop TASK of RUN, also of a run of another process. REASON goes on the record.

    The exit code is 0 when the order is accepted or waits for the next resume, 1 when it came too late, 2 when it is
    refused. RUN is an id, the beginning of one, or `last`. TASK is an id, or a path such as t3/1/t2.
    """
    import asyncio

    from chargehand.cli.make_supervisor import supervisor_of_records
    from chargehand.errors import UsageError

    if not stop:
        raise UsageError("This version can only stop a task: add --stop.")
    supervisor = supervisor_of_records()
    return report_verdict(asyncio.run(supervisor.steer(run_id, task, reason, stop=True, by="command")))


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def pause(run_id: str) -> int:
    """Let RUN begin nothing new, also a run of another process. Calls in flight are finished.

    A pause counts against no limit of time. `chargehand resume RUN` continues it.
    """
    import asyncio

    from chargehand.cli.make_supervisor import supervisor_of_records

    return report_verdict(asyncio.run(supervisor_of_records().pause(run_id, by="command")))


_DONE = {
    "pause": "{run} is paused. Continue it with: chargehand resume {run}",
    "continue": "{run} continues.",
    "stop": "{task} of {run} is stopped.",
}


def report_verdict(sent: SentOrder) -> int:
    """Say what became of an order; the exit code."""
    out = screen()
    match sent.verdict:
        case "accepted":
            out.say(_DONE[sent.order].format(run=sent.run, task=sent.task))
            return 0
        case "refused" | "too_late":
            out.complain(sent.reason)
            return 2 if sent.verdict == "refused" else 1
        case None:
            out.say(sent.reason)
            return 0
