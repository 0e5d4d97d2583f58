"""Spans on their way to a collector: a real process, real HTTP."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chargehand.runs.send_spans import address_in, headers_in
from chargehand.text.redaction import Redactor
from chargehand.trace import to_otlp
from tests.cli.terminal import Result, Shell, finished, process
from tests.trace.sample import Recorder

ANSWER = "# Both\n\nAll is *well* [t1, t2].\n"
KEY = "a-key-of-the-collector"


class Collector:
    """What arrived: path, headers, body."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.address = ""


@contextmanager
def collecting(status: int = 200, location: str = "") -> Generator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _run(shell: Shell, **env: str) -> Result:
    child = process("run", "Say it", "-q", "--model", shell.script(), home=shell.home, env=env, cwd=shell.folder)
    return finished(child)


def test_a_run_is_sent_when_it_has_ended(shell: Shell) -> None:
    """The document is what `trace` gives for it; the headers are those of the environment."""
    with collecting() as collector:
        got = _run(
            shell,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.address + "/",
            OTEL_EXPORTER_OTLP_HEADERS=f"x-key={KEY},x-team=a%20b",
        )
    assert (got.code, got.out, got.err) == (0, ANSWER, "")
    ((path, headers, body),) = collector.got
    assert (path, headers["content-type"]) == ("/v1/traces", "application/json")
    assert (headers["x-key"], headers["x-team"]) == (KEY, "a b")
    assert body == json.loads(shell("trace", "last", "--format", "otlp").out)
    assert "Say it" not in json.dumps(body)


def test_a_redirect_is_not_followed(shell: Shell) -> None:
    """The key stays with the address that it was given for."""
    with collecting() as other, collecting(307, other.address) as collector:
        got = _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_EXPORTER_OTLP_HEADERS=f"x-key={KEY}")
    assert (got.code, got.out, other.got) == (0, ANSWER, [])
    assert "were not sent: HTTP Error 307" in got.err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "file:///etc/passwd", "nonsense", "http://[::"])
def test_no_collector_no_harm(shell: Shell, address: str) -> None:
    """The run ends as it would, and one line says what to do."""
    got = _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=address)
    assert (got.code, got.out) == (0, ANSWER)
    (line,) = got.err.splitlines()
    assert "were not sent" in line
    assert line.endswith("--format otlp")


def test_a_collector_that_hangs_is_left_alone(shell: Shell) -> None:
    """It takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        got = _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=address, OTEL_EXPORTER_OTLP_TIMEOUT="200")
    assert (got.code, got.out) == (0, ANSWER)
    assert "timed out" in got.err


def test_nothing_is_imported_when_it_is_off(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("chargehand.runs.send_spans", "chargehand.trace.otlp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert shell("run", "Say it", "--model", shell.script()).code == 0
    assert not {"chargehand.runs.send_spans", "chargehand.trace.otlp"} & sys.modules.keys()


def test_a_session_sends_its_own_spans_only() -> None:
    """What an earlier one has sent is not sent again."""
    record = Recorder()
    record.start(0, "Ask")
    record.model(1, 2, "@plan/1")
    before = len(record.events())
    record.start(3, "Ask", epoch=2)
    record.model(4, 5, "@plan/2")
    whole, later = (
        to_otlp(record.events(), lambda _: {}, Redactor(), after=after)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        for after in (0, before)
    )
    assert later == whole[3:]
    assert later[0]["links"][0]["spanId"] == whole[0]["spanId"]


def test_variables_of_opentelemetry_are_understood() -> None:
    """The address of traces is taken as it is, the general one gets the path."""
    assert address_in({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}) == "http://c:4318/v1/traces"
    exact = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/in", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"}
    assert address_in(exact) == "https://c/in"
    assert headers_in({"OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%2Cy=z,,c"}) == {"a": "1", "b": "x,y=z"}
