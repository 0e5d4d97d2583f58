"""The providers' own clients talk to the loopback server: what the other tests run against speaks the protocol."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.loopback import Answer, error, serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import anthropic
    import openai

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
