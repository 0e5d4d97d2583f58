"""Spans and metrics on their way to a collector: real runs, real HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from chargehand.events import RunStarted
from chargehand.models import Attribution
from chargehand.runs import send_telemetry
from chargehand.runs.send_telemetry import address_of, headers_of
from chargehand.settings.settings import OtelSettings
from chargehand.testing import ScriptedModel
from chargehand.text.redaction import Redactor
from chargehand.trace import to_otlp
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from tests.cli.terminal import Result, Shell, finished, process
from tests.pace import PATIENCE_S
from tests.server.serving import ANSWERS, make_supervisor
from tests.trace.sample import Recorder

ANSWER = "# Both\n\nAll is *well* [t1, t2].\n"
KEY = "a-key-of-the-collector"


class Collector:
    """What arrived: path, headers, body."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.address = ""
        # How many requests are still refused, and the status with which all with metrics are.
        self.refuse = 0
        self.refuse_metrics = 0
        self.came = threading.Condition()

    def wait_for(self, enough: Callable[[], bool]) -> None:
        """Until what came is enough."""
        with self.came:
            assert self.came.wait_for(enough, PATIENCE_S)

    @property
    def spans(self) -> list[dict[str, Any]]:
        """All that came, with their attributes as plain values."""
        return [
            span | {"attributes": _plain(span["attributes"])}
            for path, _, body in self.got
            if path.endswith("/v1/traces")
            for resource in body["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def named(self, operation: str) -> list[dict[str, Any]]:
        return [span for span in self.spans if span["attributes"]["gen_ai.operation.name"] == operation]

    @property
    def metrics(self) -> dict[str, Any]:
        """The last that came, by name."""
        body = [body for path, _, body in self.got if path.endswith("/v1/metrics")][-1]
        return {each["name"]: each for each in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}


def _read_body(media: str, path: str, body: bytes) -> Any:
    """As JSON, whichever way it came; what the official package cannot read raises."""
    if media == "application/json":
        return json.loads(body)
    assert media == "application/x-protobuf"
    message: Any = ExportMetricsServiceRequest() if "metrics" in path else ExportTraceServiceRequest()
    message.ParseFromString(body)
    return _with_hex_ids(MessageToDict(message, use_integers_for_enums=True))


def _with_hex_ids(part: Any) -> Any:
    if isinstance(part, list):
        return [_with_hex_ids(each) for each in part]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(part, dict):
        return part
    return {
        name: base64.b64decode(each).hex() if name in ("traceId", "spanId", "parentSpanId") else _with_hex_ids(each)
        for name, each in part.items()  # pyright: ignore[reportUnknownVariableType]
    }


def _plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


@contextmanager
def collecting(status: int = 200, location: str = "") -> Generator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            refused = 503 if collector.refuse else collector.refuse_metrics if "metrics" in self.path else 0
            if refused:
                collector.refuse = max(collector.refuse - 1, 0)
                self.send_response(refused)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            with collector.came:
                headers = {k.lower(): v for k, v in self.headers.items()}
                collector.got.append((self.path, headers, _read_body(headers["content-type"], self.path, body)))
                collector.came.notify_all()
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


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_a_run_is_sent_when_it_has_ended(shell: Shell, protocol: str) -> None:
    """The document is what `trace` gives for it; the headers are those of the environment."""
    with collecting() as collector:
        got = _run(
            shell,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.address + "/",
            OTEL_EXPORTER_OTLP_HEADERS=f"x-key={KEY},x-team=a%20b",
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        )
    assert (got.code, got.out, got.err) == (0, ANSWER, "")
    assert {path for path, _, _ in collector.got} == {"/v1/traces", "/v1/metrics"}
    for _, headers, _ in collector.got:
        assert headers["content-type"] == {"http/json": "application/json"}.get(protocol, "application/x-protobuf")
        assert (headers["x-key"], headers["x-team"]) == (KEY, "a b")
    for path, _, body in collector.got:
        if (path, protocol) == ("/v1/metrics", "http/json"):
            # Raises on a field or a value that the protocol does not have.
            ParseDict(body, ExportMetricsServiceRequest())
    sent = [span for path, _, body in collector.got if path == "/v1/traces" for span in _spans_of(body)]
    shown = _spans_of(json.loads(shell("trace", "last", "--format", "otlp").out))
    assert sorted(sent, key=lambda span: span["spanId"]) == sorted(shown, key=lambda span: span["spanId"])
    assert "Say it" not in json.dumps([body for _, _, body in collector.got])
    tokens = collector.metrics["gen_ai.client.token.usage"]["histogram"]["dataPoints"]
    used = sum(int(span["attributes"].get("gen_ai.usage.input_tokens", 0)) for span in collector.named("chat"))
    assert sum(each["sum"] for each in tokens if _plain(each["attributes"])["gen_ai.token.type"] == "input") == used > 0
    assert {"gen_ai.client.operation.duration", "chargehand.queue.duration", "chargehand.run.duration"} <= {
        *collector.metrics
    }


def _spans_of(body: Any) -> list[dict[str, Any]]:
    return body["resourceSpans"][0]["scopeSpans"][0]["spans"]


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
    assert "urlopen" not in line
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
    for name in ("chargehand.runs.send_telemetry", "chargehand.trace.otlp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert shell("run", "Say it", "--model", shell.script()).code == 0
    assert not {"chargehand.runs.send_telemetry", "chargehand.trace.otlp"} & sys.modules.keys()


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
    none, set_ = OtelSettings(), OtelSettings(endpoint="http://file:4318", headers_env="MINE")
    general = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}
    assert address_of("traces", none, general) == "http://c:4318/v1/traces"
    assert address_of("metrics", set_, general) == "http://c:4318/v1/metrics"
    assert address_of("metrics", set_, {}) == "http://file:4318/v1/metrics"
    exact = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/in", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"}
    assert address_of("traces", none, exact) == "https://c/in"
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%2Cy=z,,c", "MINE": "d=2"}
    assert headers_of("traces", none, given) == {"a": "1", "b": "x,y=z"}
    assert headers_of("traces", set_, {"MINE": "d=2"}) == {"d": "2"}
    assert not OtelSettings(endpoint="http://c").is_on({"OTEL_SDK_DISABLED": "true"})
    assert set_.is_on({}) and none.is_on(general) and not none.is_on({})  # noqa: PT018


def test_the_settings_name_a_collector_and_need_trust(shell: Shell) -> None:
    """`[otel]` in a file of the working tree is ignored without trust."""
    with collecting() as collector:
        file = Path(shell.folder) / "chargehand.toml"
        file.write_text(f'[otel]\nendpoint = "{collector.address}"\ncontent = true\n', encoding="utf-8")
        got = _run(shell)
        assert (got.code, collector.got) == (0, [])
        assert shell("trust", str(shell.folder)).code == 0
        assert _run(shell).code == 0
    assert "Say it" in json.dumps(collector.spans)


class Held(ScriptedModel):
    """Writes the answer only once that is let go."""

    def __init__(self, collector: Collector, may_write: Callable[[], bool]) -> None:
        super().__init__(ANSWERS)
        self._collector = collector
        self._may_write = may_write

    async def complete(self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Any = None) -> Reply:
        if call.role == "synthesizer":
            await asyncio.to_thread(self._collector.wait_for, self._may_write)
        return await super().complete(call, max_output, attribution, on_text)


def test_tasks_are_sent_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is written only after the spans of both tasks have arrived: it would wait for ever otherwise."""
    monkeypatch.setattr(send_telemetry, "FLUSH_S", 0.05)
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        model = Held(collector, lambda: len(collector.named("invoke_agent")) == 2)
        report = make_supervisor(tmp_path, model).run_sync("Do both parts")
        send_telemetry.wait_for_senders()
    assert report.status == "complete"
    assert len(collector.got) > 2
    ids = [span["spanId"] for span in collector.spans]
    assert len(ids) == len({*ids})


def test_a_resumed_session_is_in_the_same_trace_and_sends_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root is linked to the first; the trace is on record."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        supervisor = make_supervisor(tmp_path)
        run = supervisor.run_sync("Do both parts", approve=True).run

        async def continue_run() -> None:
            await supervisor.answer(run, "plan", "approve")
            await supervisor.resume(run)

        asyncio.run(continue_run())
        send_telemetry.wait_for_senders()
    ids = [span["spanId"] for span in collector.spans]
    assert len(ids) == len({*ids})
    first, second = collector.named("invoke_workflow")
    assert second["links"] == [{"traceId": first["traceId"], "spanId": first["spanId"]}]
    recorded = [event.body.trace for event in supervisor.source.events(run) if isinstance(event.body, RunStarted)]
    assert recorded == [{"id": first["traceId"], "parent": None}] * 2


def test_a_collector_that_comes_back_gets_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses the first request, and the run is complete in it all the same; nothing is said."""
    monkeypatch.setattr(send_telemetry, "FLUSH_S", 0.05)
    monkeypatch.setattr(send_telemetry, "_PAUSE_S", 0.05)
    with collecting() as collector:
        collector.refuse = 1
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        model = Held(collector, lambda: len(collector.named("invoke_agent")) == 2)
        make_supervisor(tmp_path, model).run_sync("Do both parts")
        send_telemetry.wait_for_senders()
    assert collector.refuse == 0
    assert len(collector.named("invoke_agent")) == 2
    assert len(collector.named("invoke_workflow")) == 1


def test_a_viewer_without_metrics_gets_spans(shell: Shell) -> None:
    """Some take traces only: that is not an error."""
    with collecting() as collector:
        collector.refuse_metrics = 404
        got = _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
    assert (got.code, got.err) == (0, "")
    assert collector.named("invoke_workflow")


def test_a_collector_that_refuses_metrics_is_reported(shell: Shell) -> None:
    """A back end that does not read JSON answers 400: else nobody would know why it has none."""
    with collecting() as collector:
        collector.refuse_metrics = 400
        got = _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
    assert (got.code, got.out) == (0, ANSWER)
    assert got.err.splitlines() == ["The collector did not take the metrics: HTTP Error 400: Bad Request."]


def test_metrics_of_two_processes_are_two_series(shell: Shell) -> None:
    """They add up in each process from nothing: under one name a back end would take them for one that was reset."""
    with collecting() as collector:
        for _ in range(2):
            assert _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address).code == 0
    bodies = [body for path, _, body in collector.got if path.endswith("/v1/metrics")]
    found = [_plain(body["resourceMetrics"][0]["resource"]["attributes"]) for body in bodies]
    assert len({each["service.instance.id"] for each in found}) == 2


def test_names_are_those_of_the_conventions(shell: Shell) -> None:
    """Each attribute and metric in their namespaces is one that their package lists; the rest is marked as ours."""
    attributes = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    metrics = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    known = {value for value in vars(attributes).values() if isinstance(value, str)}
    operations = {each.value for each in attributes.GenAiOperationNameValues}
    with collecting() as collector:
        content = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        assert _run(shell, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **content).code == 0
    others = {"error.type", "session.id", "openinference.span.kind", "input.value", "output.value"}
    for span in collector.spans:
        names = {*span["attributes"]}
        assert {name for name in names if name.startswith("gen_ai.")} <= known
        assert all(name.startswith(("gen_ai.", "chargehand.")) or name in others for name in names)
        # `plan` and `invoke_workflow` are newer than some versions of the package.
        assert span["attributes"]["gen_ai.operation.name"] in operations | {"plan", "invoke_workflow"}
    listed = {value for value in vars(metrics).values() if isinstance(value, str)}
    assert {name for name in collector.metrics if name.startswith("gen_ai.")} <= listed
    assert all(name.startswith(("gen_ai.client.", "chargehand.")) for name in collector.metrics)
    assert "Say it" in json.dumps(collector.spans)
