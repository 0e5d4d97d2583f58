"""`trust`: a folder is added to, removed from or listed among those whose files may set what needs trust."""

from __future__ import annotations

import os

import click

from chargehand.cli.command import Command, screen


@click.command(cls=Command)
@click.argument("folder", required=False, metavar="DIR")
@click.option("--remove", is_flag=True, help="Stop trusting the folder.")
@click.option("--list", "listing", is_flag=True, help="List the folders that are trusted.")
def trust(folder: str | None, remove: bool, listing: bool) -> None:
    """Let the files in DIR, and in all folders below it, set endpoints, key variables, commands and tool code."""
    from chargehand.errors import UsageError
    from chargehand.record.home import default_path
    from chargehand.record.trusted_folders import TrustRegistry

    registry = TrustRegistry(str(default_path(os.environ).absolute()))
    out = screen()
    if listing:
        for name in registry.directories():
            out.put(name)
    elif folder is None:
        raise UsageError("No folder is named: write chargehand trust DIR, or list the trusted ones with --list.")
    elif not remove:
        out.say(f"{registry.trust(folder)} is trusted from now on, with all below it.")
    elif registry.untrust(folder):
        out.say(f"{folder} is no longer trusted.")
    else:
        raise UsageError(f"{folder} was not trusted: chargehand trust --list shows the trusted folders.")
