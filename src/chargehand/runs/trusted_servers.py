"""The MCP servers that files of a folder name -> their tools, asked for and pinned when a person trusts the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chargehand.errors import ChargehandError, ToolError
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.settings import load_settings
from chargehand.team.team_file import read_parts
from chargehand.tools.mcp_connections import McpConnections
from chargehand.tools.mcp_pins import McpPins, McpServer, PinnedTool, describe_change
from chargehand.tools.pinned_tools import problem_with


class ToolState(NamedTuple):
    """A tool of a server: as it was trusted, as it is now, and why it cannot be offered."""

    name: str
    pinned: PinnedTool | None
    now: PinnedTool | None
    problem: str | None = None

    @property
    def word(self) -> str:
        if self.problem is not None:
            return "not offered"
        if self.now is None:
            return "gone"
        if self.pinned is None:
            return "new"
        return "trusted" if self.pinned.hash == self.now.hash else "changed"

    @property
    def change(self) -> str:
        """The differences from the trusted tool; empty if there are none."""
        return describe_change(self.pinned, self.now) if self.word == "changed" and self.pinned and self.now else ""


def servers_in(folder: Path, env: Mapping[str, str], trust: TrustRegistry) -> list[McpServer]:
    """The servers that the settings for a folder, and the teams in it, name. Only files that are trusted name any."""
    settings, _ = load_settings(env, folder, {})
    found = {server.id: server for server in settings.mcp.values()}
    for path in (folder, *sorted(each.parent for each in folder.glob("*/team.toml"))):
        if (path / "team.toml").is_file():
            found |= {server.id: server for server in read_parts(path, trust).mcp.values()}
    return list(found.values())


async def look_at(server: McpServer, pins: McpPins) -> list[ToolState]:
    """Ask a server for its tools, and compare them with those that were trusted. ToolError when it cannot be asked."""
    connections = McpConnections()
    try:
        now = await connections.list_tools(server)
    finally:
        await connections.close()
    pinned = pins.tools(server)
    allowed = [name for name in now if server.tools is None or name in server.tools]
    names = dict.fromkeys([*allowed, *pinned])
    return [
        ToolState(name, pinned.get(name), now.get(name), problem_with(server, now[name]) if name in now else None)
        for name in names
    ]


async def pin_servers(servers: list[McpServer], pins: McpPins) -> dict[str, list[ToolState] | ChargehandError]:
    """Trust the tools of servers as they are now; by name of the server what was trusted, or why it was not asked."""
    result: dict[str, list[ToolState] | ChargehandError] = {}
    for server in servers:
        try:
            found = await look_at(server, pins)
        except ToolError as error:
            result[server.name] = error
            continue
        pins.pin(server, {each.name: each.now for each in found if each.now is not None and each.problem is None})
        result[server.name] = found
    return result
