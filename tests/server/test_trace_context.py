"""W3C trace context: taken from callers over HTTP and MCP, sent to providers and MCP servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.events import RunStarted
from chargehand.runs import send_telemetry
from chargehand.values.trace_context import TraceCaller
from tests.loopback import Answer, Seen, answer_json
from tests.loopback import serving as serving_model
from tests.runs.test_send_telemetry import collecting
from tests.server.mcp_clients import over_http, run
from tests.server.serving import PLAN, Client, make_supervisor, serving

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = f"00-{TRACE}-{SPAN}-01"
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"


def _answer(seen: Seen) -> Answer:
    if seen.role == "planner":
        return answer_json(PLAN)
    if seen.role == "synthesizer":
        return answer_json({"answer": "All is done [a] [b].", "confidence": 80})
    return answer_json({"summary": "s", "output": "the part is done", "claims": []})


def _supervisor(home: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> Supervisor:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    return Supervisor(Team([Worker("w", "Works")]), model="openai:gpt-5", home=home)


def _trace_on_record(server: Client, id: str) -> Any:
    events = server.get(f"/api/v1/runs/{id}/events").body.decode().splitlines()
    return json.loads(events[0]).get("trace")


def test_calls_of_a_run_carry_its_spans_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call names the span that is sent for it, below the caller's."""
    with collecting() as collector, serving_model(_answer) as model:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        with serving(_supervisor(tmp_path, monkeypatch, model.url)) as server:
            made = server.post("/v1/responses", {"model": "chargehand/default", "input": "Do it"}, traceparent=CALLER)
            assert made.json["status"] == "completed", made.body
        send_telemetry.wait_for_senders()
    (root,) = collector.named("invoke_workflow")
    assert (root["traceId"], root["parentSpanId"]) == (TRACE, SPAN)
    assert {span["traceId"] for span in collector.spans} == {TRACE}
    sent = {TraceCaller.parse(seen.headers.get("traceparent")) for seen in model.requests}
    chats = {TraceCaller(TRACE, span["spanId"], sampled=True) for span in collector.named("chat")}
    assert sent == chats
    assert len(chats) == 4


def test_a_caller_s_trace_is_passed_on_where_nothing_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it came, and it is on record; without a caller nothing is sent and nothing recorded."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with serving_model(_answer) as model, serving(_supervisor(tmp_path, monkeypatch, model.url)) as server:
        answer = server.post("/api/v1/runs", {"request": "Do it"}, traceparent=CALLER)
        server.wait(answer.json["run"])
        assert {seen.headers.get("traceparent") for seen in model.requests} == {CALLER}
        assert _trace_on_record(server, answer.json["run"]) == {"id": TRACE, "parent": SPAN}
        before = len(model.requests)
        for wrong in ("", "nonsense", f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01", f"{CALLER}-more"):
            plain = server.post("/api/v1/runs", {"request": "Do it"}, traceparent=wrong).json["run"]
            server.wait(plain)
            assert _trace_on_record(server, plain) is None
        assert {seen.headers.get("traceparent") for seen in model.requests[before:]} == {None}


def test_a_trace_that_its_caller_does_not_keep_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics count it all the same."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        with serving(make_supervisor(tmp_path)) as server:
            server.wait(server.post("/api/v1/runs", {"request": "Do it"}, traceparent=UNSAMPLED).json["run"])
        send_telemetry.wait_for_senders()
    assert collector.spans == []
    assert "chargehand.run.duration" in collector.metrics


def test_a_run_over_mcp_is_part_of_the_caller_s_trace(tmp_path: Path) -> None:
    """MCP names the caller in the fields of a request."""
    supervisor = make_supervisor(tmp_path)
    with serving(supervisor) as server:

        async def call() -> None:
            async with over_http(server.port, "auto") as client:
                meta: Any = {"traceparent": CALLER}
                result: Any = await client.call_tool("run_team", {"request": "Do both parts"}, meta=meta)
                id = result.structured_content["run"]
                (start,) = [e.body for e in supervisor.source.events(id) if isinstance(e.body, RunStarted)]
                assert start.trace == {"id": TRACE, "parent": SPAN}

        run(call())
