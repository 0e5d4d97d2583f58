"""The wire formats over real HTTP: what a neutral call becomes, and what comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import Profile
from chargehand.values.message import Message, Reply, TokenCount, ToolRequest, ToolSpec, system, tool_result, user
from tests.loopback import Answer, whole
from tests.models.asking import ALL, ANTHROPIC, KEY, OPENAI, RESPONSES, a_call, ask

ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
CLOSED = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
# Any keys: no strict mode can say that.
OPEN = {"type": "object", "properties": {"output": {"type": "object"}}}


@pytest.mark.parametrize("model", ALL)
def test_a_plain_reply_has_text_usage_and_model(model: str) -> None:
    """Text, stop, usage with cached tokens and the model's name come back in neutral form."""
    reply, seen = ask(Answer(text="hi", usage=(12, 7, 5)), a_call(model))
    name = model.partition(":")[2]
    assert reply == Reply(text="hi", usage=TokenCount(input_tokens=12, output_tokens=7, cached_tokens=5), model=name)
    assert seen.body["model"] == name


@pytest.mark.parametrize("model", ALL)
def test_calls_of_one_agent_do_not_run_into_each_other(model: str) -> None:
    """Sent one after the other, calls that share a part of them are each what they would be alone."""
    shapes: list[dict[str, Any]] = [
        {"tools": (ADD,), "output_schema": CLOSED},
        {"tools": (ADD,), "output_schema": CLOSED, "tool_choice": "none"},
        {"tools": (ADD,), "output_schema": OPEN},
        {"output_schema": OPEN, "options": {"temperature": 0.5}},
        {},
    ]
    opening = system("Be brief.")
    for shape in shapes * 2:
        call = a_call(model, opening, user("Say hi."), **shape)
        _, seen = ask(Answer(text="hi"), call)
        body = json.dumps(seen.body)
        assert ("Adds." in body) == bool(call.tools)
        assert (seen.body.get("tool_choice") in ("none", {"type": "none"})) == (call.tool_choice == "none")
        assert ('"required"' in body or '\\"required\\"' in body) == (call.output_schema == CLOSED)
        assert seen.body["temperature"] == call.options.get("temperature", 0)
        assert body.count("Be brief.") == body.count("Say hi.") == 1


@pytest.mark.parametrize("model", ALL)
def test_a_streamed_reply_equals_the_plain_one(model: str) -> None:
    """The pieces joined are the text; a server that does not stream gives the same tool calls, usage and stop."""
    answer = Answer(text="The answer is: forty-two ✓", tools=(("add", {"a": 1, "b": ["ü", None]}), ("add", {})))
    pieces: list[str] = []
    streamed, seen = ask(replace(answer, drip=0.001), a_call(model, tools=(ADD,)), pieces.append)
    plain, _ = ask(lambda asked: Answer(raw=json.dumps(whole(asked, answer)).encode()), a_call(model, tools=(ADD,)))
    assert seen.body["stream"] is True
    assert len(pieces) > 2
    assert "".join(pieces) == plain.text
    assert streamed == plain


@pytest.mark.parametrize("model", ALL)
def test_the_request_carries_attribution_and_the_key_where_it_belongs(model: str) -> None:
    """Idempotency key, run, task, attempt and role are headers; the key is in the provider's own auth header."""
    _, seen = ask(Answer(text="hi"), a_call(model))
    headers = seen.headers
    assert headers["idempotency-key"] == "r1/t3/2/model/4"
    marks = [headers[f"x-chargehand-{name}"] for name in ("run", "task", "attempt", "role")]
    assert marks == ["r1", "t3", "2", "worker"]
    auth = headers["x-api-key"] if model == ANTHROPIC else headers["authorization"].removeprefix("Bearer ")
    assert auth == KEY
    paths = {OPENAI: "/v1/chat/completions", RESPONSES: "/v1/responses", ANTHROPIC: "/v1/messages"}
    assert seen.path == paths[model]


