"""An MCP server from the settings -> streams of its messages: of a program in a process group, or of an address.

Both are bounded: a message or answer beyond the limit breaks the connection, not this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from chargehand.errors import ToolError
from chargehand.tools.mcp_pins import McpServer

LARGEST_MESSAGE = 16 * 2**20
# Variables that any program may have.
_HARMLESS = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "TERM")
_GRACE_S = 1.0


@asynccontextmanager
async def open_streams(server: McpServer) -> AsyncGenerator[Any]:
    """The streams, as the SDK's client takes them."""
    if server.url is None:
        async with _of_program(server) as streams:
            yield streams
        return
    headers = {"accept-encoding": "identity"}
    if server.key_env is not None:
        if not (key := os.environ.get(server.key_env, "").strip()):
            raise ToolError(f"The MCP server {server.name} needs {server.key_env}, which is not set.", "unavailable")
        headers["authorization"] = f"Bearer {key}"
    timeout = httpx2.Timeout(server.timeout_s, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_Bounded()) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def _of_program(server: McpServer) -> AsyncGenerator[Any]:
    env = {name: os.environ[name] for name in (*_HARMLESS, *server.env) if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            server.command or "",
            *server.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=server.folder or None,
            env=env,
            start_new_session=True,
            limit=LARGEST_MESSAGE,
        )
    except OSError as error:
        raise ToolError(
            f"{server.command} of the MCP server {server.name} cannot be started: {error}.", "unreachable"
        ) from None
    assert process.stdin is not None
    assert process.stdout is not None
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process.stdout, incoming)
            tasks.start_soon(_write, process.stdin, outgoing)
            yield received, sent
            tasks.cancel_scope.cancel()
    finally:
        for stream in (incoming, received, sent, outgoing):
            stream.close()
        await _end(process)


async def _read(out: asyncio.StreamReader, incoming: Any) -> None:
    """Lines that are not messages are skipped; a line that is too long ends the connection."""
    async with incoming:
        with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await out.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue
                await incoming.send(SessionMessage(message))


async def _write(into: asyncio.StreamWriter, outgoing: Any) -> None:
    with contextlib.suppress(OSError):
        async with outgoing:
            async for each in outgoing:
                into.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await into.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then end the whole process group, including the processes it started."""
    with anyio.CancelScope(shield=True):
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class _Bounded(httpx2.AsyncHTTPTransport):
    """Stops an answer that is too large. A compressed answer, which was not requested, may become larger later."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not asked for")
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > LARGEST_MESSAGE:
                raise httpx2.ReadError(f"the answer is larger than {LARGEST_MESSAGE // 2**20} MB")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
