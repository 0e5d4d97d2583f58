"""`mcp`: an MCP server on standard input and output; `--print-config` prints what a client needs to start it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import click

from chargehand.cli.command import screen, verbosity


class _Client(NamedTuple):
    """Where a client reads its servers from, and under which key."""

    file: str
    key: str
    typed: bool = False


CLIENTS: dict[str, _Client] = {
    "claude-code": _Client(".mcp.json in the folder you work in", "mcpServers", typed=True),
    "claude-desktop": _Client("claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers"),
    "cursor": _Client(".cursor/mcp.json in the folder you work in, or ~/.cursor/mcp.json", "mcpServers"),
    "vscode": _Client(".vscode/mcp.json in the folder you work in", "servers", typed=True),
    "codex": _Client("~/.codex/config.toml", "mcp_servers"),
}


@click.group(invoke_without_command=True, params=[*verbosity()])
@click.option(
    "--print-config",
    "client",
    type=click.Choice(list(CLIENTS)),
    help="Print the configuration with which this client starts the server, and nothing else.",
)
@click.option(
    "--allow-approvals",
    is_flag=True,
    help="Let the calling model approve plans and calls of tools, which else only you can.",
)
@click.pass_context
def mcp(ctx: click.Context, client: str | None, allow_approvals: bool) -> None:
    """Offer teams to other programs as MCP tools, on standard input and output.

    A client such as Claude Code, Cursor or VS Code starts this command itself. `chargehand serve` offers the same tools
    at /mcp. Runs that the client started are interrupted when it goes; they can be resumed.
    """
    if ctx.invoked_subcommand is not None:
        return
    if client is not None:
        _print_config(client, allow_approvals)
        return
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.errors import UsageError

    try:
        from chargehand.server.mcp_stdio import serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "starlette"):
            raise
        raise UsageError(f"`mcp` needs {error.name}, which is not installed: pip install 'chargehand[mcp]'") from None
    supervisor = make_supervisor(None, {})
    out = screen()
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    serve_stdio(supervisor, approvals=allow_approvals)


def _print_config(client: str, allow_approvals: bool) -> None:
    chosen, out = CLIENTS[client], screen()
    argv = [*_own_command(), "mcp", *(["--allow-approvals"] if allow_approvals else [])]
    home = os.environ.get("CHARGEHAND_HOME")
    entry: dict[str, Any] = {"type": "stdio"} if chosen.typed else {}
    entry |= {"command": argv[0], "args": argv[1:]}
    if home:
        entry["env"] = {"CHARGEHAND_HOME": os.path.abspath(home)}
    out.say(f"Put this into {chosen.file}:")
    if client == "codex":
        _put_toml(entry, out.put)
    else:
        out.document({chosen.key: {"chargehand": entry}})


def _put_toml(entry: dict[str, Any], put: Any) -> None:
    import json

    # Strings and lists of strings are written the same in both.
    put("[mcp_servers.chargehand]")
    for name in ("command", "args"):
        put(f"{name} = {json.dumps(entry[name])}")
    if "env" in entry:
        put("\n[mcp_servers.chargehand.env]")
        for name, value in entry["env"].items():
            put(f"{name} = {json.dumps(value)}")


def _own_command() -> list[str]:
    """How another program starts this one, whatever its own search path is."""
    import shutil
    import sys
    from pathlib import Path

    beside = Path(sys.executable).with_name("chargehand")
    found = str(beside) if beside.exists() else shutil.which("chargehand")
    return [sys.executable, "-m", "chargehand"] if found is None else [os.path.abspath(found)]
