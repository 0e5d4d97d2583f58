"""MCP servers that others wrote, as tools; and what a server is told of the trace that a call is part of."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from chargehand.runs.trusted_servers import pin_servers
from chargehand.tools import ToolContext, call
from chargehand.tools.mcp_connections import McpConnections
from chargehand.tools.mcp_pins import McpPins, McpServer
from chargehand.tools.pinned_tools import make_tool
from tests.npm_packages import npm_package
from tests.pace import PATIENCE_S

# Says what came beside the arguments.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tool = {"name": "beside", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    about["serverInfo"] = {"name": "s", "version": "1"}
    text = json.dumps(asked.get("params", {}).get("_meta", {}))
    results = {"initialize": about, "tools/list": {"tools": [tool]},
               "tools/call": {"content": [{"type": "text", "text": text}]}}
    found = results.get(asked["method"])
    answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


async def _use(server: McpServer, pins: McpPins, *uses: tuple[str, dict[str, Any]], **context: Any) -> list[Any]:
    await pin_servers([server], pins)
    connections = McpConnections()
    try:
        given = ToolContext(servers=connections, **context)
        pinned = pins.tools(server)
        return [await call(make_tool(server, pinned[name]), arguments, given) for name, arguments in uses]
    finally:
        await connections.close()


def test_the_reference_server_from_npm(tmp_path: Path) -> None:
    """Text, a sum, structured content, pictures and links as what they are, a wrong argument, and its environment."""
    program = npm_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    server = McpServer(name="e", command="node", args=(str(program),), folder=str(tmp_path), timeout_s=PATIENCE_S)
    uses: list[tuple[str, dict[str, Any]]] = [
        ("echo", {"message": "hello"}),
        ("get-sum", {"a": 2, "b": 40}),
        ("get-structured-content", {"location": "New York"}),
        ("get-tiny-image", {}),
        ("get-resource-links", {"count": 2}),
        ("get-sum", {"a": "two", "b": 3}),
        ("get-env", {}),
    ]
    results = asyncio.run(_use(server, McpPins(str(tmp_path / "home")), *uses))
    texts = [each.text for each in results]
    assert texts[0] == "Echo: hello"
    assert "42" in texts[1]
    assert "temperature" in texts[2]
    assert "[image image/png" in texts[3]
    assert "[resource " in texts[4]
    assert results[5].code == "wrong_arguments"
    assert not any(name in texts[6] for name in ("ANTHROPIC", "OPENAI", "CHARGEHAND"))


def test_the_reference_server_is_opened_again_after_it_was_killed(tmp_path: Path) -> None:
    """The call after its death opens another one."""
    program = npm_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    server = McpServer(name="e", command="node", args=(str(program),), folder=str(tmp_path), timeout_s=PATIENCE_S)
    pins = McpPins(str(tmp_path / "home"))

    async def drive() -> None:
        await pin_servers([server], pins)
        connections = McpConnections()
        try:
            tool, context = make_tool(server, pins.tools(server)["echo"]), ToolContext(servers=connections)
            assert (await call(tool, {"message": "one"}, context)).text == "Echo: one"
            _kill_children_that_run(program)
            results = [await call(tool, {"message": "two"}, context) for _ in range(2)]
            assert results[-1].text == "Echo: two", results[-1].error
        finally:
            await connections.close()

    asyncio.run(drive())


def _kill_children_that_run(program: Path) -> None:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        if str(program) in entry.read_text(errors="replace") and _is_child(entry.parent):
            os.kill(int(entry.parent.name), signal.SIGKILL)


def _is_child(process: Path) -> bool:
    """Whether it descends from this process: other tests have servers of their own."""
    while (parent := (process / "stat").read_text().rpartition(")")[2].split()[1]) not in ("0", "1"):
        if int(parent) == os.getpid():
            return True
        process = Path("/proc") / parent
    return False


def test_a_call_names_the_span_that_it_is_for(tmp_path: Path) -> None:
    """In the fields beside its arguments, as MCP has it; without a trace there is nothing of it."""
    args = ("-c", SERVER)
    server = McpServer(name="s", command=sys.executable, args=args, folder=str(tmp_path), timeout_s=PATIENCE_S)
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    pins = McpPins(str(tmp_path / "home"))
    (named,) = asyncio.run(_use(server, pins, ("beside", {}), traceparent=header))
    assert json.loads(named.text)["traceparent"] == header
    (plain,) = asyncio.run(_use(server, pins, ("beside", {})))
    assert "traceparent" not in json.loads(plain.text)
