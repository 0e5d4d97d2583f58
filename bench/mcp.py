"""What MCP costs: from start to the answer to `initialize`, and CPU time of a call of a tool, both ways.

`python -m bench.mcp [--rounds 5] [--calls 200]`. CPU time throughout: user and system, of the process that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
# A server that does nothing: all that a call costs is ours and the protocol's.
ECHO = """
import json, sys
tool = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
said = {"content": [{"type": "text", "text": "x"}]}
results = {"initialize": about, "tools/list": {"tools": [tool]}, "tools/call": said}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        found = results.get(asked["method"])
        answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Server:
    """`chargehand mcp` on a home of its own, spoken to in plain JSON-RPC."""

    def __init__(self, home: str) -> None:
        env = {"PATH": os.environ["PATH"], "CHARGEHAND_HOME": home, "CHARGEHAND_MODEL": "scripted:none.json"}
        command = [sys.executable, "-m", "chargehand", "mcp"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        received: IO[bytes] | None = self.process.stdout
        assert received is not None
        while True:
            answer = json.loads(received.readline())
            if answer.get("id") == self._number:
                return answer

    def greet(self) -> None:
        self.ask("initialize", HELLO)

    def ready(self) -> None:
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _import_cpu() -> float:
    before = os.times()
    subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _initialize_cpu(home: str) -> float:
    server = _Server(home)
    try:
        server.greet()
        return _cpu_of(server.process.pid)
    finally:
        server.end()


def _call_ms(home: str, run: str, calls: int) -> float:
    """CPU of our server for one `get_run`, the reading of the run included."""
    server = _Server(home)
    try:
        server.greet()
        server.ready()
        use = {"name": "get_run", "arguments": {"run": run}}
        for _ in range(5):
            assert "result" in server.ask("tools/call", use)
        before = _cpu_of(server.process.pid)
        for _ in range(calls):
            server.ask("tools/call", use)
        return 1000 * (_cpu_of(server.process.pid) - before) / calls
    finally:
        server.end()


async def _own_ms(home: str, run: str, calls: int) -> float:
    """CPU of the same without MCP: the run is read as the tool reads it."""
    from chargehand import Supervisor, Team, Worker
    from chargehand.server.read_runs import read_run
    from chargehand.server.run_server import ServeOptions, make_server

    supervisor = Supervisor(Team([Worker("w", "Works")]), home=home)
    server = make_server(supervisor, ServeOptions(port=0, token="t" * 30), "t" * 30, 1)
    for _ in range(5):
        await read_run(server, run)
    before = time.process_time()
    for _ in range(calls):
        await read_run(server, run)
    return 1000 * (time.process_time() - before) / calls


async def _tool_ms(folder: str, calls: int) -> float:
    """CPU of our process for one call of a tool of another server."""
    from chargehand.runs.trusted_servers import pin_servers
    from chargehand.tools import ToolContext, call
    from chargehand.tools.mcp_connections import McpConnections
    from chargehand.tools.mcp_pins import McpPins, McpServer
    from chargehand.tools.pinned_tools import make_tool

    server = McpServer(name="s", command=sys.executable, args=("-c", ECHO), folder=folder)
    pins = McpPins(folder)
    await pin_servers([server], pins)
    connections = McpConnections()
    try:
        tool, context = make_tool(server, pins.tools(server)["echo"]), ToolContext(servers=connections)
        for _ in range(5):
            assert (await call(tool, {}, context)).text == "x"
        before = time.process_time()
        for _ in range(calls):
            await call(tool, {}, context)
        return 1000 * (time.process_time() - before) / calls
    finally:
        await connections.close()


def main() -> None:
    from tests.server.serving import make_supervisor

    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        run = make_supervisor(Path(home)).run_sync("Do both parts").run
        pairs = [(_import_cpu(), _initialize_cpu(home)) for _ in range(given.rounds)]
        alone, greeted = (statistics.median(each) for each in zip(*pairs, strict=True))
        print(f"initialize: {greeted:.2f} s of CPU; `import mcp.server` alone {alone:.2f}; more: {greeted - alone:.2f}")
        through, own = _call_ms(home, run, given.calls), asyncio.run(_own_ms(home, run, given.calls))
        print(f"get_run: {through:.2f} ms of CPU through MCP; read alone {own:.2f}; more: {through - own:.2f}")
        print(f"a worker's call of an MCP tool: {asyncio.run(_tool_ms(home, given.calls)):.2f} ms of CPU")


if __name__ == "__main__":
    main()
