"""What commands share: `-v` and `-q` before or after the command, output options, the screen and the home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.record.home import Home
    from chargehand.record.run_source import RunSource

F = TypeVar("F", bound=Callable[..., Any])


def _note_flag(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        _flags_so_far(ctx)[param.name or ""] = True


def _flags_so_far(ctx: click.Context) -> dict[str, bool]:
    """What -v and -q have set so far, for the group and its commands."""
    if ctx.obj is None:
        ctx.obj = {}
    return ctx.obj


class Command(click.Command):
    """A command that takes -v and -q, as the group does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += verbosity()


def verbosity() -> list[click.Parameter]:
    return [
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_note_flag, help="Print more."),
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_note_flag, help="Print less."),
    ]


def screen() -> Screen:
    """Where this command writes."""
    from chargehand.cli.screen import Screen

    flags = _flags_so_far(click.get_current_context())
    return Screen.of_process(verbose=flags.get("verbose", False), quiet=flags.get("quiet", False))


def source() -> RunSource:
    """The recorded runs, for reading. It reads no settings, so that a wrong setting cannot prevent it."""
    kept = home()
    if not (kept.path / "temporal").is_dir():
        return kept
    from chargehand.runs.temporal.all_runs import AllRuns  # few homes have such runs

    return AllRuns(kept)


def home() -> Home:
    """The home of runs. Records are read without settings, so that a wrong setting cannot prevent it."""
    import os

    from chargehand.record.home import Home, default_path

    return Home(default_path(os.environ).absolute())


def output_options(command: F) -> F:
    """`--json` and `-o` of a command that prints a report."""
    command = click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON document.")(
        command
    )
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        callback=_none_for_stdout,
        metavar="FILE",
        help="Write to FILE, not to stdout; `-` is stdout. What is missing is at the end of an answer there.",
    )(command)


def _none_for_stdout(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    return None if value == Path("-") else value
