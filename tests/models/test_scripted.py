"""The scripted model answers by the first rule that fits; a script that is wrong says where."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from chargehand.errors import ErrorKind, ModelError, UsageError
from chargehand.models import Attribution
from chargehand.models.scripted import ScriptedModel
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, system, user
from chargehand.values.role import Role


def _ask(
    model: ScriptedModel, text: str = "hello", *, task: str | None = "t1", attempt: int = 1, on_text: Any = None
) -> Reply:
    call = ModelCall(role="worker", worker="w", model="scripted:x", messages=(system("Be brief."), user(text)))
    who = Attribution(run="r", task=task, attempt=attempt, role="worker", idempotency_key="k")
    return asyncio.run(model.complete(call, 100, who, on_text))


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        ({}, True),
        ({"role": "worker"}, True),
        ({"role": "planner"}, False),
        ({"task": "t1"}, True),
        ({"task": "t2"}, False),
        ({"worker": "w"}, True),
        ({"worker": "v"}, False),
        ({"attempt": 1}, True),
        ({"attempt": 2}, False),
        ({"contains": "brief.\nhel"}, True),
        ({"contains": "Hello"}, False),
        ({"role": "worker", "task": "t1", "worker": "w", "attempt": 1, "contains": "hello"}, True),
        ({"role": "worker", "task": "t1", "worker": "w", "attempt": 1, "contains": "bye"}, False),
    ],
)
def test_a_rule_matches_when_all_of_it_does(when: dict[str, Any], matches: bool) -> None:
    """Role, task, worker, attempt and contained text must all fit; what is left out fits anything."""
    model = ScriptedModel([{"when": when, "reply": {"text": "first"}}, {"reply": {"text": "second"}}])
    assert _ask(model).text == ("first" if matches else "second")


def test_rules_in_python_have_the_shape_of_a_file_or_are_a_list() -> None:
    """What is neither is an error in the words of Python."""
    assert _ask(ScriptedModel({"replies": [{"reply": {"text": "a"}}]})).text == "a"
    for wrong, said in ((["hi"], "ScriptedModel(["), ("replies.json", "ScriptedModel.load"), (7, "ScriptedModel([")):
        with pytest.raises(UsageError) as caught:
            ScriptedModel(cast("Any", wrong))
        assert said in str(caught.value)
    assert repr(ScriptedModel([])) == "<ScriptedModel, rules: 0, calls: 0>"


def test_a_rule_answers_as_often_as_it_says() -> None:
    """After `times` answers the next rule that matches takes over."""
    model = ScriptedModel([{"reply": {"text": "a"}, "times": 2}, {"reply": {"text": "b"}}])
    assert [_ask(model).text for _ in range(4)] == ["a", "a", "b", "b"]


def test_no_rule_left_prints_the_request() -> None:
    """The error names role, task, worker and attempt, and shows the request's texts."""
    model = ScriptedModel([{"when": {"role": "planner"}, "reply": {"text": "x"}}], source="demo.json")
    with pytest.raises(ModelError) as caught:
        _ask(model, "what was asked", attempt=3)
    assert caught.value.kind == "bad_request"
    for part in ("demo.json", "role=worker", "task=t1", "worker=w", "attempt=3", "Be brief.", "what was asked"):
        assert part in str(caught.value)


@pytest.mark.parametrize("role", ["planner", "router", "synthesizer"])
def test_rules_in_python_that_do_not_match_name_the_rule_to_add(role: Role) -> None:
    """They were written for this test, not for others; what the call does not have is not named."""
    call = ModelCall(role=role, model="scripted:x", messages=(user("what was asked"),))
    who = Attribution(run="r", task=None, attempt=None, role=role, idempotency_key="k")
    with pytest.raises(ModelError) as caught:
        asyncio.run(ScriptedModel([]).complete(call, 100, who))
    first = str(caught.value).partition("\n")[0]
    assert f'{{"when": {{"role": "{role}"}}, "reply": ' in first
    assert "None" not in first
    assert "others" not in first
    assert "what was asked" in str(caught.value)


