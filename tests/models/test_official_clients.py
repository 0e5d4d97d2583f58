"""The providers' own clients and request types check both directions.

They talk to the loopback server, so what the other tests run against speaks the protocol; and what chargehand sends
validates against their types, with no field that they do not know.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from pydantic import TypeAdapter

from chargehand.models.anthropic import Anthropic
from chargehand.models.http_model import Wire
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.openai_responses import OpenAIResponses
from chargehand.models.profiles import Profile
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest, ToolSpec, system, tool_result, user
from tests.lazy_module import LazyModule
from tests.loopback import Answer, Seen, error, events, serving, whole

anthropic, openai = LazyModule("anthropic"), LazyModule("openai")
message_create_params = LazyModule("anthropic.types.message_create_params")
completion_create_params = LazyModule("openai.types.chat.completion_create_params")
response_create_params = LazyModule("openai.types.responses.response_create_params")
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}
QUESTION: Any = [{"role": "user", "content": "Say hi."}]


def test_the_openai_client_understands_the_server() -> None:
    """Plain, tool call and stream by the official chat completions client."""
    answer = Answer(text="hello world", tools=(("add", {"a": 1}),), usage=(12, 7, 5))
    tools: Any = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
    with (
        serving(lambda _: answer) as server,
        openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        reply = client.chat.completions.create(model="m", messages=QUESTION, tools=tools)
        message = reply.choices[0].message
        assert message.content == "hello world"
        assert message.tool_calls is not None
        assert message.tool_calls[0].function.arguments == '{"a": 1}'
        assert reply.choices[0].finish_reason == "tool_calls"
        assert reply.usage is not None
        assert reply.usage.prompt_tokens_details.cached_tokens == 5

        options: Any = {"stream_options": {"include_usage": True}}
        chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True, **options))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "hello world"
        pieces = [t for c in chunks if c.choices for t in c.choices[0].delta.tool_calls or ()]
        assert "".join(p.function.arguments for p in pieces) == '{"a": 1}'
        assert chunks[-1].usage.completion_tokens == 7


@pytest.mark.slow
def test_the_openai_client_understands_responses_of_the_server() -> None:
    """Plain, reasoning, tool call and stream by the official Responses client, item by item."""
    answer = Answer(text="hello world", tools=(("add", {"a": 1}),), thinking="Hm.", usage=(12, 7, 5))
    tools: Any = [{"type": "function", "name": "add", "parameters": PARAMETERS, "strict": False}]
    with (
        serving(lambda _: answer) as server,
        openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        reply = client.responses.create(model="m", input=QUESTION, tools=tools, store=False)
        assert [item.type for item in reply.output] == ["reasoning", "message", "function_call"]
        assert reply.output_text == "hello world"
        assert reply.output[2].arguments == '{"a": 1}'
        assert reply.usage is not None
        assert reply.usage.input_tokens_details.cached_tokens == 5
        assert reply.usage.output_tokens_details.reasoning_tokens == 3

        with client.responses.stream(model="m", input=QUESTION, tools=tools, store=False) as stream:
            pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        assert "".join(pieces) == final.output_text == "hello world"
        assert final.output[0].encrypted_content == "Hm. (encrypted 2)"


def test_the_anthropic_client_understands_the_server() -> None:
    """Plain, tool call and stream by the official messages client."""
    answer = Answer(text="hello world", tools=(("add", {"a": 1}),), thinking="Hm.", usage=(12, 7, 5))
    tools: Any = [{"name": "add", "input_schema": PARAMETERS}]
    with (
        serving(lambda _: answer) as server,
        anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client,
    ):
        reply = client.messages.create(model="m", max_tokens=50, messages=QUESTION, tools=tools)
        assert [block.type for block in reply.content] == ["thinking", "text", "tool_use"]
        assert reply.stop_reason == "tool_use"
        assert reply.usage.cache_read_input_tokens == 5

        with client.messages.stream(model="m", max_tokens=50, messages=QUESTION, tools=tools) as stream:
            assert "".join(stream.text_stream) == "hello world"
            final = stream.get_final_message()
        assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
        assert final.content[2].input == {"a": 1}
        assert final.usage.output_tokens == 7


def test_both_clients_know_its_errors() -> None:
    """A rate limit is a rate limit to the official clients too."""
    with serving(lambda _: error(429, "slow down", code="rate_limit_error", Retry_After="3")) as server:
        with (
            openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
            pytest.raises(openai.RateLimitError, match="slow down"),
        ):
            client.chat.completions.create(model="m", messages=QUESTION)
        with (
            anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as other,
            pytest.raises(anthropic.RateLimitError, match="slow down"),
        ):
            other.messages.create(model="m", max_tokens=5, messages=QUESTION)


CLOSED: Any = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
# (wire, model, path, the type of a request)
WIRES: list[tuple[Wire, str, str, Any]] = [
    (
        OpenAIChat(Profile("openai")),
        "openai:gpt-4o",
        "/v1/chat/completions",
        lambda: completion_create_params.CompletionCreateParamsStreaming,
    ),
    (
        OpenAIResponses(),
        "openai:gpt-6-sol",
        "/v1/responses",
        lambda: response_create_params.ResponseCreateParamsStreaming,
    ),
    (
        Anthropic(),
        "anthropic:claude-sonnet-5-5",
        "/v1/messages",
        lambda: message_create_params.MessageCreateParamsStreaming,
    ),
]


def _read(value: Any) -> Any:
    """The validated value; parts that are checked only when they are read are read."""
    if isinstance(value, dict):
        return {name: _read(inner) for name, inner in value.items()}
    return value if value is None or isinstance(value, str | int | float) else [_read(inner) for inner in value]


def _heard(wire: Wire, model: str, path: str, answer: Answer, *, stream: bool) -> Reply:
    """What the wire reads out of what the server would send."""
    body = wire.request(ModelCall(role="worker", model=model, messages=(user("u"),)), 500)
    seen = Seen(1, 1, "POST", path, {}, body)
    if not stream:
        return wire.reply(whole(seen, answer))
    listener = wire.listen()
    for event in events(seen, answer):
        data = event.partition("data: ")[2]
        if data != "[DONE]":
            listener.hear(json.loads(data))
    reply = listener.reply()
    assert reply is not None
    return reply


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("wire", "model", "path", "types"), WIRES, ids=[model for _, model, _, _ in WIRES])
def test_requests_have_the_official_types(wire: Wire, model: str, path: str, types: Any, stream: bool) -> None:
    """A conversation of three tool turns with reasoning is valid and comes out of the validation as it went in."""
    thinking = None if path.endswith("completions") else "Hm."
    messages = [system("Be brief."), user("1+1?")]
    for turn in range(3):
        answer = Answer(text="Let me add.", thinking=thinking, tools=(("add", {"a": turn}),))
        reply = _heard(wire, model, path, answer, stream=stream)
        messages += [reply.as_message(), tool_result(reply.tool_calls[0], "2", failed=turn == 1)]
    wrong = ToolRequest(id="c9", name="add", arguments=None, raw="{")
    messages += [Reply(tool_calls=(wrong,)).as_message(), tool_result(wrong, "not an object", failed=True)]
    add = ToolSpec(name="add", description="Adds.", parameters=PARAMETERS)
    for choice in ("auto", "none"):
        call = ModelCall(
            role="worker", model=model, messages=tuple(messages), tools=(add,), tool_choice=choice, output_schema=CLOSED
        )
        body = json.loads(wire.request(call, 500))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert _read(TypeAdapter(types()).validate_python(body)) == body
