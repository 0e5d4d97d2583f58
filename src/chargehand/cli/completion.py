"""`completion`: the script that makes a shell complete chargehand's commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click

from chargehand.cli.shared_options import Command

INSTALL = {
    "bash": "echo 'eval \"$(chargehand completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(chargehand completion zsh)\"' >> ~/.zshrc",
    "fish": "chargehand completion fish > ~/.config/fish/completions/chargehand.fish",
}


@click.command(cls=Command)
@click.argument("shell", required=False, metavar="[SHELL]", type=click.Choice(list(INSTALL)))
def completion(shell: str | None) -> None:
    """Print the completion script of SHELL: bash, zsh or fish. [default: the shell in use]"""
    from click.shell_completion import get_completion_class

    from chargehand.cli import cli
    from chargehand.errors import UsageError

    name = shell or Path(os.environ.get("SHELL", "")).name
    script = get_completion_class(name)
    if script is None or name not in INSTALL:
        raise UsageError(f"Name a shell that is supported: chargehand completion {'|'.join(INSTALL)}.")
    click.echo(f"# To install: {INSTALL[name]}")
    click.echo(script(cli, {}, "chargehand", "_CHARGEHAND_COMPLETE").source())
