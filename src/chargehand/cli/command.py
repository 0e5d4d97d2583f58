"""What every command shares: `-v` and `-q` in either place, and a screen to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen


def _noted(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        _said(ctx)[param.name or ""] = True


def _said(ctx: click.Context) -> dict[str, bool]:
    """What -v and -q have set so far; one for the group and its commands."""
    if ctx.obj is None:
        ctx.obj = {}
    return ctx.obj


class Command(click.Command):
    """A command that takes -v and -q as well as the group does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += verbosity()


def verbosity() -> list[click.Parameter]:
    return [
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_noted, help="Say more."),
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_noted, help="Say less."),
    ]


def screen() -> Screen:
    """Where this command writes to."""
    from chargehand.cli.screen import Screen

    said = _said(click.get_current_context())
    return Screen.of_process(verbose=said.get("verbose", False), quiet=said.get("quiet", False))
