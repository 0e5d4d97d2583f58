"""Spans for OpenTelemetry."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, cast

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from chargehand.events import Event
from chargehand.text.redaction import Redactor
from chargehand.trace import to_otlp
from chargehand.values.message import user
from tests.trace.sample import MODEL, Recorder, many, plan, sample

SECRET = "sk-ant-api03-Zq81LmPw7RtYx2Vb9NcKd4Hj6Gf5Ds3A"


def _nothing(hashes: Iterable[str]) -> dict[str, bytes]:
    return {}


def _spans(events: Iterable[Event], *, content: bool = False) -> list[dict[str, Any]]:
    """The spans with their attributes as plain values, after the official reader has taken the document."""
    document = to_otlp(events, _nothing, Redactor(), content=content)
    _read_officially(document)
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return [
        span | {"attributes": {each["key"]: _plain(each["value"]) for each in span["attributes"]}} for span in spans
    ]


def _plain(value: dict[str, Any]) -> Any:
    ((sort, held),) = value.items()
    return int(held) if sort == "intValue" else [*map(_plain, held["values"])] if sort == "arrayValue" else held


def _read_officially(document: dict[str, Any]) -> ExportTraceServiceRequest:
    """Ids are hexadecimal in OTLP, base64 in the JSON of protocol buffers; all else is the same."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(each) for each in cast(list[Any], value)]
        if not isinstance(value, dict):
            return value
        held = cast(dict[str, Any], value)
        ids = {name: base64.b64encode(bytes.fromhex(held[name])).decode() for name in held if name.endswith("Id")}
        return {name: convert(each) for name, each in held.items()} | ids

    return json_format.ParseDict(convert(json.loads(json.dumps(document))), ExportTraceServiceRequest())


def _resumed() -> list[Event]:
    """A process dies in the first call of t1; the next goes on with it."""
    record, made = Recorder(), plan()
    record.start(0, "Compare")
    record.note(0.1, "plan_approved", plan=made.to_json(), strategy="hybrid", notes=[])
    record.note(0.2, "attempt_started", "t1", 1, worker="researcher", tier=None, model=MODEL)
    record.note(0.3, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=1)
    record.start(60, "Compare", epoch=2)
    record.attempt(60.1, 62, made.tasks[0])
    record.model(60.2, 61, "t1/1/model/1", "t1", 1)
    record.note(63, "run_ended", status="complete")
    return record.events()


def _nested() -> list[Event]:
    record = Recorder()
    record.start(0, "Nested")
    record.note(1, "attempt_started", "t3", 1, worker="team", tier=None, model=None)
    record.model(1.1, 2, "t3/1/@plan/1", "t3", 1, role="planner")
    record.note(2.1, "plan_approved", "t3", 1, plan={"tasks": []}, strategy="single", notes=[], within="t3/1")
    record.note(2.2, "attempt_started", "t3/1/a", 1, worker="writer", tier=None, model=MODEL)
    record.model(2.3, 4, "t3/1/a/1/model/1", "t3/1/a", 1)
    # The outer attempt ends, on the record, before its last call does.
    record.note(3, "attempt_ended", "t3", 1, status="done", error=None)
    record.note(5, "run_ended", status="complete")
    return record.events()


@pytest.mark.parametrize("events", [sample(), _resumed(), _nested(), sample()[:30], many(60)])
def test_ids_parents_and_times_agree(events: list[Event]) -> None:
    """One trace; ids are unique; a parent comes before its child and lasts as long at least."""
    spans = _spans(events)
    assert len({span["traceId"] for span in spans}) == 1
    seen: dict[str, dict[str, Any]] = {}
    for span in spans:
        assert span["spanId"] not in seen
        assert (len(span["traceId"]), len(span["spanId"])) == (32, 16)
        begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert begin <= end
        if span["attributes"]["gen_ai.operation.name"] == "invoke_workflow":
            assert "parentSpanId" not in span
        else:
            parent = seen[span["parentSpanId"]]
            assert int(parent["startTimeUnixNano"]) <= begin <= end <= int(parent["endTimeUnixNano"])
        seen[span["spanId"]] = span


