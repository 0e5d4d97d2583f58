"""`run`, `resume` and `rerun`: a request or a record becomes a watched run and its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.apps.port import App
    from chargehand.cli.watch_run import Start
    from chargehand.runs.supervisor import Supervisor
    from chargehand.trace import RunState
    from chargehand.values.report import Report

F = TypeVar("F", bound=Callable[..., Any])
MORE_TOKENS = click.IntRange(min=1)
MORE = click.FloatRange(min=0, min_open=True)


def _outputs(command: F) -> F:
    command = click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON document.")(
        command
    )
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        callback=_file,
        metavar="FILE",
        help="Write to FILE, not to stdout; `-` is stdout.",
    )(command)


def _file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    return None if value == Path("-") else value


@click.command(cls=Command)
@click.argument("request", required=False, metavar="[REQUEST|-]")
@click.option(
    "--with", "material", multiple=True, metavar="PATH", help="A file or folder the workers may read; `-` is stdin."
)
@click.option("--team", metavar="TEAM", help="A shipped team or a team folder. [default: general]")
@click.option("--plan", "plan_file", metavar="FILE", help="Run this plan as it is: no planner call. `-` is stdin.")
@click.option("--model", metavar="MODEL", help="provider:name for every role, as anthropic:claude-sonnet-5-5.")
@click.option("--tokens", type=int, metavar="N", help="At most N tokens, input and output. [default: 500,000]")
@click.option("--usd", type=float, metavar="X", help="At most X dollars; needs models whose price is known.")
@click.option("--deadline", type=float, metavar="S", help="Answer within S seconds, with the results so far.")
@click.option("--max-concurrent", type=int, metavar="N", help="At most N calls at once. [default: 8]")
@click.option("--max-tasks", type=int, metavar="N", help="At most N tasks in a plan. [default: 1,000]")
@click.option("--approve", is_flag=True, help="Ask before the plan runs: approve, edit or reject it.")
@click.option("--ask", is_flag=True, help="Let escalations, and tool calls that need approval, reach a person.")
@click.option("--critic", is_flag=True, help="Let a reviewer accept the answer or send it back once.")
@click.option(
    "--schema", "schema_file", metavar="FILE", help="A JSON schema: the answer is printed as such data. `-` is stdin."
)
@click.option("--web", is_flag=True, help="Let the team's worker for it search the web and fetch pages.")
@click.option("--from", "follow_up", metavar="RUN", help="Follow up on that run: its answer is known to this one.")
@_outputs
def run(
    request: str | None,
    material: tuple[str, ...],
    team: str | None,
    plan_file: str | None,
    model: str | None,
    tokens: int | None,
    usd: float | None,
    deadline: float | None,
    max_concurrent: int | None,
    max_tasks: int | None,
    approve: bool,
    ask: bool,
    critic: bool,
    schema_file: str | None,
    web: bool,
    follow_up: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Answer REQUEST with a team: plan, run tasks in parallel, print one answer on stdout.

    REQUEST `-` reads it from stdin; with --plan it may be left out. Everything is recorded: after Ctrl-C or a crash,
    `chargehand resume last` continues the run. A person is asked on the terminal; without a terminal, the run waits
    with exit code 4 for `chargehand answer`.
    """
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import supervisor
    from chargehand.cli.screen import check_writable

    inputs.check_one_stdin(
        {
            "REQUEST": request == "-",
            "--with": "-" in material,
            "--plan": plan_file == "-",
            "--schema": schema_file == "-",
        }
    )
    check_writable(output)
    plan = inputs.read_plan(plan_file) if plan_file else None
    schema = inputs.read_json(schema_file, "a JSON schema") if schema_file else None
    flags = {
        "model": model,
        "tokens": tokens,
        "usd": usd,
        "deadline": deadline,
        "max_concurrent": max_concurrent,
        "max_tasks": max_tasks,
    }
    door = supervisor(team or (plan.team if plan else None), flags, given=team is not None)
    text = inputs.text_of_stdin("the request") if request == "-" else request or ""
    stdin = inputs.text_of_stdin("material") if "-" in material else None
    start = partial(
        door.run,
        text,
        plan=plan,
        material=[path for path in material if path != "-"],
        stdin=stdin,
        schema=schema,
        follow_up=follow_up,
        approve=approve,
        ask=ask,
        critic=critic,
        web=web,
    )
    return _watch(door, start, as_json=as_json, as_data=schema is not None, output=output)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--tokens", type=MORE_TOKENS, metavar="N", help="N tokens more; reopens what ended for lack of them.")
@click.option("--usd", type=MORE, metavar="X", help="X dollars more; reopens what ended for lack of them.")
@click.option("--deadline", type=MORE, metavar="S", help="S seconds from now; reopens what ended by the deadline.")
@click.option("--retry-failed", is_flag=True, help="Try the failed tasks again, and what depends on them.")
@_outputs
def resume(
    run_id: str,
    tokens: int | None,
    usd: float | None,
    deadline: float | None,
    retry_failed: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Continue RUN with the team and settings it started with. Nothing that is recorded is done again.

    RUN is an id, the beginning of one, or `last`. A run that has ended prints its answer.
    """
    from contextlib import closing

    from chargehand.apps.registry import find_app
    from chargehand.cli.make_supervisor import supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.runs.report_from_record import replay_run
    from chargehand.trace import fold

    check_writable(output)
    door = supervisor(None, {})
    name = door.home.find(run_id)
    with closing(door.home.read(name)) as reader:
        view = fold(reader.events())
    start = partial(door.resume, name, tokens=tokens, usd=usd, deadline=deadline, retry_failed=retry_failed)
    return _watch(door, start, as_json=as_json, output=output, app=find_app(replay_run(door.home, name)), view=view)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option(
    "--plan", "plan_file", metavar="FILE", help="Run this plan instead; what it shares with the old is reused."
)
@click.option("--model", metavar="MODEL", help="provider:name for every role. [default: what RUN was given, if it was]")
@_outputs
def rerun(run_id: str, plan_file: str | None, model: str | None, output: Path | None, as_json: bool) -> int:
    """Answer the request of RUN again, as a new run, from the files as they are now.

    Calls that have not changed are taken from the record of RUN. A --model given to RUN holds here too, unless --model
    or CHARGEHAND_MODEL names another. RUN is an id, the beginning of one, or `last`.
    """
    from chargehand.apps.registry import find_app
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.runs.report_from_record import replay_run

    check_writable(output)
    plan = inputs.read_plan(plan_file) if plan_file else None
    door = supervisor(None, {"model": model})
    start = partial(door.rerun, run_id, plan=plan)
    return _watch(
        door, start, as_json=as_json, output=output, app=find_app(replay_run(door.home, door.home.find(run_id)))
    )


def _watch(
    door: Supervisor,
    start: Start[Report],
    *,
    as_json: bool,
    output: Path | None,
    as_data: bool = False,
    app: App | None = None,
    view: RunState | None = None,
) -> int:
    """`app` is the one that began the run, if one did."""
    from chargehand.cli.answer import listing
    from chargehand.cli.watch_run import Stopped, deliver, drive

    out = screen()
    try:
        if app is None:
            report, code = drive(start, out, view)
        else:
            result, code = drive(partial(app.follow, start), out, view)
            report = result.report
    except Stopped as stopped:
        out.complain("Interrupted before the run began.")
        return stopped.exit_code
    # What an app says in data is beside its answer.
    as_data = as_data or (app is None and report.data is not None)
    deliver(report, out, as_json=as_json, as_data=as_data, output=output)
    if report.status == "waiting":
        for line in listing(report.run, door.questions(report.run)):
            out.say(line)
    return code
