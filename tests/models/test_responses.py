"""The Responses wire over real HTTP: stateless, with reasoning kept through tool turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand.models.resolve import Models
from chargehand.values.message import Message, Reply, ToolRequest, ToolSpec, system, tool_result, user
from tests.loopback import Answer
from tests.models.asking import RESPONSES, a_call, ask, environment, fault

GPT = "openai:gpt-6-sol"
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
CLOSED = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("streaming", [False, True])
def test_usage_has_reasoning_and_cached_tokens(streaming: bool) -> None:
    """Both are counted apart from what they are a part of."""
    answer = Answer(text="hi", thinking="Hm.", usage=(12, 7, 5), streams=streaming)
    usage = ask(answer, a_call(GPT))[0].usage
    assert usage is not None
    assert usage.to_json() == {"input_tokens": 12, "output_tokens": 7, "cached_tokens": 5, "reasoning_tokens": 3}


def test_nothing_is_stored_and_reasoning_comes_encrypted() -> None:
    """Every call is stateless; only models that reason are asked for what they reasoned."""
    _, seen = ask(Answer(text="hi"), a_call(GPT, options={"store": True}))
    assert (seen.path, seen.body["store"]) == ("/v1/responses", False)
    assert seen.body["include"] == ["reasoning.encrypted_content"]
    assert "include" not in ask(Answer(text="hi"), a_call(RESPONSES))[1].body


def test_tools_reasoning_and_a_schema_go_into_one_call() -> None:
    """A worker with tools is not asked to stop reasoning, and its answer is held to the schema."""
    call = a_call(GPT, output_schema=CLOSED, tools=(ADD,), options={"effort": "high", "verbosity": "low"})
    body = ask(Answer(text="{}"), call)[1].body
    assert body["reasoning"] == {"effort": "high"}
    assert body["tools"] == [
        {"type": "function", "name": "add", "description": "Adds.", "parameters": ADD.parameters, "strict": False}
    ]
    wanted = {"type": "json_schema", "name": "answer", "schema": CLOSED, "strict": True}
    assert body["text"] == {"verbosity": "low", "format": wanted}


@pytest.mark.parametrize(
    ("name", "least"), [("gpt-6-sol", "none"), ("gpt-5.1", "none"), ("gpt-5-mini", "minimal"), ("o3", "low")]
)
def test_no_effort_is_the_least_a_model_takes(name: str, least: str) -> None:
    """`none` becomes what the model accepts; the provider's own option wins."""
    body = ask(Answer(text="hi"), a_call(f"openai:{name}", options={"effort": "none"}))[1].body
    assert body["reasoning"] == {"effort": least}
    both = {"effort": "none", "reasoning_effort": "xhigh"}
    assert ask(Answer(text="hi"), a_call(f"openai:{name}", options=both))[1].body["reasoning"] == {"effort": "xhigh"}


def test_a_model_that_does_not_reason_gets_no_effort() -> None:
    """It would refuse it."""
    assert "reasoning" not in ask(Answer(text="hi"), a_call(RESPONSES, options={"effort": "low"}))[1].body