def test_json_and_tool_calls_become_a_reply() -> None:
    """`json` is dumped to text; tool calls get ids and stop the turn for tools."""
    model = ScriptedModel(
        [
            {"reply": {"json": {"a": [1, "ü"]}}, "times": 1},
            {"reply": {"json": None}, "times": 1},
            {"reply": {"text": "Looking.", "tool_calls": [{"name": "f", "arguments": {"x": 1}}, {"name": "g"}]}},
        ]
    )
    assert json.loads(_ask(model).text) == {"a": [1, "ü"]}
    assert _ask(model).text == "null"
    reply = _ask(model)
    assert (reply.text, reply.stop) == ("Looking.", "tools")
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("f", {"x": 1}), ("g", {})]
    assert len({c.id for c in reply.tool_calls}) == 2
    assert _ask(model) == reply


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "rate_limited"), (503, "overloaded"), (401, "auth"), (400, "bad_request"), (413, "context_too_long")],
)
def test_an_error_rule_raises_what_the_status_means(status: int, kind: ErrorKind) -> None:
    """A scripted status has the kind it has from a real provider, with its Retry-After."""
    model = ScriptedModel([{"reply": {"error": {"status": status, "retry_after": 2.5}}}])
    with pytest.raises(ModelError) as caught:
        _ask(model)
    assert (caught.value.kind, caught.value.status, caught.value.retry_after) == (kind, status, 2.5)


def test_usage_is_estimated_alike_every_time_unless_given() -> None:
    """The estimate comes from lengths alone; a rule may state its own."""
    given = {"input_tokens": 9, "output_tokens": 8, "cached_tokens": 7}
    model = ScriptedModel([{"reply": {"text": "x"}, "usage": given, "times": 1}, {"reply": {"text": "x" * 400}}])
    assert _ask(model).usage == TokenCount(**given)
    first, second = _ask(model).usage, _ask(model).usage
    assert first == second
    assert first is not None
    assert first.output_tokens == 100
    assert first.input_tokens > 0


def test_a_streamed_script_gives_the_text_in_pieces() -> None:
    """The pieces joined are the text, spaces and line breaks included."""
    pieces: list[str] = []
    reply = _ask(ScriptedModel([{"reply": {"text": " One two\n\nthree "}}]), on_text=pieces.append)
    assert len(pieces) > 2
    assert "".join(pieces) == reply.text == " One two\n\nthree "


def test_calls_are_kept() -> None:
    """What was asked, by whom, in order."""
    model = ScriptedModel([{"reply": {"text": "x", "stop": "length"}}])
    assert _ask(model, "one", task="a").stop == "length"
    _ask(model, "two", task="b")
    assert [(call.messages[-1].text, who.task) for call, who in model.calls] == [("one", "a"), ("two", "b")]


def test_a_delay_is_slept_on_the_loop() -> None:
    """The delay goes through asyncio.sleep, so virtual time covers it: two delayed calls overlap."""
    model = ScriptedModel([{"reply": {"text": "x"}, "delay_ms": 30}])

    async def main() -> float:
        call = ModelCall(role="worker", model="scripted:x", messages=(user("u"),))
        who = Attribution("r", None, None, "worker", "k")
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(model.complete(call, 1, who) for _ in range(50)))
        return asyncio.get_running_loop().time() - began

    assert 0.029 <= asyncio.run(main()) < 1


def test_a_file_is_read_once_and_answers(tmp_path: Path) -> None:
    """A script file gives the same model as its rules in memory."""
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"replies": [{"reply": {"text": "from file"}}]}))
    assert _ask(ScriptedModel.load(script)).text == "from file"
    assert _ask(ScriptedModel.load(str(script))).text == "from file"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "has the wrong shape: the file should be an object."),
        ("", "is empty"),
        ("{}", "replies: Field required"),
        ('{"replies": [{"rply": {"text": "x"}}]}', "did you mean reply?"),
        ('{"replies": [{"reply": {"text": "x"}, "when": {"wroker": "w"}}]}', "unknown key replies.0.when.wroker"),
        ('{"replies": [{"reply": {"text": "x"}, "when": {"role": "wroker"}}]}', "did you mean worker?"),
        ('{"replies": [{"reply": {}}]}', "needs one of text, json, tool_calls, error"),
        ('{"replies": [{"reply": {"text": 3}}]}', "replies.0.reply.text"),
        ('{"replies": [{"reply": {"error": {}}}]}', "replies.0.reply.error.status"),
        ('{"replies": [{"reply": {"text": "x"}, "times": 0}]}', "replies.0.times"),
        (
            '{"replies": [{"reply": {"tool_calls": [{"name": "escalate", "arguments": {"reason": "bored"}}]}}]}',
            "replies.0.reply.tool_calls.0: escalate has the reason 'bored'",
        ),
    ],
)
def test_a_wrong_file_says_where(tmp_path: Path, content: str, said: str) -> None:
    """The file, the place and the shape it should have are named."""
    script = tmp_path / "s.json"
    script.write_text(content)
    with pytest.raises(UsageError) as caught:
        ScriptedModel.load(script)
    assert said in str(caught.value)
    assert "s.json" in str(caught.value)
    assert '{"replies": [' in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A script that is not there is a usage error."""
    with pytest.raises(UsageError, match=r"The script .*absent\.json cannot be read"):
        ScriptedModel.load(tmp_path / "absent.json")