@pytest.mark.parametrize("model", ALL)
def test_the_same_call_sends_the_same_bytes(model: str) -> None:
    """A repeat is byte-identical."""
    call = a_call(model, system("s"), tools=(ADD,), output_schema=OPEN, options={"user": "u"})
    assert ask(Answer(text="hi"), call)[1].raw == ask(Answer(text="hi"), call)[1].raw


@pytest.mark.parametrize("model", ALL)
def test_options_are_passed_as_given_and_nothing_else(model: str) -> None:
    """Options appear only when the call has them; the temperature is 0 where nobody set another."""
    _, bare = ask(Answer(text="hi"), a_call(model))
    _, given = ask(Answer(text="hi"), a_call(model, options={"temperature": 0.3, "top_p": 0.9}))
    assert "top_p" not in bare.body
    assert bare.body["temperature"] == 0
    assert (given.body["temperature"], given.body["top_p"]) == (0.3, 0.9)


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "openai:o3", "anthropic:claude-opus-5-5"])
def test_sampling_is_not_sent_to_models_that_refuse_it(model: str) -> None:
    """Reasoning models answer 400 to temperature, so it stays here; other options go out."""
    _, seen = ask(Answer(text="hi"), a_call(model, options={"temperature": 0.3, "metadata": {"user_id": "u"}}))
    assert "temperature" not in seen.body
    assert seen.body["metadata"] == {"user_id": "u"}


@pytest.mark.parametrize("model", ALL)
def test_a_tool_call_comes_back_with_its_arguments(model: str) -> None:
    """A wish to call a tool is a ToolRequest with an object of arguments, and the stop says so."""
    reply, _ = ask(Answer(tools=(("add", {"a": 1}),)), a_call(model, tools=(ADD,)))
    assert reply.stop == "tools"
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("add", {"a": 1})]


def _tool_round(model: str) -> dict[str, Any]:
    good = ToolRequest(id="c1", name="add", arguments={"a": 1})
    bad = ToolRequest(id="c2", name="add", arguments=None, raw="{")
    said = Reply(text="Let me add.", tool_calls=(good, bad)).as_message()
    results = (tool_result(good, "2"), tool_result(bad, "not an object", failed=True))
    _, seen = ask(Answer(text="2"), a_call(model, system("Be brief."), user("1+1?"), said, *results, tools=(ADD,)))
    return seen.body


def test_a_tool_round_in_chat_completions() -> None:
    """Calls go back as they were written, results as tool messages in order."""
    body = _tool_round(OPENAI)
    assert body["tools"][0]["function"]["name"] == "add"
    _, _, said, first, second = body["messages"]
    assert [c["function"] for c in said["tool_calls"]] == [
        {"name": "add", "arguments": '{"a":1}'},
        {"name": "add", "arguments": "{"},
    ]
    assert first == {"role": "tool", "tool_call_id": "c1", "content": "2"}
    assert second["content"] == "not an object"
    assert body["max_tokens"] == 500