def test_a_plain_turn_goes_back_as_neutral_items() -> None:
    """Text, calls and results of a turn without reasoning; calls as they were written."""
    good = ToolRequest(id="c1", name="add", arguments={"a": 1})
    bad = ToolRequest(id="c2", name="add", arguments=None, raw="{")
    said = Reply(text="Let me add.", tool_calls=(good, bad)).as_message()
    history = (system("s"), user("u"), said, tool_result(good, "2"), tool_result(bad, "not an object", failed=True))
    body = ask(Answer(text="2"), a_call(RESPONSES, *history, tools=(ADD,)))[1].body
    assert body["input"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "Let me add."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{"},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
        {"type": "function_call_output", "call_id": "c2", "output": "not an object"},
    ]
    assert body["max_output_tokens"] == 500


def test_what_a_message_carries_in_addition_goes_back() -> None:
    """A phase, or whatever else a later version adds, is kept with its turn."""
    part = {"type": "output_text", "text": "hi", "annotations": []}
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    for extra, kept in (({"phase": "commentary"}, True), ({"phase": None}, False)):
        body = {"status": "completed", "output": [{**item, **extra}], "usage": None}
        reply, _ = ask(Answer(raw=json.dumps(body).encode()), a_call(RESPONSES))
        again = ask(Answer(text="ok"), a_call(RESPONSES, user("u"), reply.as_message(), user("v")))[1].body["input"]
        assert again[1] == ({**item, **extra} if kept else {"role": "assistant", "content": "hi"})


def test_a_refusal_is_a_refused_reply() -> None:
    """It is in a part of its own and becomes the text."""
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    reply, _ = ask(Answer(raw=json.dumps({"status": "completed", "output": [item]}).encode()), a_call(RESPONSES))
    assert (reply.stop, reply.text, reply.usage) == ("refused", "No.", None)


def _stream(*events: dict[str, Any]) -> Answer:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    return Answer(raw=body, headers={"Content-Type": "text/event-stream"})


def test_items_are_read_where_the_last_event_holds_none() -> None:
    """Some gateways leave the output out of the last event."""
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "add", "arguments": "{}"}
    events = (
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    )
    reply, _ = ask(_stream(*events), a_call(RESPONSES, tools=(ADD,)), lambda _: None)
    assert (reply.stop, [c.id for c in reply.tool_calls]) == ("tools", ["c"])


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
        },
    ],
)
def test_an_error_in_the_stream_is_typed(event: dict[str, Any]) -> None:
    """However it is written, a rate limit is one."""
    error = fault(_stream(event), a_call(RESPONSES), lambda _: None)
    assert (error.kind, "slow down" in str(error)) == ("rate_limited", True)


def test_a_failed_response_is_an_error() -> None:
    """Answered whole, it has the error in it."""
    body = {"status": "failed", "error": {"code": "server_error", "message": "broke"}, "output": []}
    assert fault(Answer(raw=json.dumps(body).encode()), a_call(RESPONSES)).kind == "overloaded"


def test_a_stream_without_its_last_event_was_cut() -> None:
    """Text alone is not a reply."""
    events = {"type": "response.output_text.delta", "output_index": 0, "delta": "hi"}
    assert fault(_stream(events), a_call(RESPONSES), lambda _: None).transient


@pytest.mark.parametrize(
    ("url", "name", "path"),
    [
        ("", "gpt-4o", "openai_responses"),
        ("https://eu.api.openai.com/v1", "gpt-4o", "openai_responses"),
        ("http://127.0.0.1:1/v1", "gpt-6-sol", "openai_responses"),
        ("http://127.0.0.1:1/v1", "gpt-4o", "openai_chat"),
        ("http://127.0.0.1:1/v1", "llama", "openai_chat"),
    ],
)
def test_openai_is_called_by_responses(url: str, name: str, path: str) -> None:
    """OpenAI itself always; behind another address the models that only OpenAI has."""
    env = {**environment("http://127.0.0.1:1"), "OPENAI_BASE_URL": url}
    assert Models({}, env).wire(f"openai:{name}") == path


@pytest.mark.parametrize("streaming", [False, True])
def test_reasoning_goes_through_three_tool_turns(streaming: bool) -> None:
    """Each turn's encrypted reasoning goes back before its calls, as it came, and the whole history stays."""
    messages: list[Message] = [user("1+1+1+1?")]
    sent: list[list[dict[str, Any]]] = []
    for turn in range(3):
        tools = (("add", {"a": turn}), ("add", {"a": 9}))
        answer = Answer(thinking=f"Thought {turn}.", tools=tools, streams=streaming)
        reply, seen = ask(answer, a_call(GPT, *messages, tools=(ADD,)))
        sent.append(seen.body["input"])
        messages += [reply.as_message(), *(tool_result(request, "2") for request in reply.tool_calls)]
    _, seen = ask(Answer(text="4"), a_call(GPT, *messages, tools=(ADD,)))
    items = seen.body["input"]
    kinds = ["reasoning", "function_call", "function_call", "function_call_output", "function_call_output"]
    assert [item.get("type", "message") for item in items] == ["message", *kinds * 3]
    assert [i["encrypted_content"] for i in items if i.get("type") == "reasoning"] == [
        f"Thought {turn}. (encrypted 1)" for turn in range(3)
    ]
    for before in sent:
        assert items[: len(before)] == before
