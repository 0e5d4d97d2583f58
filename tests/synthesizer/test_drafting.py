"""Which draft goes out: the better of two, the one the critic saw, the one that was there when time or money ended."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryStore
from chargehand.synthesizer.check_citations import provenance_of
from chargehand.synthesizer.stated_gaps import contradictions, gaps
from chargehand.synthesizer.typed_figures import unsupported_figures
from chargehand.team import Scrutiny
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.report import Contradiction, Gap, Report
from chargehand.values.request import Request
from tests.flows import Flow, Said, clerks, task, tasks
from tests.synthesizer.syntheses import BRAIN, Made, make, plan_of, result

THREE = [result("t1", output="Apples."), result("t2", output="Pears."), result("t3", output="Plums.")]
TWO = [result("t1", output="There are 12 mills."), result("t2", output="All of them turn.")]
GOOD = {"answer": "There are 12 mills [t1], and all turn [t2]."}
BAD = {"answer": "There are 77 mills [t9], and 99 turn [t2]."}
ACCEPT: dict[str, Any] = {"verdict": "accept", "problems": []}
REVISE = {"verdict": "revise", "problems": ["It does not say where."]}


def told(made: Made, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in made.events if event.kind == kind]


def in_turn(*said: Any, critic: list[Any] | None = None) -> Any:
    """A synthesizer that says these one after the other, and a critic that does."""
    waiting, verdicts = list(said), list(critic or [])
    return lambda call: verdicts.pop(0) if call.role == "critic" else waiting.pop(0)


def test_long_results_are_looked_through_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft about megabytes is checked in another thread, one about sentences where the run is."""
    threads: list[threading.Thread] = []

    def check(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return provenance_of(*args, **options)

    monkeypatch.setattr("chargehand.synthesizer.writer.provenance_of", check)
    long = [result("t1", output="There are 12 mills." + " They turn." * 20_000), TWO[1]]
    for outcomes in (TWO, long):
        assert make(outcomes, lambda _: GOOD).synthesis.answer == GOOD["answer"]
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


# -- the better of two -----------------------------------------------------------------------------------------------


def test_a_useless_second_draft_does_not_take_the_place_of_a_good_one() -> None:
    """The first leaves one result out; the second cites nothing at all."""
    first = {"answer": "Apples are nice [t1]. Pears are good [t2]. And more."}
    made = make(THREE, in_turn(first, {"answer": "I have corrected the JSON."}))
    assert made.synthesis.answer == first["answer"]
    assert made.synthesis.provenance.unused == ("t3",)


def test_what_is_discarded_is_the_draft_that_is_not_used() -> None:
    """One event a draft that goes: the worse second one, or the first once there is a better."""
    made = make(TWO, in_turn({"answer": "There are 13 mills [t1], and all turn [t2]."}, BAD))
    [gone] = told(made, "draft_discarded")
    assert "unknown_citation" in gone["reason"]
    made = make(TWO, in_turn({"answer": "There are 13 mills [t1], and all turn [t2]."}, GOOD))
    [gone] = told(made, "draft_discarded")
    assert "unsupported_figure" in gone["reason"]
    made = make(TWO, lambda call: GOOD if call.role == "synthesizer" else ACCEPT, critic=BRAIN, seconds=1.5)
    assert made.synthesis.answer == GOOD["answer"]
    assert told(made, "draft_discarded") == []


def test_a_deadline_during_the_review_gives_the_draft_that_was_kept() -> None:
    """The second draft was worse and is not what the critic is reading."""
    first = {"answer": "There are 13 mills [t1], and all turn [t2]."}
    made = make(TWO, in_turn(first, BAD, critic=[ACCEPT]), critic=BRAIN, seconds=2.5)
    assert made.synthesis.answer == first["answer"]


def test_the_draft_that_is_mended_is_the_one_that_was_kept() -> None:
    """After a worse second draft the model is shown the first, with what the critic and code find wrong with it."""
    first = {"answer": "There are 13 mills [t1], and all turn [t2]."}
    made = make(TWO, in_turn(first, BAD, GOOD, critic=[REVISE, ACCEPT]), critic=BRAIN)
    *_, shown, asked = made.of("synthesizer")[2].messages
    assert first["answer"] in shown.text
    assert "It does not say where." in asked.text
    assert "13" in asked.text
    assert made.synthesis.answer == GOOD["answer"]


def test_a_draft_mended_for_the_critic_is_held_to_the_same() -> None:
    """It cites a task there is none of: the one before stands, and the note says so."""
    made = make(TWO, in_turn(GOOD, BAD, critic=[REVISE]), critic=BRAIN)
    assert (made.synthesis.answer, made.synthesis.provenance.problems) == (GOOD["answer"], ())
    [note] = made.synthesis.notes
    assert "unknown_citation" in note
    assert note.endswith(REVISE["problems"][0])


def test_a_critic_may_have_a_result_left_out() -> None:
    """A corrected draft that uses less is no worse, as long as it rests on something."""
    shorter = {"answer": "There are 12 mills [t1]."}
    made = make(TWO, in_turn(GOOD, shorter, critic=[REVISE, ACCEPT]), critic=BRAIN)
    assert (made.synthesis.answer, made.synthesis.notes) == (shorter["answer"], ())


# -- answers nobody wrote for the purpose ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["one task", "select"])
@pytest.mark.parametrize(("verdict", "said"), [(ACCEPT, []), (REVISE, REVISE["problems"])])
def test_a_result_that_is_the_answer_is_reviewed_once(mode: str, verdict: Any, said: list[str]) -> None:
    """Accepted, or what the critic says is noted; nothing is corrected, and the call is counted."""
    outcomes = TWO[:1] if mode == "one task" else TWO
    plan = plan_of(outcomes, "select" if mode == "select" else "merge")
    chosen = {"scores": [{"candidate": 1, "score": 9}], "best": 1, "reason": "r"}
    made = make(outcomes, lambda call: verdict if call.role == "critic" else chosen, plan=plan, critic=BRAIN)
    assert made.keys[-1] == "@critic/1/1"
    assert [note.rpartition(": ")[2] for note in made.synthesis.notes] == said
    assert made.synthesis.usage.calls == len(made.calls)


def test_a_deadline_during_that_review_gives_the_result() -> None:
    """It is no reason to list it instead."""
    made = make(TWO[:1], lambda _: ACCEPT, critic=BRAIN, seconds=0.5)
    assert made.synthesis.answer == "There are 12 mills."
    assert len(made.synthesis.notes) == 1


def test_a_listing_made_by_code_is_not_reviewed_and_says_so() -> None:
    """On the record too."""
    made = make(TWO, brain=None, critic=BRAIN)
    assert len(made.synthesis.notes) == 2
    assert [each["verdict"] for each in told(made, "critique")] == ["not_reviewed"]


# -- the budget ------------------------------------------------------------------------------------------------------


def test_what_was_held_for_the_answer_is_free_once_it_is_written() -> None:
    """Workers wrote 8,000 tokens; the critic gets what reading them did not use."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        used = {"synthesizer": (9_000, 50), "critic": (900, 20)}.get(call.role, (400, 4_000))
        said = {"synthesizer": '{"answer": "x [a, b]"}', "critic": '{"verdict": "accept", "problems": []}'}
        text = said.get(call.role, '{"summary": "s", "output": "o", "confidence": 50}')
        return Reply(text=text, usage=TokenCount(input_tokens=used[0], output_tokens=used[1]))

    def run(tokens: int) -> tuple[Report, Flow]:
        team, request = clerks(scrutiny=Scrutiny(critic=True)), {"budget": Budget(tokens=tokens)}
        flow = Flow(talk, tasks(task("a"), task("b")), team, request)
        return flow.run(), flow

    report, flow = run(32_000)
    assert [event.data["verdict"] for event in flow.events if event.kind == "critique"] == ["accept"]
    assert report.status == "complete"
    report, _ = run(22_000)
    assert "4,150" in report.notes[0], "what is really left"


# -- resuming --------------------------------------------------------------------------------------------------------

CLAIM = "The tower in Arvik is {} m tall."


def towers(deadline: float | None) -> Flow:
    """Two workers who disagree, a judge, a draft that is sent back, and a critic; each call takes a second."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        match call.role:
            case "judge":
                return {"verdict": "first", "reason": "Newer.", "confidence": 90}
            case "critic":
                return REVISE
            case "synthesizer" if "not accepted yet" in call.messages[-1].text:
                return {"answer": "SECOND: it is 300 m tall [a], where [b] differ."}
            case "synthesizer":
                return {"answer": "FIRST: it is 999 m tall [a]."}
            case _:
                claim = CLAIM.format(300 if who.task == "a" else 324)
                claims = [{"statement": claim, "confidence": 80, "sources": []}]
                return {"summary": "s", "output": claim, "claims": claims, "confidence": 80}

    team = clerks(scrutiny=Scrutiny(critic=True))
    return Flow(talk, tasks(task("a"), task("b")), team, {} if deadline is None else {"deadline_s": deadline})


def resumed(whole: Flow, deadline: float | None, kept: int) -> tuple[Report, Flow]:
    flow = towers(deadline)
    flow.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
    return flow.run(number=1), flow


@pytest.mark.parametrize("deadline", [3.5, 4.5, 5.5])
def test_a_deadlines_verdict_leaves_a_resumed_run_what_there_was(deadline: float) -> None:
    """Cut right before the verdict or anywhere after it: the same answer, rulings and usage, and no new call."""
    whole = towers(deadline)
    report = whole.run()
    kinds = [(event.kind, event.data.get("key")) for event in whole.events]
    verdict = kinds.index(("decision", "@synthesis/deadline"))
    assert report.answer.startswith("FIRST" if deadline == 3.5 else "SECOND")
    for kept in range(verdict, len(kinds)):
        again, flow = resumed(whole, deadline, kept)
        assert flow.model.asked == [], kept
        assert again.answer == report.answer, kept
        assert [each.resolved for each in again.contradictions] == [True], kept
        assert (again.usage.calls, again.notes) == (report.usage.calls, report.notes), kept


@pytest.mark.slow
def test_what_an_earlier_session_told_is_not_told_again() -> None:
    """Cut before its end, a run comes to the same events; those on the record are not written a second time."""
    whole = towers(None)
    whole.run()
    told = ("synthesis_started", "draft_discarded", "critique")
    before = [event.kind for event in whole.events if event.kind in told]
    assert before.count("critique") == 2
    for kept in range(1, len(whole.events)):
        _, flow = resumed(whole, None, kept)
        assert [event.kind for event in flow.events if event.kind in told] == before, kept


# -- what the model states -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, "", "  ", "null", {}, [], {"reason": None}, {"task": "t1", "reason": ""}])
def test_an_entry_that_says_nothing_is_no_gap_and_no_contradiction(nothing: Any) -> None:
    """Nor does it keep a run from being complete."""
    assert gaps([nothing], {"t1"}) == ()
    assert contradictions([nothing]) == ()


def test_gaps_are_read_in_any_form() -> None:
    """ "null" and ids of no task are no task; words are the reason."""
    said = ["No prices.", {"task": "null", "reason": "r"}, {"task": "t9", "reason": "r"}, {"gap": "x"}]
    assert gaps([*said, {"task": "t1", "impact": "i"}], {"t1"}) == (
        Gap(reason="No prices."), Gap(reason="r"), Gap(reason="r"), Gap(reason='{"gap": "x"}'),
        Gap(task="t1", reason="i"),
    )  # fmt: skip


def test_claims_given_as_one_text_are_one_claim() -> None:
    """Not a letter each; empty ones are dropped."""
    said = [{"subject": "colour", "claims": "t1: red"}, {"claims": ["t1: red", None], "resolved": True}]
    assert contradictions(said) == (
        Contradiction(subject="colour", claims=("t1: red",)),
        Contradiction(subject="t1: red", claims=("t1: red",), resolved=True),
    )


# -- typed answers ---------------------------------------------------------------------------------------------------


def test_a_figure_in_the_data_that_is_nowhere_else_is_shown_and_bars_nothing() -> None:
    """It costs no second call."""
    request = Request(text="r", answer_schema={"type": "object"})
    made = make(TWO, lambda _: {**GOOD, "data": {"mills": 12, "price": 999}}, request=request)
    assert len(made.calls) == 1
    assert made.synthesis.gaps == ()
    [problem] = made.synthesis.provenance.problems
    assert problem.startswith("unsupported_data: `data.price` is 999")


@pytest.mark.parametrize(
    "data",
    [
        None, True, {"n": 12}, {"n": "12 mills"}, {"share": 0.25}, {"many": 1_500_000}, {"list": ["a", "b"], "n": 2},
        {"flag": 1}, {"day": "2024-05-01"}, float("inf"),
    ],
)  # fmt: skip
def test_figures_of_results_and_answer_are_supported_in_any_writing(data: Any) -> None:
    """So are flags and the lengths of the data's own lists."""
    outcomes = {each.task: each for each in TWO}
    assert unsupported_figures(data, outcomes, "25 % of 1.5 million on May 1, 2024") == ()


def test_of_many_unsupported_figures_some_are_spelled_out() -> None:
    """The others are counted."""
    found = unsupported_figures([100 + n for n in range(30)], {}, "")
    assert len(found) == 11
    assert found[-1].startswith("unsupported_data: 20 ")
