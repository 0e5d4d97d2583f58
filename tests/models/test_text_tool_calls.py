"""Tool calls written into a reply's text are calls when they name one of the request's tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.models.text_tool_calls import read_calls_in_text
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest, ToolSpec, user
from tests.loopback import Answer
from tests.models.asking import OPENAI, a_call, ask

ADD = ToolSpec(name="add", description="Adds.")
CALL = '{"name": "add", "arguments": {"a": 1}}'


def _read(text: str, **more: object) -> tuple[str, list[tuple[str, object]]]:
    call = ModelCall(role="worker", model="local:m", messages=(user("u"),), tools=(ADD,))
    reply = read_calls_in_text(Reply.model_validate({"text": text, **more}), call)
    return reply.text, [(request.name, request.arguments) for request in reply.tool_calls]


@pytest.mark.parametrize(
    ("text", "rest", "number"),
    [
        (f"<tool_call>\n{CALL}\n</tool_call>", "", 1),
        (f"I add.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", "I add.", 2),
        (f"<tool_call>{CALL}", "", 1),
        (f"Sure:\n```json\n{CALL}\n```\nWait.", "Sure:\n\nWait.", 1),
        (f"```\n[{CALL}, {CALL}]\n```", "", 2),
        (f"```tool_call\n{CALL}\n", "", 1),
        (f"  {CALL}\n", "", 1),
        (f"[{CALL}]", "", 1),
        ('{"name": "add", "parameters": {"a": 1}}', "", 1),
        ('{"type": "function", "name": "add", "arguments": "{\\"a\\": 1}"}', "", 1),
        ("<tool_call>{'name': 'add', 'arguments': {'a': 1}}</tool_call>", "", 1),
    ],
)
def test_a_call_in_the_text_is_a_call(text: str, rest: str, number: int) -> None:
    """Tags, fences and the bare object, one or several, closed or cut; what is around it stays as text."""
    assert _read(text) == (rest, [("add", {"a": 1})] * number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```json\n",
        "Plain words.",
        '```json\n{"name": "other", "arguments": {}}\n```',
        '```json\n{"name": "add"}\n```',
        '```json\n{"name": "add", "arguments": [1]}\n```',
        '```json\n{"name": "add", "arguments": {}, "summary": "s"}\n```',
        "```json\n[]\n```",
        "```python\nadd(1)\n```",
        '{"summary": "s", "output": "<tool_call>{\\"name\\": \\"add\\", \\"arguments\\": {}}</tool_call>"}',
        f'{{"summary": "s", "output": "```\\n{{}}\\n```"}} {CALL[:5]}',
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    """Another name, other fields, no object of arguments, or an answer that quotes a call."""
    assert _read(text) == (text, [])


def test_only_a_plain_end_is_looked_into() -> None:
    """A reply with calls of its own, or one that was cut, is left as it is; so is one that may not call tools."""
    own = ToolRequest(id="c", name="add", arguments={})
    assert _read(CALL, tool_calls=(own,), stop="tools") == (CALL, [("add", {})])
    assert _read(CALL, stop="length") == (CALL, [])
    call = ModelCall(role="worker", model="local:m", messages=(user("u"),), tools=(ADD,), tool_choice="none")
    assert not read_calls_in_text(Reply(text=CALL), call).tool_calls


@given(st.lists(st.sampled_from(["```", "<tool_call>", "</tool_call>", "\n", CALL, "x", "{", "json"]), max_size=30))
def test_any_mixture_of_marks_is_read(pieces: list[str]) -> None:
    """Nothing is raised, and text is only ever taken out."""
    text = "".join(pieces)
    rest, calls = _read(text)
    assert len(rest) <= len(text)
    assert all(name == "add" for name, _ in calls)


def test_a_server_that_leaves_calls_in_the_text_is_understood() -> None:
    """Over HTTP: the reply has the call, and sent back it is one."""
    reply, _ = ask(Answer(text=f"<tool_call>{CALL}</tool_call>"), a_call(OPENAI, tools=(ADD,)))
    assert (reply.text, reply.stop, reply.tool_calls[0].arguments) == ("", "tools", {"a": 1})
    _, seen = ask(Answer(text="ok"), a_call(OPENAI, user("u"), reply.as_message(), tools=(ADD,)))
    assert seen.body["messages"][1]["tool_calls"][0]["function"]["name"] == "add"
