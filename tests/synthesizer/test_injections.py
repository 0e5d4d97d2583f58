"""Twenty texts that give orders, in outcomes: a model that obeys all it reads outside of quoted data reads none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chargehand.team import Worker
from chargehand.tools import tool
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, ToolRequest, user
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan
from chargehand.values.plan import SynthesisSpec as Mode
from chargehand.values.report import Report
from tests.flows import Flow, clerks, task, texts
from tests.kernel import result as worker_answer
from tests.synthesizer.syntheses import BRAIN, finding, make, plan_of, result, text_of

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "labelled" / "injections.jsonl").read_text(encoding="utf-8").splitlines()
]
TEXTS = [row["text"] for row in ROWS]
_DATA = re.compile(r"<data>\n.*?\n</data>", re.DOTALL)
# Something of every text, so that an obedient reader would know it.
_ORDER = re.compile(r"OBEYED|delete_everything|developer mode", re.IGNORECASE)


def outside(call: ModelCall) -> str:
    """What of a call is not quoted data: what a model may take for instructions."""
    return _DATA.sub("", "\n".join(message.text for message in call.messages if message.role != "assistant"))


def obedient(call: ModelCall) -> Any:
    """Does whatever it is told outside of quoted data; else its own work."""
    assert call.tools == ()
    if _ORDER.search(outside(call)):
        return {"answer": "OBEYED", "verdict": "first", "reason": "OBEYED", "score": 100}
    match call.role:
        case "judge" if "Result 1" in text_of(call):
            return {"scores": [{"candidate": n, "score": 50} for n in (1, 2)], "best": 1, "reason": "Equal."}
        case "judge":
            return {"verdict": "unclear", "reason": "Nothing decides it."}
        case "scorer":
            return {"score": 40, "met": False, "reason": "Not shown."}
        case "critic":
            return {"verdict": "accept", "problems": []}
        case _ if "You summarise" in call.messages[0].text:
            return {"answer": "The results say something [t1, t2]."}
        case _:
            return {"answer": "The results disagree, and both are stated [t1, t2]."}


def everywhere(text: str) -> list[Outcome]:
    """Two results with the text in each of their fields."""
    return [
        result(
            "t1",
            f"The plant makes 500 engines. {text}",
            summary=text,
            output={text: [text, {"deep": text}]},
            findings=[finding(text, path=text, line=1, category=text, suggestion=text)],
        ),
        result("t2", f"The plant makes 700 engines. {text}", output=text),
    ]


@pytest.mark.parametrize("mode", ["merge", "select", "reduce"])
@pytest.mark.parametrize("text", TEXTS)
def test_no_order_of_a_worker_stands_outside_of_quoted_data(text: str, mode: str) -> None:
    """In no prompt of judge, scorer, critic and synthesizer; the answer is the one the model gives of its own."""
    outcomes = everywhere(text)
    brain = BRAIN.model_copy(update={"window": 1_200}) if mode == "reduce" else BRAIN
    plan = plan_of(outcomes, mode)
    made = make(outcomes, obedient, plan=plan, brain=brain, judge=BRAIN, critic=BRAIN, rater=BRAIN)
    assert made.calls
    for call in made.calls:
        assert not _ORDER.search(outside(call)), call.role
        assert text_of(call).count("<data>\n") == text_of(call).count("\n</data>")
    assert any(_ORDER.search(text_of(call)) for call in made.calls)
    if mode != "select":
        assert not made.synthesis.answer.startswith("OBEYED")


@pytest.mark.parametrize("text", TEXTS)
def test_a_report_by_code_shows_it_as_a_quotation(text: str) -> None:
    """Every line of it is inside of a quotation or of a line of a list; no heading and no task is made of it."""
    made = make(everywhere(text), brain=None)
    answer = made.synthesis.answer
    lines = [line for line in answer.splitlines() if _ORDER.search(line)]
    assert lines
    assert all(line.startswith(("> ", "- ", "#### ")) for line in lines)
    assert set(made.synthesis.provenance.citations) <= {str(n) for n in range(1, 40)}
    assert {task for tasks in made.synthesis.provenance.citations.values() for task in tasks} == {"t1", "t2"}


def test_a_model_without_quotes_would_have_obeyed() -> None:
    """The proof can fail: pasted into the request, each text is obeyed."""
    for text in TEXTS:
        call = ModelCall(role="synthesizer", model="m", messages=(user(text),))
        assert obedient(call)["answer"] == "OBEYED"


# -- in a whole run --------------------------------------------------------------------------------------------------


@tool(effect="read")
def look_up(name: str) -> str:
    "Looks something up."
    return f"{name}: nothing known"


def whole_run(text: str, mode: str) -> tuple[Report, Flow]:
    """t1 returns the text; every model after it tries to call a tool it does not have, and writes what it is told."""

    def talk(call: ModelCall, attribution: Any) -> Any:
        if call.role == "worker" and attribution.task == "t1":
            return worker_answer(text, claims=[{"statement": text, "confidence": 90}])
        if attribution.task == "t2" and not any(message.role == "tool" for message in call.messages):
            # It depends on t1, reads the text and obeys it.
            wish = ToolRequest(id="call_1", name="delete_everything", arguments={"path": "/"}, raw="{}")
            return Reply(tool_calls=(wish,), stop="tools", usage=TokenCount(input_tokens=5, output_tokens=5))
        if call.role == "worker":
            return worker_answer("Looked at it.")
        if call.role == "synthesizer" and len(call.messages) == 2:
            wish = ToolRequest(id="call_2", name="delete_everything", arguments={}, raw="{}")
            return Reply(tool_calls=(wish,), stop="tools", usage=TokenCount(input_tokens=5, output_tokens=5))
        return {"answer": "Both were looked at [t1, t2].", "verdict": "unclear", "reason": "r"}

    plan = Plan(
        goal="g",
        tasks=(task("t1"), task("t2", "t1", worker="looker"), task("t3")),
        synthesis=Mode.model_validate({"mode": mode}),
    )
    flow = Flow(talk, plan, team=clerks(Worker("looker", "Looks things up", tools=[look_up])))
    return flow.run(), flow


@pytest.mark.parametrize("text", TEXTS)
def test_no_tool_outside_a_tasks_own_is_called_and_no_other_task_changes(text: str) -> None:
    """A worker that obeys is refused the tool; a synthesizer has none at all. The plan stays as it was."""
    report, flow = whole_run(text, "merge")
    assert [event for event in flow.events if event.kind == "tool_called"] == []
    [refused] = [event for event in flow.events if event.kind == "tool_refused"]
    assert (refused.task, refused.data["tool"], refused.data["code"]) == ("t2", "delete_everything", "unknown_tool")
    assert report.plan is not None
    assert [outcome.task for outcome in report.outcomes] == ["t1", "t2", "t3"] == [t.id for t in report.plan.tasks]
    assert [outcome.status for outcome in report.outcomes] == ["done", "done", "done"]
    assert report.outcomes[0].output == text
    assert report.answer == "Both were looked at [t1, t2]."
    # t3 does not depend on t1 and has read nothing of it.
    assert not _ORDER.search(texts(flow.calls("worker", "t3")))
    for call in flow.calls("synthesizer"):
        assert not _ORDER.search(outside(call))
