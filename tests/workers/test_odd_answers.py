"""What weak models answer instead of a result: typed, bounded and visible, and what is usable of it is used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.values.effect import ModelCall
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Task
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from tests.flows import Flow, Said, clerks, task, tasks, works

ASKED = Task(
    id="a",
    worker="clerk",
    instruction="Find out how many people the town hall of Lund employs this year.",
    success_criterion="A number with the year.",
)
SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "output": {"type": "string"}},
    "required": ["summary", "output"],
}
GOOD = "In 2025 the town hall of Lund employs 412 people."


def run(*said: Said, beside: bool = False) -> tuple[Report, Outcome, Flow]:
    """One attempt of one worker that gives these answers, the last of them from then on."""
    waiting = [*said]

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role != "worker" or who.task != "a":
            return works(call, who)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    plan = tasks(ASKED, *([task("b")] if beside else []))
    flow = Flow(talk, plan, clerks(recovery=Policy(attempts=1)))
    report = flow.run()
    return report, report.outcomes[0], flow


def warnings(flow: Flow) -> str:
    return "\n".join(event.data["message"] for event in flow.events if event.kind == "warning")


NO_RESULTS = {
    "the task again": ASKED.instruction,
    "the criterion again": "A number with the year.",
    "the schema": json.dumps(SCHEMA),
    "the schema in a fence": f"```json\n{json.dumps(SCHEMA, indent=2)}\n```",
    "an apology": "I'm sorry, but I cannot help with that request.",
    "a shape without values": '{"summary": "", "output": "", "claims": [], "confidence": 0}',
}


@pytest.mark.parametrize("said", NO_RESULTS.values(), ids=NO_RESULTS)
def test_what_is_no_result_is_asked_for_once_more_and_then_fails_with_its_reason(said: str) -> None:
    """Two calls; the run does not count it as done, and its gap says why."""
    report, outcome, flow = run(said)
    assert len(flow.calls()) == 2
    assert (outcome.status, outcome.error and outcome.error.kind) == ("failed", "criterion_not_met")
    assert report.status == "failed"
    assert report.gaps[0].task == "a"


@pytest.mark.parametrize("said", NO_RESULTS.values(), ids=NO_RESULTS)
def test_a_result_after_it_is_used(said: str) -> None:
    """The second answer counts as if it had been the first."""
    report, outcome, _ = run(said, GOOD)
    assert (report.status, outcome.output) == ("complete", GOOD)


def test_an_answer_in_another_language_is_a_result() -> None:
    """Nobody knows which language the reader wants but the reader: the text is used as it is."""
    said = "Im Jahr 2025 beschäftigt das Rathaus von Lund 412 Personen."
    report, outcome, flow = run(said)
    assert (report.status, outcome.output, len(flow.calls())) == ("complete", said, 1)


def test_two_hundred_claims_are_kept_and_do_not_flood_the_answer() -> None:
    """All are in the outcome; what the synthesizer reads of them is bounded by its window."""
    claims = [{"statement": f"House {n} of the street has {n + 3} windows.", "confidence": 80} for n in range(200)]
    said: dict[str, Any] = {"summary": "Windows were counted.", "output": "See the claims.", "claims": claims}
    report, outcome, flow = run(said, beside=True)
    assert len(outcome.claims) == 200
    assert report.status == "complete"
    [asked] = flow.calls("synthesizer")
    assert sum(len(message.text) for message in asked.messages) < 4 * 32_000


def test_of_two_answers_in_one_the_first_is_used_and_the_other_named() -> None:
    """The record says that there was another."""
    one, other = ({"summary": f"{n} people.", "output": f"It employs {n} people."} for n in (412, 97))
    report, outcome, flow = run(f"{json.dumps(one)}\n{json.dumps(other)}")
    assert (report.status, outcome.output) == ("complete", "It employs 412 people.")
    assert "another answer in the same text left out" in warnings(flow)


@pytest.mark.parametrize("half", ['{"summary": "It employs 412 people.", "output": ', '{"summary": "It empl'])
def test_half_a_json_is_asked_for_again_and_at_last_kept_as_text(half: str) -> None:
    """As a text of unknown confidence, if nothing better comes."""
    assert run(half, GOOD)[1].output == GOOD
    _, outcome, flow = run(half)
    assert len(flow.calls()) == 2
    assert (outcome.status, outcome.confidence) == ("done", None)
    assert "empl" in str(outcome.output)
