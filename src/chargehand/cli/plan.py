"""`plan`: a request becomes a plan to read, edit and run with `run --plan`, and an estimate of its cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.values.plan import Plan


@click.command(cls=Command)
@click.argument("request", required=False, metavar="[REQUEST|-]")
@click.option(
    "--with", "material", multiple=True, metavar="PATH", help="A file or folder the workers will be able to read."
)
@click.option("--team", metavar="TEAM", help="A shipped team or a team folder. [default: general]")
@click.option("--model", metavar="MODEL", help="provider:name for every role.")
@click.option("--format", "form", type=click.Choice(["json", "mermaid", "text"]), default="json", show_default=True)
def plan(request: str | None, material: tuple[str, ...], team: str | None, model: str | None, form: str) -> None:
    """Make the plan for REQUEST and run nothing. The JSON can be edited, checked and run with `run --plan`.

    An estimate of its cost is printed on stderr, by earlier runs of the team with the same model where there are any.
    With --team review it is the plan of a review of --with, or of this folder, which needs neither a model nor a
    REQUEST; with --model, a planner may add tasks to it.
    """
    import asyncio

    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.models.supervisor_models import SupervisorModel
    from chargehand.planner.before_spending import material_warnings, plain_call_hint
    from chargehand.planner.preview import preview
    from chargehand.runs.roster import roster
    from chargehand.runs.single_call import prefers_one_call
    from chargehand.runs.supervisor import materials
    from chargehand.trace.number_text import tasks_in_words
    from chargehand.values.request import Request

    text = inputs.read_request(request)
    out = screen()
    if team == "review":
        from chargehand.apps.review.run_review import plan_review
        from chargehand.errors import UsageError

        if len(material) > 1:
            raise UsageError("A review is of one folder: give --with once.")
        folder = material[0] if material else "."
        made = asyncio.run(plan_review(folder, model=model, notify=lambda line: out.say(f"warning: {line}")))
        _show(made, form, out)
        out.say(f"`chargehand review` runs it: {tasks_in_words(len(made.tasks), made.strategy)}.")
        return
    supervisor = make_supervisor(team, {"model": model})
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    settings = supervisor.team_settings()
    given = materials(material)
    asked = Request(text=text, material=given, budget=settings.budget, max_concurrent=settings.max_concurrent)
    for warning in material_warnings(asked):
        out.say(f"warning: {warning}")
    made = asyncio.run(supervisor.plan(text, material=material))
    _show(made, form, out)
    writer = SupervisorModel(model=settings.model_for("synthesizer").model)
    workers, judge = roster(supervisor.team, settings), settings.model_for("judge").model
    past = supervisor.home.past_runs(supervisor.team.name, settings.models_key)
    # A plan that is run with --plan has no ceiling of its tasks.
    out.say(preview(made, supervisor.team, workers, writer.model, asked, judge=judge, past=past))
    hint = prefers_one_call(asked, settings) if supervisor.is_default_team else None
    if (hint := hint or plain_call_hint(made, asked)) is not None:
        out.say(hint)


def _show(made: Plan, form: str, out: Screen) -> None:
    from chargehand.cli.screen import WIDEST, terminal_columns
    from chargehand.trace import to_mermaid, to_text

    match form:
        case "mermaid":
            out.put(to_mermaid(made))
        case "text":
            out.put(to_text(made, terminal_columns() if sys.stdout.isatty() else WIDEST))
        case _:
            out.document(made.to_json())
