"""Effects and results are JSON values; a fingerprint says what was asked and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from chargehand.values.base import Value
from chargehand.values.effect import ModelCall, ModelResult, Question, ToolCall, ToolResult
from chargehand.values.key import Key
from chargehand.values.message import Message, Reply, TokenCount, ToolRequest, ToolSpec, system, tool_result, user
from chargehand.values.outcome import Fault

SPEC = ToolSpec(
    name="look", description="Looks.", parameters={"type": "object", "properties": {"x": {"type": "string"}}}
)
WISH = ToolRequest(id="c1", name="look", arguments={"x": "é\n", "deep": [1, None, {"y": 0.5}]}, raw="{}")
CALL = ModelCall(
    role="worker",
    worker="ann",
    model="provider:name",
    messages=(
        system("rules"),
        user("task"),
        Message(role="assistant", tool_calls=(WISH,), opaque=({"thinking": "x"},)),
        tool_result(WISH, "seen", failed=True),
    ),
    tools=(SPEC,),
    output_schema={"type": "object"},
    options={"temperature": 0.2},
    output_cap=100,
)
REPLY = Reply(
    text="hello",
    tool_calls=(WISH,),
    stop="tools",
    usage=TokenCount(input_tokens=3, output_tokens=2, cached_tokens=1),
    model="m",
)
VALUES: list[Value] = [
    CALL,
    ToolCall(worker="ann", tool="look", arguments={"x": [1, {"y": None}]}, effect="read"),
    ModelResult(reply=REPLY, usd=0.01, seconds=1.5, waiting_s=0.5),
    ModelResult(error=Fault(kind="rate_limited", message="busy")),
    ToolResult(text="seen", reads={"file": "hash"}, seconds=0.1),
    ToolResult(error=Fault(kind="in_doubt", message="who knows")),
    Question(id="q1", kind="escalation", prompt="Which?", answer_schema={"type": "string"}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_every_effect_and_result_survives_json(value: Value) -> None:
    """Through text and back it is the same value, also without its defaults, as the record keeps results."""
    assert type(value).model_validate(json.loads(json.dumps(value.to_json()))) == value
    short = value.model_dump(mode="json", exclude_defaults=True)
    assert type(value).model_validate(json.loads(json.dumps(short))) == value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_every_effect_and_result_is_frozen_and_closed(value: Value) -> None:
    """No field can be set, and no unknown one is let in."""
    with pytest.raises(ValidationError):
        setattr(value, next(iter(type(value).model_fields)), "other")
    with pytest.raises(ValidationError):
        type(value).model_validate(value.to_json() | {"surprise": 1})


def test_a_fingerprint_survives_json() -> None:
    """The value read back asks the same."""
    assert ModelCall.model_validate(CALL.to_json()).fingerprint == CALL.fingerprint


@pytest.mark.parametrize("change", [{"output_cap": 7}, {"role": "critic"}, {"worker": "bob"}])
def test_clamps_and_attribution_are_not_part_of_a_fingerprint(change: dict[str, Any]) -> None:
    """Who asks and how much may be answered does not change the question."""
    assert CALL.model_validate(CALL.to_json() | change).fingerprint == CALL.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"model": "provider:other"},
        {"messages": [{"role": "user", "text": "another task"}]},
        {"messages": list(reversed(CALL.to_json()["messages"]))},
        {"tools": []},
        {"tool_choice": "none"},
        {"tools": [SPEC.to_json() | {"description": "Looks closely."}]},
        {"output_schema": None},
        {"output_schema": {"type": "array"}},
        {"options": {"temperature": 0.3}},
        {"options": {}},
    ],
)
def test_what_is_asked_is_the_fingerprint(change: dict[str, Any]) -> None:
    """Model, messages and their order, tools, schema, explicit options: another of these is another call."""
    assert CALL.model_validate(CALL.to_json() | change).fingerprint != CALL.fingerprint


def test_text_moved_between_messages_is_another_question() -> None:
    """Parts do not run into each other."""
    one = CALL.model_copy(update={"messages": (user("ab"), user("c"))})
    two = CALL.model_copy(update={"messages": (user("a"), user("bc"))})
    assert ModelCall.model_validate(one.to_json()).fingerprint != ModelCall.model_validate(two.to_json()).fingerprint


def test_the_same_question_about_another_conversation_is_as_if_made_anew() -> None:
    """Nothing of the call it was made from is left in it but what they have in common."""
    assert CALL.fingerprint, "known before, and not taken over"
    about = CALL.about([user("else")])
    fresh = ModelCall.model_validate(about.to_json())
    assert about == fresh
    assert about.fingerprint == fresh.fingerprint != CALL.fingerprint
    assert about.packed_tools is CALL.packed_tools


def test_a_tool_calls_fingerprint_is_its_tool_and_arguments() -> None:
    """Not who called it, nor what it does to the world."""
    call = ToolCall(worker="ann", tool="look", arguments={"x": 1}, effect="read")
    assert call.fingerprint == ToolCall(worker="bob", tool="look", arguments={"x": 1}, effect="once").fingerprint
    assert call.fingerprint != ToolCall(worker="ann", tool="look", arguments={"x": 2}).fingerprint
    assert call.fingerprint != ToolCall(worker="ann", tool="peek", arguments={"x": 1}).fingerprint


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("t3/2/model/4", ("t3", 2)),
        ("t3/1/tool/4.1", ("t3", 1)),
        ("t3/once/send/ab", ("t3", None)),
        ("x1.t1/1/model/1", ("x1.t1", 1)),
        ("@plan/1", (None, None)),
    ],
)
def test_a_key_says_where_it_belongs(key: str, expected: tuple[str | None, int | None]) -> None:
    """Task and attempt are read off the key; the supervisor's own keys have neither."""
    assert Key.parse(key)[1:] == expected
