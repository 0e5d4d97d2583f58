"""`trust`: adds, removes and lists the folders whose files may set what needs trust."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.record.trusted_folders import TrustRegistry


@click.command(cls=Command)
@click.argument("folder", required=False, metavar="DIR")
@click.option("--remove", is_flag=True, help="Stop trusting the folder.")
@click.option("--list", "listing", is_flag=True, help="List the folders that are trusted.")
def trust(folder: str | None, remove: bool, listing: bool) -> None:
    """Let the files in DIR, and in all folders below it, set endpoints, key variables, commands and tool code.

    The MCP servers that they name are asked for their tools, which are trusted as they are now: one that changes is
    refused until you trust the folder again.
    """
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
        real = registry.trust(folder)
        out.say(f"{real} is trusted from now on, with all below it.")
        _pin_servers(Path(real), registry, out)
    elif registry.untrust(folder):
        out.say(f"{os.path.realpath(folder)} is no longer trusted.")
    else:
        raise UsageError(f"{folder} was not trusted: chargehand trust --list shows the trusted folders.")


def _pin_servers(folder: Path, registry: TrustRegistry, out: Screen) -> None:
    """Trust the tools of the MCP servers that files in the folder name, and print them."""
    named = [*folder.glob("*.toml"), *folder.glob("*/team.toml")]
    if not any("[mcp." in path.read_text("utf-8", "replace") for path in named):
        return
    from chargehand.cli.mcp import need_extra, put_tools
    from chargehand.errors import ChargehandError
    from chargehand.runs.event_loop import run_in_loop
    from chargehand.runs.trusted_servers import pin_servers, servers_in
    from chargehand.tools.mcp_pins import McpPins

    need_extra()
    servers = servers_in(folder, os.environ, registry)
    for name, found in run_in_loop(pin_servers(servers, McpPins(registry.home))).items():
        if isinstance(found, ChargehandError):
            out.say(f"warning: {found} Its tools are not trusted.")
        else:
            out.say(f"MCP server {name}: {len(found)} tools.")
            put_tools(found, out.say)
