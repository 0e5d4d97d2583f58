"""MCP servers that a person trusts, with the descriptions and schemas of their tools at that time: `mcp.json` in the
home.

A server is identified by a hash of everything that determines what is started or called. Tools that are not pinned are
not offered to a worker.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from chargehand.errors import StorageError
from chargehand.values.base import Value
from chargehand.values.message import ToolEffect

# The most of a description that goes into a prompt; the whole description is pinned.
LONGEST_DESCRIPTION = 2_000
LONGEST_SCHEMA = 20_000
DEFAULT_TIMEOUT_S = 60.0


class McpServer(Value):
    """A server as settings name it: a program to start, or an address. Holds names of variables, never their values."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    # Variables that the program gets in addition to a few harmless ones.
    env: tuple[str, ...] = ()
    url: str | None = None
    # The variable with the bearer token for the address.
    key_env: str | None = None
    # The tools that may be used; None for all.
    tools: tuple[str, ...] | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    # Where the program is started.
    folder: str = ""

    @property
    def id(self) -> str:
        """Equal for servers with the same name, program or address, variables and folder."""
        told = [self.name, self.command, self.args, self.env, self.url, self.key_env, self.folder]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]

    @property
    def words(self) -> str:
        return self.url or " ".join([self.command or "", *self.args])


class PinnedTool(NamedTuple):
    """A tool as its server described it."""

    name: str
    description: str
    schema: dict[str, Any]
    effect: ToolEffect

    @property
    def hash(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


class McpPins(NamedTuple):
    """The pins of one home, and of another one whose trust counts too."""

    home: str
    also: str | None = None

    @property
    def file(self) -> Path:
        return Path(self.home, "mcp.json")

    def tools(self, server: McpServer) -> dict[str, PinnedTool]:
        """The tools that were trusted and may be used; empty for a server nobody trusted."""
        entry = self._read().get(server.id, {})
        found = {name: _tool(name, data) for name, data in entry.get("tools", {}).items()}
        return {name: tool for name, tool in found.items() if server.tools is None or name in server.tools}

    def server(self, id: str) -> McpServer | None:
        """The server of that hash, if it is trusted."""
        entry = self._read().get(id)
        if entry is None:
            return None
        return McpServer.model_validate(entry["server"])

    def pin(self, server: McpServer, tools: Mapping[str, PinnedTool]) -> None:
        """Trust these tools of a server, in place of those trusted before."""
        entry = {"server": server.to_json(), "tools": {name: tool.to_json() for name, tool in tools.items()}}
        self._write({**self._read_own(), server.id: entry})

    def _read(self) -> dict[str, Any]:
        return self._read_own() if self.also is None else {**McpPins(self.also)._read(), **self._read_own()}

    def _read_own(self) -> dict[str, Any]:
        try:
            data = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self.file} cannot be read ({error}): repair or remove it, then trust again."
            ) from None
        return data["servers"]

    def _write(self, servers: dict[str, Any]) -> None:
        import tempfile

        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".mcp-")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump({"servers": servers}, out, indent=1)
            Path(name).replace(self.file)
        except OSError as error:
            raise StorageError(f"{self.file} cannot be written ({error.strerror}): check CHARGEHAND_HOME.") from None


def _tool(name: str, data: dict[str, Any]) -> PinnedTool:
    return PinnedTool(name, data["description"], data["schema"], cast("ToolEffect", data["effect"]))


def describe_change(pinned: PinnedTool, now: PinnedTool) -> str:
    """What differs, line by line."""
    import difflib  # only a changed tool needs it

    before, after = (json.dumps(each.to_json(), indent=1, sort_keys=True).splitlines() for each in (pinned, now))
    return "\n".join(list(difflib.unified_diff(before, after, "trusted", "now", lineterm="", n=0))[:60])
