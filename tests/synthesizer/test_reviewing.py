"""The pipeline around the draft: a critic in bounded rounds, deadlines that keep what there is, the answer streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.outcome import Outcome, failed
from chargehand.values.request import Request
from tests.kernel import engine, stored
from tests.synthesizer.syntheses import BRAIN, Made, finding, make, plan_of, result, synthesize, text_of

TWO = [result("t1", output="There are 12 mills."), result("t2", output="All of them turn.")]
GOOD = {"answer": "There are 12 mills [t1], and all turn [t2].", "confidence": 80}


def reviewed(*verdicts: Any, answers: list[Any] | None = None, **fields: Any) -> Made:
    """A critic that says these one after the other, and a synthesizer that does."""
    said, written = list(verdicts), list(answers or [])

    def talk(call: ModelCall) -> Any:
        if call.role == "critic":
            return said.pop(0)
        return written.pop(0) if written else GOOD

    made = make(TWO, talk, critic=BRAIN, **fields)
    assert said == []
    return made


ACCEPT = {"verdict": "accept", "problems": []}
REVISE = {"verdict": "revise", "problems": ["It does not say where."]}


def test_an_accepted_draft_goes_out() -> None:
    """One call of each."""
    made = reviewed(ACCEPT)
    assert made.keys == ["@synthesis/1", "@critic/1/1"]
    assert (made.synthesis.answer, made.synthesis.notes) == (GOOD["answer"], ())


def test_a_returned_draft_is_mended_and_reviewed_again() -> None:
    """With the critic's words."""
    better = {"answer": "In Holland there are 12 mills [t1], and all turn [t2]."}
    made = reviewed(REVISE, ACCEPT, answers=[GOOD, better])
    assert made.keys == ["@synthesis/1", "@critic/1/1", "@synthesis/2", "@critic/2/1"]
    assert "It does not say where." in made.of("synthesizer")[1].messages[-1].text
    assert made.synthesis.answer == better["answer"]
    assert made.synthesis.notes == ()


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_the_rounds_are_bounded_and_what_is_left_is_said(rounds: int) -> None:
    """A critic that is never content does not hold the answer back."""
    made = reviewed(*[REVISE] * (rounds + 1), rounds=rounds)
    assert len(made.of("synthesizer")) == rounds + 1
    assert made.synthesis.answer == GOOD["answer"]
    [note] = made.synthesis.notes
    assert note.endswith(REVISE["problems"][0])


@pytest.mark.parametrize("said", [ModelError("bad_request", "no"), {"verdict": "revise", "problems": []}])
def test_a_critic_that_fails_is_not_reviewed_and_never_accepted(said: Any) -> None:
    """The report says so."""
    made = reviewed(said)
    assert len(made.synthesis.notes) == 1
    assert [event.data["verdict"] for event in made.events if event.kind == "critique"] == ["not_reviewed"]


def test_a_draft_that_cannot_be_mended_stands() -> None:
    """With what the critic said."""
    made = reviewed(REVISE, answers=[GOOD, ModelError("bad_request", "no")])
    assert made.synthesis.answer == GOOD["answer"]
    assert made.synthesis.notes[0].endswith(f"(no): {REVISE['problems'][0]}")


# -- what code finds -------------------------------------------------------------------------------------------------


def test_an_unsupported_figure_goes_back_once_and_then_stands_in_the_report() -> None:
    """The first draft says 13 where the result says 12."""
    wrong = {"answer": "There are 13 mills [t1], and all turn [t2]."}
    said = [wrong, GOOD]
    made = make(TWO, lambda _: said.pop(0))
    asked = made.calls[1].messages[-1].text
    assert "13" in asked
    assert (made.synthesis.answer, made.synthesis.provenance.problems) == (GOOD["answer"], ())
    made = make(TWO, lambda _: wrong)
    assert len(made.calls) == 2
    assert [problem.partition(":")[0] for problem in made.synthesis.provenance.problems] == ["unsupported_figure"]


def test_a_mended_draft_that_is_worse_is_not_taken() -> None:
    """The first had one wrong figure, the second has two."""
    first = {"answer": "There are 13 mills [t1], and all turn [t2]."}
    said = [first, {"answer": "There are 13 mills [t1], and 99 turn [t2]."}]
    made = make(TWO, lambda _: said.pop(0))
    assert made.synthesis.answer == first["answer"]


def test_a_result_left_out_goes_back_once_unless_another_rests_on_it() -> None:
    """t1 is not cited: used through t2 if that depends on it, else asked after."""
    answer = {"answer": "All of them turn [t2]."}
    made = make(TWO, lambda _: answer)
    assert "does not use [t1]" in made.calls[1].messages[-1].text
    assert made.synthesis.provenance.unused == ("t1",)
    made = make(TWO, lambda _: answer, plan=plan_of(TWO, edges={"t2": ["t1"]}))
    assert len(made.calls) == 1


def test_findings_and_claims_are_merged_before_the_model_reads_them() -> None:
    """Once each, with all their sources; the report has the same."""
    mill = finding("The mill's brake fails when the wind is strong.", path="mill.py", line=3)
    outcomes = [
        result("t1", "The mill was built by hand.", findings=[mill]),
        result("t2", "The mill was built by hand.", findings=[mill]),
    ]
    made = make(outcomes, lambda _: {"answer": "So [t1, t2]."})
    text = text_of(made.calls[0])
    assert text.count("built by hand") == 1
    assert text.count("brake fails") == 1
    [merged] = made.synthesis.findings
    assert merged.sources == ("t1", "t2")


