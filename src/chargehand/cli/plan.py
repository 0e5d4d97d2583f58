"""`plan`: a request becomes a plan to read, edit and run with `run --plan`, with a preview of what it would take."""

from __future__ import annotations

import click

from chargehand.cli.command import Command, screen


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

    What running it would take is estimated on stderr.
    """
    import asyncio

    from chargehand.cli import inputs
    from chargehand.cli.front import supervisor
    from chargehand.preview import preview
    from chargehand.request import Request
    from chargehand.team.agents import roster
    from chargehand.trace import to_mermaid, to_text

    text = inputs.text_of_stdin("the request") if request == "-" else request or ""
    door = supervisor(team, {"model": model})
    out = screen()
    for warning in door.warnings:
        out.say(f"warning: {warning}")
    made = asyncio.run(door.plan(text, material=material))
    match form:
        case "mermaid":
            out.put(to_mermaid(made))
        case "text":
            out.put(to_text(made))
        case _:
            out.document(made.to_json())
    settings = door.settings.for_team(door.team.models, door.team.budget, door.team.limits)
    asked = Request(text=text, budget=settings.budget, max_concurrent=settings.max_concurrent)
    synthesizer = settings.model_for("synthesizer").model
    out.say(preview(made, door.team, roster(door.team, settings), synthesizer, asked))
