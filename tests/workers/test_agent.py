"""An agent's conversation: what it is sent when no tool may be called any more, and what comes of bad replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from chargehand.engine.engine_session import EngineInputs
from chargehand.engine.local.engine import LocalEngine
from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.testing import run_virtual
from chargehand.tools import tool
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Task
from chargehand.workers import Assignment
from chargehand.workers.agent import Agent
from chargehand.workers.refuse_or_call_tool import AgentTool
from tests.kernel import MODEL, FunctionModel, engine, result, stored
from tests.loopback import Answer, Seen, serve
from tests.models.asking import ANTHROPIC, BOTH, environment

TASK = Task(id="t1", worker="ann", instruction="Find the number.", success_criterion="There is a number.")


@tool(effect="read")
def look(what: str = "") -> str:
    """Looks."""
    return f"seen {what}"


LOOK = AgentTool(spec=look.spec, effect="read")


def agent(model: str = MODEL, **fields: Any) -> Agent:
    tiers = (None, "small", "medium", "large")
    return Agent(
        "ann", fields.pop("description", "Finds."), "", dict.fromkeys(tiers, model), tools={"look": LOOK}, **fields
    )


def work(*replies: Reply | str, **fields: Any) -> tuple[Outcome, list[ModelCall], list[Event]]:
    """What comes of these replies, the calls that were made and the record."""
    waiting = list(replies)

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        said = waiting.pop(0)
        return Reply(text=said) if isinstance(said, str) else said

    model, store = FunctionModel(answer), MemoryStore()

    async def main() -> Outcome:
        async with engine(model, MemoryJournal(store), {"look": look}) as local:
            return await agent(**fields).work(Assignment(TASK, 1, {}), local)

    outcome, _ = run_virtual(main())
    assert not waiting
    return outcome, [call for call, _, _ in model.asked], stored(store)


def wish(arguments: dict[str, Any] | None = None, raw: str = "", stop: Any = "tools") -> Reply:
    request = ToolRequest(id="c1", name="look", arguments=arguments, raw=raw)
    return Reply(tool_calls=(request,), stop=stop)


def provided(handler: Callable[[Seen], Answer], model: str, **fields: Any) -> tuple[Outcome, list[Seen]]:
    """The same over real HTTP."""

    async def main() -> tuple[Outcome, list[Seen]]:
        async with serve(handler) as server:
            models = Models({}, environment(server.url))
            inputs = EngineInputs(run="run", journal=MemoryJournal(), models=models, tools={"look": look})
            async with LocalEngine(inputs) as local:
                outcome = await agent(model, **fields).work(Assignment(TASK, 1, {}), local)
            await models.close()
            return outcome, server.requests

    return asyncio.run(main())


@pytest.mark.parametrize("model", BOTH)
def test_the_last_step_keeps_the_tools_and_lets_none_be_called(model: str) -> None:
    """A provider refuses a history of tool calls without the tools; told `none`, it takes it."""

    def handler(seen: Seen) -> Answer:
        return Answer(tools=(("look", {}),)) if seen.number == 1 else Answer(text=result("42"))

    outcome, seen = provided(handler, model, max_steps=2)
    assert outcome.output == "42"
    assert [len(request.body["tools"]) for request in seen] == [2, 2]
    none = {"type": "none"} if model == ANTHROPIC else "none"
    assert [request.body.get("tool_choice") for request in seen] == [None, none]


@pytest.mark.parametrize("model", BOTH)
def test_the_re_ask_keeps_the_tools_and_lets_none_be_called(model: str) -> None:
    """After tool calls an unreadable answer is asked for again in a request the provider takes."""
    said = [Answer(tools=(("look", {}),)), Answer(text=EMPTY), Answer(text=result("42"))]
    outcome, seen = provided(lambda request: said[request.number - 1], model)
    assert outcome.output == "42"
    assert all(request.body["tools"] for request in seen)
    assert [request.body.get("tool_choice") is not None for request in seen] == [False, False, True]


def test_a_tool_call_where_none_may_be_called_is_not_made() -> None:
    """The attempt is over, as when the steps are used up."""
    outcome, _, record = work(wish({}), wish({}), max_steps=2)
    assert outcome.error is not None
    assert outcome.error.kind == "budget"
    assert [event.kind for event in record].count("tool_called") == 1


def test_steps_that_failing_calls_used_up_name_the_last_failure() -> None:
    """The reason is in the outcome; a call that succeeded since then takes it away."""
    wrong, right = wish({"waht": "x"}), wish({})
    outcome, _, _ = work(right, wrong, wrong, max_steps=3)
    assert outcome.error is not None
    assert "look failed: " in outcome.error.message
    assert "waht" in outcome.error.message
    outcome, _, _ = work(wrong, right, right, max_steps=3)
    assert outcome.error is not None
    assert "look" not in outcome.error.message


def test_a_mended_answer_is_not_asked_for_again() -> None:
    """The structured answer stands, and a warning says what was changed in it."""
    said = {"claims": [{"statement": "x", "confidence": 0.9}, 5], "confidence": 150}
    outcome, calls, record = work(result("o", **said))
    assert len(calls) == 1
    assert (outcome.output, outcome.confidence) == ("o", 100)
    assert [(claim.statement, claim.confidence, claim.sources) for claim in outcome.claims] == [("x", 90, ("t1",))]
    [warning] = [event for event in record if event.kind == "warning"]
    assert (warning.task, warning.attempt) == ("t1", 1)
    assert "claims[1] 5 left out" in warning.data["message"]
    assert "confidence 150 read as 100" in warning.data["message"]


def test_an_answer_in_order_has_no_warning() -> None:
    """A fraction for a confidence is ordinary."""
    _, _, record = work(result("o", confidence=0.8))
    assert [event for event in record if event.kind == "warning"] == []


EMPTY = json.dumps({"summary": "", "output": None})


@pytest.mark.parametrize("second", ["", EMPTY, "{}"])
@pytest.mark.parametrize("first", ["", EMPTY])
def test_an_empty_answer_is_asked_for_once_more_and_then_failed(first: str, second: str) -> None:
    """Nothing is never a result."""
    outcome, calls, _ = work(first, second)
    assert len(calls) == 2
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.kind == "criterion_not_met"
    assert "empty" in outcome.error.message or "required" in outcome.error.message


def test_words_survive_an_empty_second_answer() -> None:
    """Text is a result, at unknown confidence where nothing was read; only findings are asked for again."""
    outcome, calls, _ = work("It is 42.")
    assert (outcome.status, outcome.output, outcome.confidence, len(calls)) == ("done", "It is 42.", None, 1)
    outcome, calls, _ = work("It is 42.", EMPTY, description="Reports findings.")
    assert (outcome.status, outcome.output, len(calls)) == ("done", "It is 42.", 2)
    assert work(EMPTY, "It is 42.")[0].output == "It is 42."


def test_an_answer_cut_by_length_is_failed() -> None:
    """What there is of it is kept as a partial result."""
    outcome, calls, _ = work(Reply(text='{"summary": "s', stop="length"))
    assert len(calls) == 1
    assert (outcome.status, outcome.partial, outcome.output) == ("failed", True, '{"summary": "s')


@pytest.mark.parametrize("reply", [wish(None, '{"what": "a', "length"), wish({"what": "a"}, stop="length")])
def test_a_tool_call_cut_by_length_is_failed_and_not_made(reply: Reply) -> None:
    """Also when what there is of its arguments can be read: they may not be all."""
    outcome, calls, record = work(reply)
    assert len(calls) == 1
    assert outcome.error is not None
    assert outcome.error.kind == "contract"
    assert "look" in outcome.error.message
    assert "tool_called" not in [event.kind for event in record]


def test_broken_arguments_are_told_to_the_model() -> None:
    """A server that cuts a call without saying so: the call is refused, and the model may try again."""
    outcome, calls, record = work(wish(None, '{"what": "a'), result("42"))
    assert outcome.output == "42"
    assert "not a JSON object" in calls[1].messages[-1].text
    assert "tool_called" not in [event.kind for event in record]


@pytest.mark.parametrize("model", BOTH)
def test_a_provider_that_cuts_a_call_says_so(model: str) -> None:
    """Both wire formats: finished by length, with a call in it, is a failure."""
    stop = "max_tokens" if model == ANTHROPIC else "length"
    outcome, seen = provided(lambda _: Answer(tools=(("look", {}),), stop=stop), model)
    assert (outcome.status, len(seen)) == ("failed", 1)
