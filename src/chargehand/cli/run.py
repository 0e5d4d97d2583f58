"""`run`: a request becomes a watched run and its answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from chargehand.cli.shared_options import Command, output_options
from chargehand.values.default_limits import DEFAULT_CONCURRENCY, DEFAULT_TASKS, DEFAULT_TOKENS


@click.command(cls=Command)
@click.argument("request", required=False, metavar="[REQUEST|-]")
@click.option(
    "--with", "material", multiple=True, metavar="PATH", help="A file or folder the workers may read; `-` is stdin."
)
@click.option("--team", metavar="TEAM", help="A shipped team or a team folder. [default: general]")
@click.option("--plan", "plan_file", metavar="FILE", help="Run this plan as it is: no planner call. `-` is stdin.")
@click.option("--model", metavar="MODEL", help="provider:name for every role, such as anthropic:claude-sonnet-5-5.")
@click.option(
    "--tokens", type=int, metavar="N", help=f"At most N tokens, input and output. [default: {DEFAULT_TOKENS:,}]"
)
@click.option("--usd", type=float, metavar="X", help="At most X dollars; needs models whose price is known.")
@click.option("--deadline", type=float, metavar="S", help="Answer within S seconds, with the results so far.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Wait S seconds at most for a provider whose quota is used up; 0 is not at all. [default: 6 hours]",
)
@click.option(
    "--max-concurrent", type=int, metavar="N", help=f"At most N calls at once. [default: {DEFAULT_CONCURRENCY}]"
)
@click.option("--max-tasks", type=int, metavar="N", help=f"At most N tasks in a plan. [default: {DEFAULT_TASKS:,}]")
@click.option("--approve", is_flag=True, help="Ask before the plan runs: approve or reject it, or give an edited one.")
@click.option("--ask", is_flag=True, help="Let escalations, and tool calls that need approval, reach a person.")
@click.option("--critic", is_flag=True, help="Let a critic accept the answer or send it back once.")
@click.option(
    "--schema",
    "schema_file",
    metavar="FILE",
    help="A JSON schema: the answer is JSON that fits it. `-` is stdin.",
)
@click.option(
    "--single/--no-single",
    default=None,
    help="Answer with one plain call instead of a team, or never do. [default: one call where a small open model has "
    "all material in its prompt, unless a team or a plan is given]",
)
@click.option("--web", is_flag=True, help="Let the workers that the team names for it search the web and fetch pages.")
@click.option("--from", "follow_up", metavar="RUN", help="Follow up on that run: this one is given its answer.")
@click.option(
    "--engine",
    type=click.Choice(["local", "temporal"]),
    help="Where the steps run: here, or on workers of Temporal (`chargehand worker`). [default: local]",
)
@output_options
def run(
    request: str | None,
    material: tuple[str, ...],
    team: str | None,
    plan_file: str | None,
    model: str | None,
    tokens: int | None,
    usd: float | None,
    deadline: float | None,
    wait: float | None,
    max_concurrent: int | None,
    max_tasks: int | None,
    approve: bool,
    ask: bool,
    critic: bool,
    schema_file: str | None,
    single: bool | None,
    web: bool,
    follow_up: str | None,
    engine: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Answer REQUEST with a team: plan, run tasks in parallel, print one answer on stdout.

    REQUEST `-` reads it from stdin; with --plan it may be left out. Everything is recorded: after Ctrl-C or a crash,
    `chargehand resume last` continues the run. A person is asked on the terminal; without a terminal, the run waits
    with exit code 4 for `chargehand answer`.
    """
    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import watch
    from chargehand.errors import UsageError

    inputs.check_one_stdin(
        {
            "REQUEST": request == "-",
            "--with": "-" in material,
            "--plan": plan_file == "-",
            "--schema": schema_file == "-",
        }
    )
    if single and (team or plan_file):
        raise UsageError("--single is one plain call, without a team and a plan: leave out --team and --plan.")
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
        "engine": engine,
    }
    supervisor = make_supervisor(team or (plan.team if plan else None), flags, given=team is not None)
    text = inputs.read_request(request)
    stdin = inputs.text_of_stdin("material") if "-" in material else None
    start = partial(
        supervisor.run,
        text,
        plan=plan,
        material=[path for path in material if path != "-"],
        stdin=stdin,
        wait=wait,
        schema=schema,
        follow_up=follow_up,
        approve=approve,
        ask=ask,
        critic=critic,
        single=single,
        web=web,
    )
    with inputs.name_lines(plan_file):
        return watch(supervisor, start, as_json=as_json, as_data=schema is not None, output=output)
