"""`mcp`: an MCP server on standard input and output; `--print-config` prints what a client needs to start it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from chargehand.cli.shared_options import Command, screen, verbosity
from chargehand.trace.number_text import short

if TYPE_CHECKING:
    from chargehand.record.trusted_folders import TrustRegistry
    from chargehand.runs.trusted_servers import ToolState
    from chargehand.tools.mcp_pins import McpServer


class _Client(NamedTuple):
    """The file and the key where a client looks for servers; `more` has the other fields that its entry needs."""

    file: str
    key: str
    more: Mapping[str, Any] = {}


CLIENTS: dict[str, _Client] = {
    # Without `alwaysLoad` it does not wait for a server: the first request of `claude -p` is sent without the tools.
    "claude-code": _Client(".mcp.json in the folder you work in", "mcpServers", {"type": "stdio", "alwaysLoad": True}),
    "claude-desktop": _Client("claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers"),
    "cursor": _Client(".cursor/mcp.json in the folder you work in, or ~/.cursor/mcp.json", "mcpServers"),
    "vscode": _Client(".vscode/mcp.json in the folder you work in", "servers", {"type": "stdio"}),
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

    need_extra()
    from chargehand.server.mcp_stdio import serve_stdio

    supervisor = make_supervisor(None, {})
    out = screen()
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    serve_stdio(supervisor, approvals=allow_approvals)


def need_extra() -> None:
    """Raises UsageError if the SDK is not installed."""
    from importlib.util import find_spec

    from chargehand.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("MCP needs mcp, which is not installed: pip install 'chargehand[mcp]'")


@mcp.command("list", cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def list_servers(as_json: bool) -> None:
    """List the MCP servers that settings and teams in this folder name, and their trusted tools."""
    from chargehand.tools.mcp_pins import McpPins

    servers, registry = _servers()
    pins, out = McpPins(registry.home), screen()
    known = [(server, sorted(pins.tools(server))) for server in servers]
    if as_json:
        out.document({"servers": [{"name": s.name, "starts": s.words, "tools": tools} for s, tools in known]})
        return
    if not known:
        out.say("No trusted file here names an MCP server. Add [mcp.NAME] to chargehand.toml, then: chargehand trust .")
        return
    rows = [(s.name, ", ".join(tools) or "none: chargehand trust its folder", s.words) for s, tools in known]
    out.table(("server", "trusted tools", "starts"), rows)


@mcp.command(cls=Command)
@click.argument("name")
def test(name: str) -> None:
    """Ask the MCP server NAME for its tools now, and show which are new or not what was trusted."""
    from chargehand.errors import UsageError
    from chargehand.runs.event_loop import run_in_loop
    from chargehand.runs.trusted_servers import look_at
    from chargehand.settings.toml_file import suggestion
    from chargehand.tools.mcp_pins import McpPins

    need_extra()
    servers, registry = _servers()
    server = next((each for each in servers if each.name == name), None)
    if server is None:
        raise UsageError(
            f"No trusted file here names an MCP server {name!r}.{suggestion(name, [each.name for each in servers])} "
            f"Add [mcp.{name}] to chargehand.toml and run `chargehand trust .`."
        )
    found = run_in_loop(look_at(server, McpPins(registry.home)))
    put_tools(found, screen().put)
    if any(each.word != "trusted" for each in found):
        click.get_current_context().exit(1)


def put_tools(found: list[ToolState], put: Any) -> None:
    """A line for each tool, and what changed."""
    for tool in found:
        shown = tool.now or tool.pinned
        about = tool.problem or (shown.description if shown else "")
        put(f"    {tool.word:<11}  {tool.name}  {short(about, 200)}")
        if tool.change:
            put(tool.change)


def _servers() -> tuple[list[McpServer], TrustRegistry]:
    from pathlib import Path

    from chargehand.record.home import default_path
    from chargehand.record.trusted_folders import TrustRegistry
    from chargehand.runs.trusted_servers import servers_in

    registry = TrustRegistry(str(default_path(os.environ).absolute()))
    return servers_in(Path.cwd(), os.environ, registry), registry


def _print_config(client: str, allow_approvals: bool) -> None:
    chosen, out = CLIENTS[client], screen()
    argv = [*_own_command(), "mcp", *(["--allow-approvals"] if allow_approvals else [])]
    home = os.environ.get("CHARGEHAND_HOME")
    entry: dict[str, Any] = {**chosen.more, "command": argv[0], "args": argv[1:]}
    if home:
        entry["env"] = {"CHARGEHAND_HOME": os.path.abspath(home)}
    out.say(f"Put this into {chosen.file}:")
    if client == "codex":
        _put_toml(entry, out.put)
    else:
        out.document({chosen.key: {"chargehand": entry}})


def _put_toml(entry: dict[str, Any], put: Any) -> None:
    import json

    # Strings and lists of strings are the same in JSON and TOML.
    put("[mcp_servers.chargehand]")
    for name in ("command", "args"):
        put(f"{name} = {json.dumps(entry[name])}")
    if "env" in entry:
        put("\n[mcp_servers.chargehand.env]")
        for name, value in entry["env"].items():
            put(f"{name} = {json.dumps(value)}")


def _own_command() -> list[str]:
    """The command with which another program starts this one, independent of its search path."""
    import shutil
    import sys
    from pathlib import Path

    beside = Path(sys.executable).with_name("chargehand")
    found = str(beside) if beside.exists() else shutil.which("chargehand")
    return [sys.executable, "-m", "chargehand"] if found is None else [os.path.abspath(found)]