def test_a_tool_round_in_messages() -> None:
    """All results stand in one user turn, failures marked; prefix and newest turn are marked for the cache."""
    body = _tool_round(ANTHROPIC)
    question, said, results = body["messages"]
    assert question == {"role": "user", "content": [{"type": "text", "text": "1+1?"}]}
    assert [b["type"] for b in said["content"]] == ["text", "tool_use", "tool_use"]
    assert said["content"][2]["input"] == {}
    assert [b["tool_use_id"] for b in results["content"]] == ["c1", "c2"]
    assert [b.get("is_error") for b in results["content"]] == [None, True]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert results["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["max_tokens"] == 500


@pytest.mark.parametrize(("characters", "marked"), [(5_000, True), (4_095, False), (0, False)])
def test_what_tasks_share_is_marked_where_it_ends(characters: int, marked: bool) -> None:
    """Long enough to be kept, it is a block of its own with a mark; other wires have one text."""
    shared = "m" * characters
    message = user(f"{shared}Task t1", shared=characters)
    content = ask(Answer(text="hi"), a_call(ANTHROPIC, message))[1].body["messages"][0]["content"]
    assert "".join(block["text"] for block in content) == message.text
    assert [block.get("cache_control") for block in content] == ([{"type": "ephemeral"}, None] if marked else [None])
    assert ask(Answer(text="hi"), a_call(OPENAI, message))[1].body["messages"][0]["content"] == message.text


def test_tools_without_a_system_prompt_are_the_cached_prefix() -> None:
    """With no system prompt the last tool carries the cache mark."""
    _, seen = ask(Answer(text="hi"), a_call(ANTHROPIC, tools=(ADD,)))
    assert seen.body["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "system" not in seen.body


@pytest.mark.parametrize("streaming", [False, True])
def test_what_a_server_adds_to_calls_and_messages_goes_back(streaming: bool) -> None:
    """Signatures in tool calls and what was reasoned come back as they were, through three tool turns."""
    messages: list[Message] = [user("1+1?")]
    for turn in range(3):
        answer = Answer(
            thinking=f"Thought {turn}.", signature=f"sig-{turn}", tools=(("add", {"a": turn}),), streams=streaming
        )
        reply, _ = ask(answer, a_call(OPENAI, *messages, tools=(ADD,)))
        messages += [reply.as_message(), tool_result(reply.tool_calls[0], "2")]
    _, seen = ask(Answer(text="4"), a_call(OPENAI, *messages, tools=(ADD,)))
    said = [message for message in seen.body["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in said] == [f"Thought {turn}." for turn in range(3)]
    signed = [message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] for message in said]
    assert signed == ["sig-0", "sig-1", "sig-2"]
    assert said[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":2}'}


def test_what_comes_in_pieces_is_put_together() -> None:
    """Texts are joined, parts found by their index, whatever comes whole stays whole."""
    details = [
        [{"type": "reasoning.text", "index": 0, "text": "Let ", "format": "f1"}],
        [
            {"type": "reasoning.text", "index": 0, "text": "me.", "format": "f1"},
            {"type": "reasoning.encrypted", "index": 1},
        ],
        [{"index": 0, "signature": "s=="}],
    ]
    deltas = [{"content": "", "reasoning_details": piece, "reasoning": "x"} for piece in details]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    reply, _ = ask(Answer(raw=body, headers={"Content-Type": "text/event-stream"}), a_call(OPENAI), lambda _: None)
    first = {"type": "reasoning.text", "index": 0, "text": "Let me.", "format": "f1", "signature": "s=="}
    parts = [first, {"type": "reasoning.encrypted", "index": 1}]
    assert reply.opaque == ({"reasoning_details": parts, "reasoning": "xxx"},)


def test_calls_that_share_an_id_get_their_own() -> None:
    """Results are told apart by id, so no two calls of a reply keep the same one."""
    calls = [{"id": "c", "function": {"name": "add", "arguments": "{}"}} for _ in range(3)]
    raw = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()
    assert [c.id for c in ask(Answer(raw=raw), a_call(OPENAI))[0].tool_calls] == ["c", "c_1", "c_2"]


@pytest.mark.parametrize("streaming", [False, True])
def test_thinking_goes_through_three_tool_turns(streaming: bool) -> None:
    """Each turn's thinking block is the first of its turn, with its signature, and none is lost on the way."""
    messages: list[Message] = [user("1+1?")]
    for turn in range(3):
        tools = (("add", {"a": turn}), ("add", {"a": 9}))
        answer = Answer(thinking=f"Thought {turn}.", tools=tools, streams=streaming)
        reply, _ = ask(answer, a_call(ANTHROPIC, *messages, tools=(ADD,)))
        messages += [reply.as_message(), *(tool_result(request, "2") for request in reply.tool_calls)]
    _, seen = ask(Answer(text="4"), a_call(ANTHROPIC, *messages, tools=(ADD,)))
    said = [message["content"] for message in seen.body["messages"] if message["role"] == "assistant"]
    assert [[block["type"] for block in turn] for turn in said] == [["thinking", "tool_use", "tool_use"]] * 3
    assert [(turn[0]["thinking"], turn[0]["signature"]) for turn in said] == [
        (f"Thought {turn}.", "sig==") for turn in range(3)
    ]


@pytest.mark.parametrize("streaming", [False, True])
def test_thinking_goes_back_unchanged(streaming: bool) -> None:
    """Thinking blocks are kept with their signature and stand first when the turn is sent again."""
    answer = Answer(thinking="Hmm, let me see.", text="2", tools=(("add", {"a": 1}),))
    reply, _ = ask(answer, a_call(ANTHROPIC), (lambda _: None) if streaming else None)
    block = {"type": "thinking", "thinking": "Hmm, let me see.", "signature": "sig=="}
    assert reply.opaque == (block,)
    again = (user("1+1?"), reply.as_message(), user("Sure?"))
    _, seen = ask(Answer(text="ok"), a_call(ANTHROPIC, *again, tools=(ADD,)))
    assert [b["type"] for b in seen.body["messages"][1]["content"]] == ["thinking", "text", "tool_use"]
    assert seen.body["messages"][1]["content"][0] == block


def test_a_turn_in_another_order_goes_back_in_that_order() -> None:
    """When thinking stands between other blocks, the whole turn is kept as it was."""
    content = [
        {"type": "text", "text": "a"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
    ]
    raw = json.dumps({"content": content, "stop_reason": "tool_use", "usage": {}}).encode()
    reply, _ = ask(Answer(raw=raw), a_call(ANTHROPIC))
    again = (user("1+1?"), reply.as_message(), user("Sure?"))
    _, seen = ask(Answer(text="ok"), a_call(ANTHROPIC, *again, tools=(ADD,)))
    assert seen.body["messages"][1]["content"] == content


def test_a_schema_in_chat_completions_is_strict_where_it_can_be() -> None:
    """A closed schema is held to strictly; an open one is a hint, or words for a server that makes a grammar of it."""
    for profile, schema, strict in (("other", CLOSED, True), ("other", OPEN, False), ("vllm", CLOSED, True)):
        wire = OpenAIChat(Profile(profile, grammar=profile == "vllm"))
        body = json.loads(wire.request(a_call(OPENAI, output_schema=schema), 500))
        wanted = {"name": "answer", "schema": schema, "strict": strict}
        assert body["response_format"] == {"type": "json_schema", "json_schema": wanted}
    body = json.loads(OpenAIChat(Profile("vllm", grammar=True)).request(a_call(OPENAI, output_schema=OPEN), 500))
    assert "response_format" not in body
    assert "JSON Schema" in body["messages"][0]["content"]


def test_other_servers_with_tools_are_told_the_schema_in_words() -> None:
    """A grammar for the answer would forbid tool calls, so with tools the schema is a system message."""
    _, seen = ask(Answer(text="{}"), a_call(OPENAI, system("s"), user("u"), output_schema=CLOSED, tools=(ADD,)))
    assert "response_format" not in seen.body
    assert [m["role"] for m in seen.body["messages"]] == ["system", "system", "user"]
    assert '"additionalProperties":false' in seen.body["messages"][1]["content"]


@pytest.mark.parametrize(("model", "none"), [(OPENAI, "none"), (RESPONSES, "none"), (ANTHROPIC, {"type": "none"})])
def test_tools_that_may_not_be_called_are_still_sent(model: str, none: object) -> None:
    """With tools and `none` a schema is native again; without tools there is nothing to choose."""
    _, seen = ask(Answer(text="{}"), a_call(model, tools=(ADD,), tool_choice="none", output_schema=CLOSED))
    assert seen.body["tool_choice"] == none
    assert len(seen.body["tools"]) == 1
    assert {"response_format", "output_config", "text"} & seen.body.keys()
    _, seen = ask(Answer(text="{}"), a_call(model, tools=(ADD,)))
    assert "tool_choice" not in seen.body
    _, seen = ask(Answer(text="{}"), a_call(model, tool_choice="none"))
    assert "tool_choice" not in seen.body


def test_openai_models_on_chat_completions_get_openai_fields() -> None:
    """By choice on this wire, they take max_completion_tokens, a schema beside tools, tools only without reasoning."""
    chat = {"wire": "openai_chat"}
    _, seen = ask(Answer(text="{}"), a_call("own:gpt-6-sol", output_schema=CLOSED, tools=(ADD,)), own=chat)
    assert seen.body["max_completion_tokens"] == 500
    assert "max_tokens" not in seen.body
    assert seen.body["reasoning_effort"] == "none"
    assert "response_format" in seen.body
    low = a_call("own:gpt-6-sol", tools=(ADD,), options={"reasoning_effort": "low"})
    assert ask(Answer(text="{}"), low, own=chat)[1].body["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("model", "schema", "native"),
    [
        ("anthropic:claude-sonnet-5-5", CLOSED, True),
        ("anthropic:claude-haiku-4-5-20251001", CLOSED, True),
        ("anthropic:claude-sonnet-4-5", OPEN, False),
        ("anthropic:claude-sonnet-4-20250514", CLOSED, False),
        ("anthropic:claude-3-5-haiku-latest", CLOSED, False),
        ("anthropic:other", CLOSED, False),
    ],
)
def test_a_schema_in_messages_is_native_where_it_can_be(model: str, schema: dict[str, Any], native: bool) -> None:
    """Models with structured outputs get a closed schema there; others get it in words after the system prompt."""
    call = a_call(model, system("s"), user("u"), output_schema=schema, options={"output_config": {"effort": "low"}})
    body = ask(Answer(text="{}"), call)[1].body
    assert ("format" in body["output_config"]) is native
    assert body["output_config"]["effort"] == "low"
    assert len(body["system"]) == (1 if native else 2)


@pytest.mark.parametrize(
    ("model", "said", "stop"),
    [
        (OPENAI, "stop", "end"),
        (OPENAI, "length", "length"),
        (OPENAI, "content_filter", "refused"),
        (RESPONSES, "completed", "end"),
        (RESPONSES, "max_output_tokens", "length"),
        (RESPONSES, "content_filter", "refused"),
        (ANTHROPIC, "end_turn", "end"),
        (ANTHROPIC, "stop_sequence", "end"),
        (ANTHROPIC, "max_tokens", "length"),
        (ANTHROPIC, "model_context_window_exceeded", "length"),
        (ANTHROPIC, "refusal", "refused"),
    ],
)
def test_each_stop_reason_has_its_meaning(model: str, said: str, stop: str) -> None:
    """A provider's stop reason becomes one of end, tools, length, refused."""
    assert ask(Answer(text="x", stop=said), a_call(model))[0].stop == stop
    assert ask(Answer(text="x", stop=said), a_call(model), lambda _: None)[0].stop == stop


def test_a_refusal_is_a_refused_reply() -> None:
    """Chat completions put a refusal in a field of its own; it becomes the text."""
    raw = b'{"choices": [{"message": {"content": null, "refusal": "I will not."}, "finish_reason": "stop"}]}'
    reply, _ = ask(Answer(raw=raw), a_call(OPENAI))
    assert (reply.stop, reply.text, reply.usage) == ("refused", "I will not.", None)


def test_loose_servers_are_understood() -> None:
    """Arguments as an object, content as parts, no id and a plain stop: what local servers send."""
    raw = (
        b'{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],'
        b' "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "g"}}]},'
        b' "finish_reason": "stop"}], "usage": {"prompt_tokens": null, "completion_tokens": 3}}'
    )
    reply, _ = ask(Answer(raw=raw), a_call(OPENAI))
    assert reply.text == "ab"
    assert [(c.id, c.arguments) for c in reply.tool_calls] == [("call_0", {"x": 1}), ("call_1", {})]
    assert reply.stop == "tools"
    assert reply.usage == TokenCount(output_tokens=3)


@pytest.mark.parametrize("written", ["{not json", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_kept_raw(written: str) -> None:
    """What the model wrote instead of an object is kept, so that it can be told."""
    calls = [{"id": "c", "function": {"name": "f", "arguments": written}}]
    raw = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()
    reply, _ = ask(Answer(raw=raw), a_call(OPENAI))
    assert (reply.tool_calls[0].arguments, reply.tool_calls[0].raw) == (None, written)


@pytest.mark.parametrize("model", ALL)
def test_a_server_that_does_not_stream_is_read_whole(model: str) -> None:
    """Asked to stream, a server may answer with one document; its text is one piece."""
    plain, seen = ask(Answer(text="hi"), a_call(model))
    pieces: list[str] = []
    reply, _ = ask(Answer(raw=json.dumps(whole(seen, Answer(text="hi"))).encode()), a_call(model), pieces.append)
    assert reply == plain
    assert pieces == ["hi"]


@pytest.mark.parametrize(
    ("written", "arguments", "raw"), [("", {}, ""), ("{oops", None, "{oops"), ("[1]", None, "[1]")]
)
def test_streamed_input_that_is_no_object_is_kept_raw(written: str, arguments: object, raw: str) -> None:
    """A streamed tool call without input has none; one that is not an object keeps what was written."""
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    sent = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": written}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "of_a_later_version"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in sent).encode()
    answer = Answer(raw=body, headers={"Content-Type": "text/event-stream"})
    reply, _ = ask(answer, a_call(ANTHROPIC), lambda _: None)
    assert (reply.tool_calls[0].arguments, reply.tool_calls[0].raw) == (arguments, raw)
    assert reply.usage is None


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("model", [OPENAI, "openai:gpt-6-sol", ANTHROPIC])
def test_a_turn_from_the_record_is_sent_byte_by_byte_as_the_first_time(model: str, streaming: bool) -> None:
    """Signatures, thinking blocks and encrypted reasoning survive being written down and read again."""
    tools = (("add", {"a": 1, "b": ["ü", None]}),)
    answer = Answer(thinking="Hm ü.", signature="sig==", text="Let me.", tools=tools, streams=streaming)
    reply, _ = ask(answer, a_call(model, tools=(ADD,)))
    stored = Reply.model_validate_json(json.dumps(reply.to_json()))
    assert stored == reply
    sent = [
        ask(
            Answer(text="ok"),
            a_call(model, user("u"), each.as_message(), tool_result(each.tool_calls[0], "2"), tools=(ADD,)),
        )
        for each in (reply, stored)
    ]
    assert sent[0][1].raw == sent[1][1].raw
    assert b"Hm" in sent[0][1].raw


@pytest.mark.parametrize("streamed", [False, True])
def test_what_else_a_reply_might_have_begun_with(streamed: bool) -> None:
    """Asked for by an option; a server that says nothing of it, or nonsense, gives none."""
    top = [{"token": "false", "logprob": -0.2}, {"token": " possible", "logprob": -1.5}]
    said = {"content": [{"token": "false", "logprob": -0.2, "top_logprobs": top}]}
    reading = OpenAIChat(Profile("llamacpp"))

    def read(logprobs: object) -> dict[str, float]:
        choice = {"finish_reason": "stop", "logprobs": logprobs}
        if not streamed:
            return reading.reply({"choices": [{**choice, "message": {"content": "false"}}]}).first_words
        listener = reading.listen()
        listener.hear({"choices": [{"delta": {"content": "false"}, "logprobs": logprobs}]})
        listener.hear({"choices": [{"delta": {}, "finish_reason": "stop", "logprobs": None}]})
        reply = listener.reply()
        assert reply is not None
        return reply.first_words

    assert read(said) == {"false": -0.2, " possible": -1.5}
    assert [read(other) for other in (None, {}, {"content": []}, {"content": [{"token": "x"}]}, "odd")] == [{}] * 5
