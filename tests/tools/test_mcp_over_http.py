"""Addresses of MCP servers that do harm: they hang, flood, break off, send elsewhere, or speak something else."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chargehand.errors import ToolError
from chargehand.runs.trusted_servers import pin_servers
from chargehand.tools import ToolContext, call, mcp_connections
from chargehand.tools.mcp_connections import McpConnections
from chargehand.tools.mcp_pins import McpPins, McpServer
from chargehand.tools.pinned_tools import make_tool
from tests.pace import PATIENCE_S
from tests.tools.hostile_mcp_server import ECHO

KEY = "bearer-of-the-one-address"


class Site:
    """An MCP server at an address, which plays one trick from the moment it is set."""

    def __init__(self) -> None:
        self.trick = ""
        self.url = ""
        self.elsewhere = ""
        self.keys: list[str | None] = []
        self.over = threading.Event()


def _result(asked: dict[str, Any]) -> dict[str, Any]:
    match asked["method"]:
        case "initialize":
            about = {"name": "h", "version": "1"}
            version = asked["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [ECHO]}
        case _:
            return {"content": [{"type": "text", "text": "echo: hello"}]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(405, b"")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.site.keys.append(self.headers["authorization"])
        trick = self.site.trick if asked["method"] != "initialize" else ""
        if "id" not in asked:
            self._send(202, b"")
        elif asked["method"] not in ("initialize", "tools/list", "tools/call"):
            self._answer(asked, error={"code": -32601, "message": "no"})
        else:
            self._play(trick, asked)

    def _play(self, trick: str, asked: dict[str, Any]) -> None:
        in_list = asked["method"] == "tools/list"
        match trick:
            case "hangs_in_list" if in_list:
                self.site.over.wait(PATIENCE_S)
            case "hangs_in_call" if not in_list:
                self.site.over.wait(PATIENCE_S)
            case "flood" if not in_list:
                self._send(200, b'{"x": "' + b"y" * 50_000_000)
            case "bomb" if not in_list:
                text = {"content": [{"type": "text", "text": "y" * 50_000_000}]}
                whole = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": text}).encode()
                self._send(200, gzip.compress(whole, 1), content_encoding="gzip")
            case "breaks_off" if not in_list:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b"event: message\ndata: {")
                self.close_connection = True
            case "sends_elsewhere" if not in_list:
                self._send(307, b"", location=self.site.elsewhere)
            case "page" if not in_list:
                self._send(200, b"<html>Welcome</html>", "text/html")
            case "no_access" if not in_list:
                self._send(401, b"", www_authenticate="Bearer")
            case "broken" if not in_list:
                self._send(500, b"\x1b[2J" * 1000, "text/plain")
            case _:
                self._answer(asked, result=_result(asked))

    def _answer(self, asked: dict[str, Any], **more: Any) -> None:
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **more}).encode())

    def _send(self, status: int, body: bytes, media: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _serving() -> Generator[Site]:
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.url = f"http://127.0.0.1:{server.server_port}/mcp"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            site.over.set()
            server.shutdown()
            thread.join()


async def _call_twice(server: McpServer, pins: McpPins, site: Site) -> list[Any]:
    """A call while the trick is played, and one after it; with the seconds that the first took."""
    connections = McpConnections()
    try:
        tool, context = make_tool(server, pins.tools(server)["echo"]), ToolContext(servers=connections)
        began = time.monotonic()
        first = await call(tool, {"text": "hello"}, context)
        took = time.monotonic() - began
        site.trick = ""
        return [first, took, await call(tool, {"text": "hello"}, context)]
    finally:
        await connections.close()


@pytest.mark.parametrize(
    "trick",
    [
        "hangs_in_list",
        "hangs_in_call",
        "flood",
        "bomb",
        "breaks_off",
        "sends_elsewhere",
        "page",
        "no_access",
        "broken",
    ],
)
def test_a_trick_fails_the_call_and_the_next_one_works(
    trick: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a typed error and within the deadline; the key goes to no other address."""
    monkeypatch.setattr(mcp_connections, "CONNECT_S", 5.0)
    monkeypatch.setenv("SITE_KEY", KEY)
    pins = McpPins(str(tmp_path))
    with _serving() as other, _serving() as site:
        site.elsewhere = other.url
        server = McpServer(name="h", url=site.url, key_env="SITE_KEY", timeout_s=3.0)
        asyncio.run(pin_servers([server], pins))
        site.trick = trick
        first, took, second = asyncio.run(_call_twice(server, pins, site))
        assert (other.keys, {*site.keys}) == ([], {f"Bearer {KEY}"})
    assert first.error is not None, first.text[:200]
    assert (first.error.kind, "\x1b" in first.error.message, len(first.error.message) < 3_000) == ("tool", False, True)
    assert took < PATIENCE_S / 2
    assert (second.error, second.text) == (None, "echo: hello")


def test_a_server_that_hangs_in_its_list_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is said, nothing is pinned."""
    monkeypatch.setattr(mcp_connections, "CONNECT_S", 2.0)
    pins = McpPins(str(tmp_path))
    with _serving() as site:
        site.trick = "hangs_in_list"
        server = McpServer(name="h", url=site.url, timeout_s=2.0)
        (found,) = asyncio.run(pin_servers([server], pins)).values()
    assert isinstance(found, ToolError)
    assert pins.tools(server) == {}
