"""A supervisor -> an MCP server on standard input and output, until the client leaves. Then its runs stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path

from mcp.server.stdio import stdio_server

from chargehand.runs.event_loop import run_in_loop
from chargehand.runs.supervisor import Supervisor
from chargehand.server.access import Access
from chargehand.server.change_runs import continue_waiting_runs
from chargehand.server.log_lines import LogLines
from chargehand.server.mcp_server import make_mcp_server
from chargehand.server.offered_names import Offered
from chargehand.server.shared_state import Server
from chargehand.text.redaction import Redactor

TERMINATED = 143


def serve_stdio(supervisor: Supervisor, *, approvals: bool) -> None:
    """Answer the client that started this process."""
    run_in_loop(_serve(supervisor, approvals=approvals))


async def _serve(supervisor: Supervisor, *, approvals: bool) -> None:
    redactor = Redactor.from_env(os.environ)
    # Nobody gets the token: the server has no address.
    access = Access(secrets.token_urlsafe(32))
    offered = Offered(supervisor.settings, supervisor.trust)
    log = LogLines("text", redactor)
    server = Server(supervisor, access, redactor, log, offered, survives=False, tree=Path.cwd())
    continue_waiting_runs(server)
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    def stop(number: int) -> None:
        if not stopping:
            stopping.append(loop.create_task(_stop_now(server), name="stop"))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    made = make_mcp_server(server, approvals=approvals)
    try:
        async with stdio_server() as (received, sent):
            await made.run(received, sent, made.create_initialization_options())
    finally:
        await server.stop()
        server.reading.close()


async def _stop_now(server: Server) -> None:
    """Park the runs and end. A thread that waits for the next line of input cannot be stopped otherwise."""
    await server.stop()
    os._exit(TERMINATED)
