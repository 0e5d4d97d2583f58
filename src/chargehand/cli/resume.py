"""`resume` and `rerun`: the record of a run becomes a watched run, the same or a new one, and its answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from chargehand.cli.command import Command, output_options

MORE_TOKENS = click.IntRange(min=1)
MORE = click.FloatRange(min=0, min_open=True)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--tokens", type=MORE_TOKENS, metavar="N", help="N tokens more; reopens tasks that lacked them.")
@click.option("--usd", type=MORE, metavar="X", help="X dollars more; reopens tasks that lacked them.")
@click.option("--deadline", type=MORE, metavar="S", help="S seconds from now; reopens tasks that ran out of time.")
@click.option("--retry-failed", is_flag=True, help="Try the failed tasks again, and what depends on them.")
@output_options
def resume(
    run_id: str,
    tokens: int | None,
    usd: float | None,
    deadline: float | None,
    retry_failed: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Continue RUN with the team and settings it started with. What is recorded is not done again.

    RUN is an id, the beginning of one, or `last`. A run that has ended prints its answer. One that is paused in another
    process continues there.
    """
    from chargehand.apps.registry import find_app
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import watch
    from chargehand.trace import fold

    check_writable(output)
    supervisor = make_supervisor(None, {})
    name = supervisor.source.find(run_id)
    if supervisor.source.owner(name) is not None and supervisor.source.state(name).paused:
        import asyncio

        from chargehand.cli.steer import report_verdict

        return report_verdict(asyncio.run(supervisor.unpause(name, by="command")))
    app = find_app(supervisor.source.state(name))
    view = fold(supervisor.source.events(name))
    start = partial(supervisor.resume, name, tokens=tokens, usd=usd, deadline=deadline, retry_failed=retry_failed)
    return watch(supervisor, start, as_json=as_json, output=output, app=app, view=view)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--plan", "plan_file", metavar="FILE", help="Run this plan instead; unchanged parts are reused.")
@click.option("--model", metavar="MODEL", help="provider:name for every role. [default: what RUN was given, if it was]")
@output_options
def rerun(run_id: str, plan_file: str | None, model: str | None, output: Path | None, as_json: bool) -> int:
    """Answer the request of RUN again, as a new run, from the files as they are now.

    Calls that have not changed are taken from the record of RUN. A --model given to RUN is used again, unless --model
    or CHARGEHAND_MODEL names another. RUN is an id, the beginning of one, or `last`.
    """
    from chargehand.apps.registry import find_app
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import watch

    check_writable(output)
    plan = inputs.read_plan(plan_file) if plan_file else None
    supervisor = make_supervisor(None, {"model": model})
    app = find_app(supervisor.source.state(supervisor.source.find(run_id)))
    start = partial(supervisor.rerun, run_id, plan=plan)
    return watch(supervisor, start, as_json=as_json, output=output, app=app)
