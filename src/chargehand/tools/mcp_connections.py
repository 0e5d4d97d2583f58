"""Calls of MCP servers' tools -> text: one connection per server and session, opened when it is first needed.

Each connection has a thread and an event loop of its own, so that even a very large answer does not block a run. If a
connection breaks, the call fails; the next call opens another.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any, cast

from chargehand.errors import ToolError
from chargehand.text.escaping import show_controls
from chargehand.tools.mcp_pins import McpServer, PinnedTool, describe_change
from chargehand.values.message import ToolEffect

CONNECT_S = 20.0
CLOSE_S = 5.0
# The first connection of a process also loads the SDK.
LOAD_S = 30.0
LONGEST_RESULT = 50_000
_MOST_TOOLS, _MOST_PAGES = 500, 20


class McpConnections:
    """The connections of one session. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, _Connection] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def call(
        self, server: McpServer, pinned: PinnedTool, arguments: dict[str, Any], traceparent: str | None = None
    ) -> str:
        """The text that a tool returns; ToolError when it fails, differs from the trusted tool, or has no server."""
        connection = await self._connect(server)
        now = connection.tools.get(pinned.name)
        if now is None:
            raise ToolError(f"The MCP server {server.name} has no tool {pinned.name!r} any more.", "not_found")
        if now.hash != pinned.hash:
            raise ToolError(
                f"The tool {pinned.name!r} of the MCP server {server.name} is not what was trusted; `chargehand trust` "
                f"its folder again to allow it.\n{describe_change(pinned, now)}",
                "not_allowed",
            )
        try:
            return await connection.call(pinned.name, arguments, traceparent)
        except _Broken as error:
            self._open.pop(server.id, None)
            await connection.close()
            doubt = "" if pinned.effect == "read" else " Whether it happened is not known."
            raise ToolError(
                f"The MCP server {server.name} failed during {pinned.name}: {error}.{doubt}", "unreachable"
            ) from None

    async def list_tools(self, server: McpServer) -> dict[str, PinnedTool]:
        """The tools of a server as it describes them now; ToolError when it cannot be asked."""
        return (await self._connect(server)).tools

    async def close(self) -> None:
        """End all connections, and the programs behind them."""
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in connections))

    async def _connect(self, server: McpServer) -> _Connection:
        async with self._locks.setdefault(server.id, asyncio.Lock()):
            found = self._open.get(server.id)
            if found is None or not found.is_open:
                found = _Connection(server)
                try:
                    await found.open()
                except BaseException:
                    await found.close()
                    raise
                self._open[server.id] = found
            return found


class _Broken(Exception):
    """The connection cannot be used any more."""


class _Connection:
    """One server, in a thread of its own."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready: Future[dict[str, PinnedTool]] = Future()
        self._client: Any = None
        self._thread = threading.Thread(target=self._run, name=f"mcp {server.name}", daemon=True)
        self.tools: dict[str, PinnedTool] = {}

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive() and self._client is not None

    async def open(self) -> None:
        self._thread.start()
        try:
            self.tools = await asyncio.wait_for(asyncio.wrap_future(self._ready), CONNECT_S + LOAD_S)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 -- recorded: the caller gets it as a ToolError
            why = f"The MCP server {self._server.name} cannot be used: {_reason(error)}."
            if self._server.command:
                why += f" To see what it says, start it yourself: `{self._server.words}`."
            raise ToolError(why, "unreachable") from None

    async def call(self, tool: str, arguments: dict[str, Any], traceparent: str | None) -> str:
        meta = None if traceparent is None else {"traceparent": traceparent}
        work = self._client.call_tool(tool, arguments, read_timeout_seconds=self._server.timeout_s, meta=meta)
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            # The second limit is for a server that keeps the client itself busy.
            result = await asyncio.wait_for(asyncio.wrap_future(running), self._server.timeout_s + 1)
        except asyncio.CancelledError:
            running.cancel()
            raise
        except Exception as error:  # noqa: BLE001 -- recorded: the caller gets it as a ToolError
            from mcp import MCPError
            from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

            if isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise ToolError(show_controls(f"{tool}: {error}"[:2_000])) from None
            raise _Broken(_reason(error)) from None
        text = as_text(result)
        if result.is_error:
            raise ToolError(text or f"{tool} failed without saying why.")
        return text

    async def close(self) -> None:
        if self._thread.is_alive() and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            await asyncio.to_thread(self._thread.join, CLOSE_S)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 -- recorded: whoever opens or calls is given it
            if not self._ready.done():
                self._ready.set_exception(_first(error))
        finally:
            self._client = None
            with contextlib.suppress(RuntimeError):
                for task in asyncio.all_tasks(self._loop):
                    task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _serve(self) -> None:
        from mcp import Client

        from chargehand.tools.mcp_transports import open_streams

        stopping = asyncio.ensure_future(self._stop.wait())
        opening = asyncio.timeout(CONNECT_S)
        async with opening, Client(open_streams(self._server), raise_exceptions=False) as client:
            tools = await _list_tools(client)
            opening.reschedule(None)
            self._client = client
            self._ready.set_result(tools)
            await stopping


async def _list_tools(client: Any) -> dict[str, PinnedTool]:
    found: dict[str, PinnedTool] = {}
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            found.setdefault(tool.name, _pinned_tool(tool))
            if len(found) >= _MOST_TOOLS:
                return found
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _pinned_tool(tool: Any) -> PinnedTool:
    notes = tool.annotations
    effect: ToolEffect = "once"
    if notes is not None:
        effect = "read" if notes.read_only_hint else "idempotent" if notes.idempotent_hint else "once"
    schema: dict[str, Any] = tool.input_schema
    return PinnedTool(tool.name, tool.description or "", schema, effect)


def as_text(result: Any) -> str:
    """Texts unchanged; for pictures, sounds and files only a description, never their bytes."""
    parts: list[str] = []
    for part in result.content:
        match part.type:
            case "text":
                parts.append(part.text[: LONGEST_RESULT * 2])
            case "image" | "audio":
                parts.append(f"[{part.type} {part.mime_type}, {len(part.data) * 3 // 4:,} bytes, not shown]")
            case "resource_link":
                parts.append(f"[resource {part.name}: {part.uri}]")
            case "resource":
                text = getattr(part.resource, "text", None)
                parts.append(f"[resource {part.resource.uri}]" if text is None else text[: LONGEST_RESULT * 2])
            case _:
                parts.append(f"[{part.type}, not shown]")
    if not parts and result.structured_content is not None:
        import json

        parts.append(json.dumps(result.structured_content, ensure_ascii=False)[: LONGEST_RESULT * 2])
    return show_controls("\n".join(parts))


def _first(error: BaseException) -> BaseException:
    """The cause in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    found = _first(error)
    if isinstance(found, TimeoutError):
        return "it did not answer in time"
    from mcp.types import CONNECTION_CLOSED

    if getattr(found, "code", None) == CONNECTION_CLOSED:
        return "it ended before it answered"
    return show_controls(f"{type(found).__name__}: {found}"[:500])