def test_of_too_many_findings_the_gravest_are_read() -> None:
    """The report has all of them."""
    many = [
        finding(f"Trouble with the part {chr(97 + n % 26) * (3 + n // 26)}.", severity="info", path=f"p{n}.py")
        for n in range(900)
    ]
    grave = finding("The brake fails.", severity="critical", path="z.py")
    made = make([result("t1", findings=[*many, grave]), result("t2")], lambda _: {"answer": "So [t1, t2]."})
    assert "The brake fails." in text_of(made.calls[0])
    assert len(made.synthesis.findings) == 901
    assert "gravest of 901 findings" in made.synthesis.notes[0]


# -- deadlines -------------------------------------------------------------------------------------------------------


MADE = (("makes", "engines"), ("employs", "people"))


def test_a_deadline_during_judging_keeps_the_verdicts_made() -> None:
    """Without an answer the results are listed, with what was decided: here by the first of two calls."""
    names = [f"{head}{tail}" for head in ("Ar", "Ber", "Cel", "Dom", "Eg") for tail in ("vik", "gum", "lund", "stad")]
    outcomes = [
        result(task, *(f"The plant in {name} {makes} {number} {unit}." for name in names for makes, unit in MADE))
        for task, number in (("t1", 500), ("t2", 700))
    ]

    def talk(call: ModelCall) -> Any:
        return {"verdict": "second", "reason": "Newer."}

    made = make(outcomes, talk, judge=BRAIN, seconds=1.5, options={"max_concurrent": 1})
    assert {each.resolved for each in made.synthesis.contradictions} == {False, True}
    assert len(made.synthesis.notes) == 2, "not all were compared, and there is no synthesis"
    assert made.synthesis.usage.calls == 1


def test_a_deadline_after_the_draft_keeps_the_draft() -> None:
    """Not reviewed in time is said; it is not thrown away."""
    made = make(TWO, lambda call: GOOD if call.role == "synthesizer" else ACCEPT, critic=BRAIN, seconds=1.5)
    assert made.synthesis.answer == GOOD["answer"]
    assert len(made.synthesis.notes) == 1


# -- streaming -------------------------------------------------------------------------------------------------------


def test_the_answer_is_heard_while_it_is_written_and_never_journaled() -> None:
    """Both drafts, the second under its own number."""
    rules = [
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Nothing cited."}}, "times": 1},
        {"when": {"role": "synthesizer"}, "reply": {"json": GOOD}},
    ]
    heard: dict[int, str] = {}
    store = MemoryStore()

    async def main() -> Any:
        async with engine(ScriptedModel(rules), MemoryJournal(store)) as local:  # type: ignore[arg-type]
            by_task = {outcome.task: outcome for outcome in TWO}

            def on_draft(number: int, text: str) -> None:
                heard[number] = heard.get(number, "") + text

            return await synthesize(Request(text="r"), plan_of(TWO), by_task, local, BRAIN, on_draft=on_draft)

    run_virtual(main())
    assert heard == {1: "Nothing cited.", 2: GOOD["answer"]}
    assert [event.kind for event in stored(store) if "mills [t1]" in json.dumps(event.data)] == ["model_replied"]


# -- bad input -------------------------------------------------------------------------------------------------------

ODD: list[Any] = [
    "", " \n\t", None, {}, [], 0, False, "\x00\x01\x1b[31m", "\ud800 lone \udfff", "<b>bold</b></data>", "\u202eabc",
    {"<data>": "</data>"}, ["\ud83d"] * 3, "a" * 200_000, {"deep": [[[[[["x"]]]]]]}, "]]]]](((([t1]](",
    b"\xff\xfe caf\xe9".decode("latin-1"), b"\xff\xfe".decode("utf-8", "surrogateescape"),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_no_output_breaks_it(odd: Any) -> None:
    """With and without a model, in every mode, there is an answer; what is sent can be sent."""
    outcomes: list[Outcome] = [
        result("t1", output=odd), result("t2", output=odd), failed("t3", "ann", "tool", "It broke.", output=odd),
    ]  # fmt: skip

    def talk(call: ModelCall) -> Any:
        "".join(message.text for message in call.messages).encode()
        if call.role == "judge":
            return {"scores": [{"candidate": 1, "score": 5}], "best": 1, "reason": "r"}
        return {"answer": "So [t1, t2]."}

    for mode in ("merge", "select", "reduce"):
        made = make(outcomes, talk, plan=plan_of(outcomes, mode), judge=BRAIN)
        assert made.synthesis.answer.strip()
        assert [gap.task for gap in made.synthesis.gaps] == ["t3"]
    made = make(outcomes, brain=None)
    made.synthesis.answer.encode()
    assert "## Missing" in made.synthesis.answer


def test_a_budget_that_is_nearly_used_up_is_not_spent_on_mending() -> None:
    """The draft stands with its problems; that it was not sent back is on the record."""
    wrong = {"answer": "There are 13 mills [t1], and all turn [t2]."}
    reply = Reply(text=json.dumps(wrong), usage=TokenCount(input_tokens=2_000, output_tokens=600))
    made = make(TWO, lambda _: reply, options={"budget": Budget(tokens=5_000)})
    assert len(made.calls) == 1
    assert made.synthesis.answer == wrong["answer"]
    assert made.synthesis.provenance.problems != ()
    [decision] = [event.data for event in made.events if event.kind == "decision"]
    assert (decision["key"], decision["value"]) == ("@synthesis/mend", False)
