"""Pinned tools of MCP servers -> tools of workers: `mcp:NAME` is all of a server, `mcp:NAME/TOOL` is one.

A model sees such a tool as NAME__TOOL, so that no tool can replace another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

from chargehand.errors import ToolError
from chargehand.text.escaping import show_controls
from chargehand.text.json_schema import problems_in, violations
from chargehand.tools.definition import NAME, Tool
from chargehand.tools.mcp_pins import LONGEST_DESCRIPTION, LONGEST_SCHEMA, McpPins, McpServer, PinnedTool
from chargehand.tools.tool_context import ToolContext

PREFIX = "mcp:"
_CONTEXT = " context"  # no argument has such a name


class _Arguments(NamedTuple):
    """Does for a schema what `Parameters` does for a function."""

    schema: dict[str, Any]
    context: str = _CONTEXT

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if wrong := violations(dict(arguments), self.schema):
            raise ToolError(f"The arguments do not fit: {'; '.join(wrong)}", "wrong_arguments")
        return dict(arguments)


@dataclass(frozen=True)
class McpTool(Tool):
    """A tool of a server, as it was when it was trusted."""

    server: McpServer | None = None
    pinned: PinnedTool | None = None

    @cached_property
    def arguments(self) -> Any:
        assert self.pinned is not None
        return _Arguments(self.pinned.schema)

    @cached_property
    def code(self) -> str:
        assert self.pinned is not None
        return self.pinned.hash


def find_tools(name: str, servers: Mapping[str, McpServer], pins: McpPins | None) -> list[Tool]:
    """The tools that `mcp:NAME` or `mcp:NAME/TOOL` names; none if they are not trusted."""
    wanted, _, tool = name.removeprefix(PREFIX).partition("/")
    server = servers.get(wanted)
    if server is None or pins is None:
        return []
    pinned = pins.tools(server)
    chosen = [pinned[tool]] if tool in pinned else [] if tool else list(pinned.values())
    return [make_tool(server, each) for each in chosen if problem_with(server, each) is None]


def make_tool(server: McpServer, pinned: PinnedTool) -> Tool:
    async def use(**given: Any) -> str:
        context = cast("ToolContext", given.pop(_CONTEXT))
        if context.servers is None:
            raise ToolError(f"MCP servers are not available here: {server.name} was not called.", "unavailable")
        return await context.servers.call(server, pinned, given, context.traceparent)

    described = show_controls(pinned.description)[:LONGEST_DESCRIPTION]
    return McpTool(
        offered_name(server, pinned.name),
        f"({server.name}) {described}",
        use,
        pinned.effect,
        needs_trust=True,
        server=server,
        pinned=pinned,
    )


def offered_name(server: McpServer, tool: str) -> str:
    return f"{server.name}__{tool}"


def problem_with(server: McpServer, tool: PinnedTool) -> str | None:
    """Why a tool cannot be offered to a model, or None."""
    if not NAME.fullmatch(offered_name(server, tool.name)):
        return "its name is not 1 to 60 letters, digits, _ and -"
    if tool.schema.get("type") != "object":
        return "its arguments are not an object"
    if len(json.dumps(tool.schema)) > LONGEST_SCHEMA:
        return f"its schema is longer than {LONGEST_SCHEMA:,} characters"
    if wrong := problems_in(tool.schema):
        return f"its schema cannot be used: {wrong[0]}"
    return None


def stored_servers(tools: Mapping[str, Tool]) -> dict[str, str]:
    """Name of a tool -> hash of its server, as stored with a run."""
    return {name: tool.server.id for name, tool in tools.items() if isinstance(tool, McpTool) and tool.server}


def restore_tools(stored: Mapping[str, str], pins: McpPins) -> tuple[dict[str, Tool], list[str]]:
    """The tools of a recorded run as they are pinned now, and a line for each tool that is no longer trusted."""
    found: dict[str, Tool] = {}
    lost: list[str] = []
    for name, id in stored.items():
        server = pins.server(id)
        pinned = None if server is None else pins.tools(server).get(name.removeprefix(f"{server.name}__"))
        if server is None or pinned is None:
            lost.append(f"The tool {name} of an MCP server is not trusted any more: it is not offered.")
        else:
            found[name] = make_tool(server, pinned)
    return found, lost
