"""What whole runs make of the evidence of results: warnings, notes, limits and the team's own setting."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from chargehand.models import Attribution
from chargehand.team import Worker
from chargehand.values.effect import ModelCall
from chargehand.values.recovery_policy import Policy
from tests.flows import Flow, Said, by_task, clerks, task, tasks, works
from tests.kernel import result


def claiming(*sources: str, tasks: tuple[str, ...] = ("a",)) -> Any:
    """Every role does what it should; these tasks state one claim with these sources."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role != "worker":
            return works(call, attribution)
        claims = [{"statement": f"It is {attribution.task}.", "confidence": 90, "sources": list(sources)}]
        return result(f"RESULT-{attribution.task}", claims=claims if attribution.task in tasks else [], confidence=90)

    return talk


def test_a_report_counts_statements_from_own_knowledge() -> None:
    """In its notes; a result that states nothing singly is one statement."""
    report = Flow(claiming("https://a.example"), tasks(task("a"), task("b"))).run()
    outcomes = by_task(report)
    assert [outcomes[id].confidence for id in "ab"] == [70, 70]
    assert outcomes["a"].claims[0].sources == ("a", "https://a.example (unconfirmed)")
    [note] = [note for note in report.notes if "own knowledge" in note]
    assert note == "2 statements come from the model's own knowledge, without material or tools, in a, b."


def test_a_removed_source_is_in_the_notes_and_on_the_record() -> None:
    """A task that another one does not depend on is not its source, whatever the model writes."""
    flow = Flow(claiming("b"), tasks(task("a"), task("b")))
    report = flow.run()
    outcome = by_task(report)["a"]
    assert (outcome.claims[0].sources, outcome.confidence) == (("a",), 50)
    assert outcome.to_json()["evidence"] == {"removed": 1, "own_knowledge": 1}
    assert any(note.startswith("1 source was removed in a") for note in report.notes)
    [warning] = [event for event in flow.events if event.kind == "warning"]
    assert (warning.task, "removed: b" in warning.data["message"]) == ("a", True)


def test_a_task_may_name_the_one_it_depends_on() -> None:
    """The id is kept, in the spelling of the plan."""
    report = Flow(claiming("task A", tasks=("b",)), tasks(task("a"), task("b", "a"))).run()
    assert by_task(report)["b"].claims[0].sources == ("b", "a")


@pytest.mark.parametrize(("rule", "status"), [("strict", "failed"), ("normal", "done"), ("off", "done")])
def test_a_team_says_how_much_must_be_confirmed(rule: Literal["strict", "normal", "off"], status: str) -> None:
    """strict fails what is unconfirmed, through the ladder; off believes what the model states."""
    team = clerks(recovery=Policy(attempts=1, evidence=rule))
    flow = Flow(claiming("https://a.example"), tasks(task("a")), team=team)
    outcome = by_task(flow.run())["a"]
    assert outcome.status == status
    assert len(flow.calls()) == (2 if rule == "strict" else 1)
    assert outcome.confidence == {"strict": None, "normal": 70, "off": 90}[rule]


def test_a_resumed_run_decides_nothing_about_evidence_again() -> None:
    """Cut off anywhere, it comes to the same outcomes and warnings with the same calls."""
    whole = Flow(claiming("b", "https://a.example"), tasks(task("a"), task("b"), task("c", "a", "b")))
    expected = whole.run()
    for at in (0.5, 1.0, 1.5, 2.5, 3.5):
        flow = Flow(claiming("b", "https://a.example"), tasks(task("a"), task("b"), task("c", "a", "b")))
        flow.run(interrupt_at=at)
        report = flow.run(number=1)
        told = [(o.task, o.status, o.claims, o.confidence, o.evidence) for o in report.outcomes]
        assert told == [(o.task, o.status, o.claims, o.confidence, o.evidence) for o in expected.outcomes]
        assert report.notes == expected.notes


def test_what_a_team_found_about_its_sources_is_handed_up() -> None:
    """Ids of its own tasks are no sources outside, and its counts are in the notes of the run around it."""
    inner = clerks(name="inner")
    team = clerks(Worker("helpers", "Do the parts", kind="delegate", team=inner))
    plan = {"goal": "g", "tasks": [part("t1"), part("t2", "t1")]}

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner":
            return plan
        if call.role == "synthesizer":
            return {"answer": "All of it. [t1] [t2]"}
        said = [{"statement": f"Part {attribution.task}.", "sources": ["t1", "t7"]}]
        return result(f"RESULT-{attribution.task}", claims=said)

    report = Flow(talk, tasks(task("a", worker="helpers")), team=team).run()
    outcome = by_task(report)["a"]
    assert outcome.status == "done"
    assert {source for claim in outcome.claims for source in claim.sources} == {"a"}
    assert outcome.evidence is not None
    assert outcome.evidence.removed == 2


def part(id: str, *depends_on: str) -> dict[str, Any]:
    return task(id, *depends_on).to_json()
