"""`resume`, `rerun` and `fork`: the record of a run becomes a watched run, the same or a new one, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from chargehand.cli.shared_options import Command, output_options, screen

if TYPE_CHECKING:
    from chargehand.runs.send_order import SentOrder
    from chargehand.runs.supervisor import Supervisor
    from chargehand.values.plan import Plan

    _Order: TypeAlias = Callable[[], Coroutine[Any, Any, SentOrder]]

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
    process continues there; limits that are given for a run of another process are added there.
    """
    from chargehand.apps.registry import find_app
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import watch
    from chargehand.errors import RunOwned
    from chargehand.trace import fold
    from chargehand.values.status_words import FINISHED

    check_writable(output)
    supervisor = make_supervisor(None, {})
    name = supervisor.source.find(run_id)
    owner = supervisor.source.owner(name)
    if owner is not None and (orders := _orders(supervisor, name, tokens, usd, deadline)):
        code = _give(orders)
        topped_up = tokens is not None or usd is not None or deadline is not None
        stays_away = topped_up or supervisor.home.has(name)  # a run on Temporal is followed from anywhere
        if code or (stays_away and supervisor.source.owner(name) is not None):
            return code
        tokens = usd = deadline = None  # its owner was about to end: the orders wait for the resume
        owner = None
    state = supervisor.source.state(name)
    if owner is not None and supervisor.home.has(name) and state.status not in FINISHED:
        raise RunOwned.by(owner, name)  # before the table of the run is drawn
    app = find_app(state)
    view = fold(supervisor.source.events(name))
    start = partial(supervisor.resume, name, tokens=tokens, usd=usd, deadline=deadline, retry_failed=retry_failed)
    return watch(supervisor, start, as_json=as_json, output=output, app=app, view=view)


def _orders(
    supervisor: Supervisor, run: str, tokens: int | None, usd: float | None, deadline: float | None
) -> list[_Order]:
    """The orders for the process that owns the run."""
    orders: list[_Order] = []
    if tokens is not None or usd is not None or deadline is not None:
        orders.append(partial(supervisor.top_up, run, tokens=tokens, usd=usd, deadline=deadline, by="command"))
    if supervisor.source.state(run).paused:
        orders.append(partial(supervisor.unpause, run, by="command"))
    return orders


def _give(orders: list[_Order]) -> int:
    """Send one order after another and return the exit code. A refused order is the last: the run stays paused."""
    import asyncio

    from chargehand.cli.steer import report_verdict

    for order in orders:
        if code := report_verdict(asyncio.run(order())):
            return code
    return 0


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
    state = supervisor.source.state(supervisor.source.find(run_id))
    app = find_app(state)
    _compare_goals(state.run, state.plan or {}, plan, plan_file)
    start = partial(supervisor.rerun, run_id, plan=plan)
    with inputs.name_lines(plan_file):
        return watch(supervisor, start, as_json=as_json, output=output, app=app)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--at", metavar="TASK", help="Do TASK again, and what depends on it; the rest is taken over.")
@click.option("--model", metavar="MODEL", help="provider:name for every role; without --at every task is done again.")
@click.option(
    "--plan", "plan_file", metavar="FILE", help="Follow this plan; tasks that it does not change are taken over."
)
@output_options
def fork(
    run_id: str, at: str | None, model: str | None, plan_file: str | None, output: Path | None, as_json: bool
) -> int:
    """Try another way from a point of RUN on, as a new run. RUN stays as it is.

    Give at least one of --at, --model and --plan. Tasks that are not done again are taken over with their results, and
    cost nothing. Team, request and settings are those that RUN was started with. `chargehand diff RUN last` compares
    the two runs. RUN is an id, the beginning of one, or `last`.
    """
    from chargehand.apps.registry import find_app
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import watch

    if at is None and model is None and plan_file is None:
        raise click.UsageError("Nothing would differ: give --at, --model or --plan.")
    check_writable(output)
    plan = inputs.read_plan(plan_file) if plan_file else None
    supervisor = make_supervisor(None, {})
    run = supervisor.source.find(run_id)
    state = supervisor.source.state(run)
    app = find_app(state)
    _compare_goals(state.run, state.plan or {}, plan, plan_file)
    start = partial(supervisor.fork, run, at=at, model=model, plan=plan)
    with inputs.name_lines(plan_file):
        return watch(supervisor, start, as_json=as_json, output=output, app=app)


def _compare_goals(run: str, before: Mapping[str, Any], plan: Plan | None, plan_file: str | None) -> None:
    """Warn of a plan with another goal: RUN may be another run than was meant."""
    goal = before.get("goal")
    if plan is not None and goal and plan.goal and plan.goal != goal:
        screen().say(f"warning: {plan_file} has another goal than the plan of {run}: {goal}")
