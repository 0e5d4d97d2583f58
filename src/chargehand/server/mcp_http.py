"""Requests to /mcp -> the MCP server of the SDK, over streamable HTTP, in both eras. The first request starts it.

`Guard` has checked Host, token and Origin before. A session of the older era belongs to the token that began it.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from starlette.types import Receive, Scope, Send

from chargehand.server.http_calls import LARGEST_BODY
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server

MOST_SESSIONS = 1_000
# After this time without an open stream, a session ends.
IDLE_S = 1_800.0


class McpEndpoint:
    """The ASGI application at /mcp. Belongs to one event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._manager: Any = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._lock:
            if self._running is None:
                await self._start()
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        caller: str = scope["caller"]
        user = AuthenticatedUser(AccessToken(token="", client_id=caller, scopes=[]))
        await self._manager.handle_request({**scope, "user": user}, receive, send)

    async def close(self) -> None:
        """End all sessions: the server stops."""
        self._closing.set()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _start(self) -> None:
        if self._closing.is_set():
            raise Refusal(503, "The server stops: connect again when it runs.")
        try:
            # In a thread: it takes half a second, which would block the runs under way.
            made = await asyncio.to_thread(import_module, "chargehand.server.mcp_server")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
                raise
            raise Refusal(404, f"/mcp needs {error.name} on the server: pip install 'chargehand[mcp]'") from None
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._manager = StreamableHTTPSessionManager(
            app=made.make_mcp_server(self._server),
            max_request_body_size=LARGEST_BODY,
            session_idle_timeout=IDLE_S,
            max_sessions=MOST_SESSIONS,
        )
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(ready), name="mcp sessions")
        await ready.wait()

    async def _run(self, ready: asyncio.Event) -> None:
        """The same task enters and leaves the manager, as its cancel scope requires."""
        async with self._manager.run():
            ready.set()
            await self._closing.wait()
