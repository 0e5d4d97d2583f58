"""A worker's state over HTTP, for process managers: GET /healthz is 200 while it polls, else 503."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chargehand.errors import UsageError

_LONGEST_REQUEST, _PATIENCE_S = 8_192, 5.0


@dataclass
class WorkerHealth:
    """What a worker does now; the worker writes it, requests read it."""

    # `starting`, `ok`, or `draining` once it is asked to end.
    status: str = "starting"
    queues: list[str] = field(default_factory=list[str])
    # Steps under way here.
    steps: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "queues": self.queues, "steps": self.steps}


@asynccontextmanager
async def answer_health(health: WorkerHealth, host: str, port: int | None) -> AsyncGenerator[None]:
    """Answer at an address until the end of the block; without a port nothing is opened."""
    if port is None:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                request = (await reader.readline())[:_LONGEST_REQUEST].split()
                while len(await reader.readline()) > 2:
                    pass
                writer.write(_response(health, request))
                await writer.drain()
        except (TimeoutError, ValueError, ConnectionError):
            pass  # a client that does not speak HTTP
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_LONGEST_REQUEST)
    except OSError as error:
        raise UsageError(f"--health {host}:{port} cannot be used: {error.strerror}. Name another port.") from None
    async with server:
        yield


def _response(health: WorkerHealth, request: list[bytes]) -> bytes:
    known = len(request) > 1 and request[0] == b"GET" and request[1].split(b"?")[0] == b"/healthz"
    status = "404 Not Found" if not known else "200 OK" if health.status == "ok" else "503 Service Unavailable"
    body = json.dumps(health.to_json() if known else {"status": "There is only GET /healthz."}).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body
