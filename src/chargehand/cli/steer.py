"""`steer` and `pause`: an order to a run, of this or another process, and the verdict on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen, source

if TYPE_CHECKING:
    from chargehand.runs.send_order import SentOrder


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("task")
@click.argument("text", required=False, default="")
@click.option("--stop", is_flag=True, help="End TASK as failed; TEXT is the reason. Not even a resume tries it again.")
@click.option("--restart", is_flag=True, help="Run TASK again, with all that depend on it; also one that was stopped.")
@click.option("--model", metavar="MODEL", help="Restart it with this model, as provider:name.")
@click.option("--instruction", metavar="TEXT", help="Restart it with this instruction.")
def steer(
    run_id: str, task: str, text: str, stop: bool, restart: bool, model: str | None, instruction: str | None
) -> int:
    """Give TEXT to the worker of TASK before its next model call, or stop or restart TASK.

    RUN may be of another process. One that has ended can be restarted: `chargehand resume RUN` continues it then.

    The exit code is 0 when the order is accepted or waits for the next resume, 1 when it came too late, 2 when it is
    refused. RUN is an id, the beginning of one, or `last`. TASK is an id, or a path such as t3/1/t2.
    """
    import asyncio

    from chargehand.cli.make_supervisor import supervisor_of_records
    from chargehand.errors import UsageError

    if stop + restart > 1 or ((model or instruction) and not restart) or (restart and text):
        raise UsageError("Give one of: TEXT; --stop [TEXT]; --restart [--model MODEL] [--instruction TEXT].")
    if not stop and not restart and not text.strip():
        raise UsageError(f"There is nothing to order of {task}: give TEXT for its worker, --stop or --restart.")
    supervisor = supervisor_of_records()
    if model is not None:
        from chargehand.settings import check_model_name

        check_model_name(model, supervisor.settings.providers, "--model")
    steer = supervisor.steer(
        run_id, task, text, stop=stop, restart=restart, model=model, instruction=instruction, by="command"
    )
    return report_verdict(asyncio.run(steer))


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def pause(run_id: str) -> int:
    """Let RUN begin nothing new, also a run of another process. Calls in flight are finished.

    After them, the pause counts against no limit of time. `chargehand resume RUN` continues it.
    """
    import asyncio

    from chargehand.cli.make_supervisor import supervisor_of_records

    return report_verdict(asyncio.run(supervisor_of_records().pause(run_id, by="command")))


_DONE = {
    "pause": "{run} is paused. Continue it with: chargehand resume {run}",
    "continue": "{run} continues.",
    "stop": "{task} of {run} is stopped.",
    "restart": "{task} of {run} will run again, with all tasks that depend on it, except those that a person stopped.",
    "top_up": "The limits of {run} have grown.",
    "answer": "The answer is recorded in {run}.",
    "tell": "The worker of {task} of {run} has it.",
}


def report_verdict(sent: SentOrder) -> int:
    """Print the verdict on an order and return the exit code."""
    out = screen()
    match sent.verdict:
        case "accepted":
            out.say(_DONE[sent.order].format(run=sent.run, task=sent.task))
            return 0
        case "refused" | "too_late":
            out.complain(f"{sent.reason}{_next_command(sent)}")
            return 2 if sent.verdict == "refused" else 1
        case None:
            out.say(f"{sent.reason}{_next_command(sent)}")
            return 0


def _next_command(sent: SentOrder) -> str:
    """The command to type after an order that was not accepted, or not yet."""
    from chargehand.cli.order_lines import restart_command

    task = "" if sent.task is None else f" {sent.task}"
    match sent.verdict:
        case "too_late" if sent.task is not None:
            return f" {restart_command(sent.run, sent.task)}"
        case None if source().owner(sent.run) is None:
            return f" To resume it: chargehand resume {sent.run}"
        case None:
            return f" To see whether it was taken: chargehand show {sent.run}{task}"
        case _ if sent.task is not None and _asks(sent.run, sent.task):
            return f" With: chargehand answer {sent.run} {sent.task} TEXT"
        case _:
            return f" See: chargehand show {sent.run}"


def _asks(run: str, task: str) -> bool:
    """Whether a question of the task is open. It has the name of the task."""
    from chargehand.cli.make_supervisor import supervisor_of_records

    return any(question.id == task for question in supervisor_of_records().questions(run))