def test_spans_are_named_and_described_as_the_conventions_say() -> None:
    """Five operations, each with the attributes that viewers go by."""
    spans = _spans(sample())
    sorts = {
        (each["attributes"]["gen_ai.operation.name"], each["attributes"]["openinference.span.kind"]) for each in spans
    }
    assert sorts == {
        ("invoke_workflow", "CHAIN"), ("plan", "CHAIN"), ("invoke_agent", "AGENT"), ("chat", "LLM"),
        ("execute_tool", "TOOL"),
    }  # fmt: skip
    run = Recorder().run
    assert {(s["attributes"]["session.id"], s["attributes"]["gen_ai.conversation.id"]) for s in spans} == {(run, run)}
    by_key = {span["attributes"]["chargehand.key"]: span for span in spans}
    chat, planning = by_key["t1/1/model/0"], by_key["@plan/1"]
    assert (chat["name"], chat["kind"]) == ("chat claude-sonnet-4-5", 3)
    assert {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 240,
        "gen_ai.usage.cache_read.input_tokens": 300,
        "chargehand.usd": 0.0063,
    }.items() <= chat["attributes"].items()
    assert chat["parentSpanId"] == by_key["t1/1"]["spanId"]
    assert by_key["t1/1"]["name"] == "invoke_agent researcher"
    assert by_key["t1/1"]["attributes"]["gen_ai.agent.name"] == "researcher"
    assert by_key["t1/1/tool/1"]["attributes"]["gen_ai.tool.name"] == "search_files"
    assert planning["parentSpanId"] == by_key["/@plan"]["spanId"]
    assert by_key["@synthesis/1"]["parentSpanId"] == by_key["@run"]["spanId"] == by_key["/@plan"]["parentSpanId"]


def test_what_failed_says_why_by_its_type() -> None:
    """Of attempts, model calls and tool calls; the text of an error is content."""
    failed = {s["attributes"]["chargehand.key"]: s for s in _spans(sample()) if "status" in s}
    assert {key: span["attributes"]["error.type"] for key, span in failed.items()} == {
        "t3/1": "overloaded", "t3/1/tool/1": "tool", "t3/1/model/2": "overloaded", "t4/1": "contract",
    }  # fmt: skip
    assert {json.dumps(span["status"]) for span in failed.values()} == {'{"code": 2}'}
    told = {s["attributes"]["chargehand.key"]: s for s in _spans(sample(), content=True)}
    assert "timetable.csv" in told["t3/1/tool/1"]["status"]["message"]


def test_a_resumed_session_is_linked_to_the_first() -> None:
    """What the first left open ends with its last event; the same call again is another span."""
    first, _plan, attempt, call, second, again, called = _spans(_resumed())
    assert "links" not in first
    assert second["links"] == [{"traceId": first["traceId"], "spanId": first["spanId"]}]
    assert "chargehand.unfinished" not in second["attributes"]
    for span in (first, attempt, call):
        assert span["attributes"]["chargehand.unfinished"]
        assert span["endTimeUnixNano"] == "1760000000300000000"
    assert (again["parentSpanId"], called["parentSpanId"]) == (second["spanId"], again["spanId"])


def test_a_nested_team_is_inside_its_attempt() -> None:
    """Its plan, and the attempts at its tasks."""
    by_key = {span["attributes"]["chargehand.key"]: span for span in _spans(_nested())}
    outer = by_key["t3/1"]["spanId"]
    assert by_key["t3/1/@plan"]["parentSpanId"] == by_key["t3/1/a/1"]["parentSpanId"] == outer
    assert by_key["t3/1/@plan/1"]["parentSpanId"] == by_key["t3/1/@plan"]["spanId"]


def test_a_record_that_grows_keeps_its_ids() -> None:
    """A viewer that was sent the spans so far knows them again."""
    events = sample()
    whole = [(span["spanId"], span["name"]) for span in _spans(events)]
    for count in range(1, len(events), 7):
        part = [(span["spanId"], span["name"]) for span in _spans(events[:count])]
        assert part == whole[: len(part)]
    assert to_otlp([], _nothing, Redactor()) == {"resourceSpans": []}


def test_content_is_there_only_if_asked_for_and_without_secrets() -> None:
    """Request, messages, arguments, results and answer."""
    asked = user(f"How many people live in Oslo? {SECRET}")
    record = Recorder()
    record.start(0, f"The request with {SECRET}")
    called = {"key": "t1/1/model/1", "role": "worker", "model": MODEL, "messages": [asked.digest, "lost"]}
    record.note(1, "model_called", "t1", 1, **called)
    reply = {"text": f"717,710 {SECRET}", "stop": "end", "model": MODEL, "tool_calls": [{"id": "c", "name": "look"}]}
    record.note(2, "model_replied", "t1", 1, key="t1/1/model/1", result={"reply": reply})
    record.note(3, "tool_called", "t1", 1, key="t1/1/tool/1", tool="look", arguments={"password": "hunter2-hunter2"})
    record.note(4, "tool_returned", "t1", 1, key="t1/1/tool/1", result={"text": f"a result {SECRET}"})
    record.note(5, "run_ended", status="complete", report={"answer": f"the answer {SECRET}"})

    def find(hashes: Iterable[str]) -> dict[str, bytes]:
        return {each: asked.packed for each in hashes if each == asked.digest}

    without = json.dumps(to_otlp(record.events(), find, Redactor()))
    whole = json.dumps(to_otlp(record.events(), find, Redactor(), content=True))
    for text in ("The request", "How many people", "717,710", "a result", "the answer"):
        assert text in whole
        assert text not in without
    assert "tool_call" in whole
    for secret in (SECRET, "hunter2"):
        assert secret not in whole + without
