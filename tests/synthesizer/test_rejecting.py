"""A run is complete only with an answer: what is a placeholder, cites nothing or uses no result is not one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chargehand.synthesizer.placeholder import is_placeholder, is_unfilled
from chargehand.values.effect import ModelCall
from chargehand.values.outcome import Outcome, failed
from chargehand.values.report import LeftOut
from chargehand.values.request import Request
from tests.flows import Flow, clerks, task, tasks, works
from tests.kernel import result as worker_result
from tests.synthesizer.syntheses import BRAIN, make, plan_of, result

WORDS = ["Oslo", "grain", "water", "wind", "stone", "prices", "owners", "roads", "winters"]
NINE = [result(f"t{n}", output=f"About {word}.", summary=f"On {word}.") for n, word in enumerate(WORDS, 1)]
BROKEN: list[Outcome] = [result("t1", output="A mill."), failed("t2", "ann", "tool", "It broke.")]


def answers(answer: str, **more: Any) -> Any:
    return lambda call: {"answer": answer, **more}


@pytest.mark.parametrize(
    "text",
    ["<markdown>", "<markdown> [t1]", "...", "… [t1]", "[t1, t2]", "{answer}", "{{ the answer }} [t1]", "[your answer]",
     "**<answer>**", "```\n...\n```", "# <title>\n\n<text> [t1]", "  \n"],
)  # fmt: skip
def test_marks_to_be_filled_in_are_a_placeholder(text: str) -> None:
    """Whatever brackets they stand in, and with a citation behind them too."""
    assert is_placeholder(text, ["t1", "t2"])


@pytest.mark.parametrize(
    "text",
    ["Yes [t1].", "42 [t1]", "<b>Oslo</b> [t1]", "<https://example.com/mill> [t1]", '{"mills": 3} [t1]', "[1, 2] [t1]",
     "| a | b |\n|---|---|\n| 1 | 2 |", "No. [t1]", "ja", "水車は三つ [t1]", "Use `<div>` here [t1]."],
)  # fmt: skip
def test_a_short_answer_is_no_placeholder(text: str) -> None:
    """However little it says."""
    assert not is_placeholder(text, ["t1", "t2"])


def test_words_of_the_prompt_are_a_placeholder() -> None:
    """A model that copies how its answer is described has not answered; a few words may be there by chance."""
    prompt = 'Give "answer": your answer to the request, written in markdown. Say yes or no.'
    assert is_placeholder("Your answer to the request, written in markdown [t1]", ["t1"], prompt)
    assert is_placeholder("Written in markdown. Your answer to the request.\nSay yes or no.", prompt=prompt)
    assert not is_placeholder("Written in markdown. Your answer to the request. Oslo.", prompt=prompt)
    assert not is_placeholder("Say yes or no.", prompt=prompt)
    assert not is_placeholder("The request was written in Oslo", prompt=prompt)


def test_data_of_nothing_but_placeholders_is_unfilled() -> None:
    """One text that says something fills it, and data without texts has nothing to fill in."""
    assert is_unfilled({"title": "<title>", "rows": [{"name": "..."}], "score": 0})
    assert not is_unfilled({"title": "<title>", "name": "Oslo"})
    assert not is_unfilled({"score": 3, "name": ""})
    assert not is_unfilled(None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("<markdown>", "placeholder"),
        ("<markdown> [t1-t9]", "placeholder"),
        ("There are nine mills.", "cites no task"),
        ("There are nine mills [t77].", "cites no task"),
    ],
)
def test_an_answer_that_is_none_is_replaced_by_the_listing(answer: str, why: str) -> None:
    """It goes back once; then code lists the results, and a gap keeps the run from being complete."""
    made = make(NINE, answers(answer))
    assert len(made.calls) == 2
    assert why in made.calls[1].messages[-1].text
    assert made.synthesis.answer.startswith("# The goal")
    assert made.synthesis.provenance.unused == ()
    [gap] = made.synthesis.gaps
    assert why in gap.reason
    assert [event.kind for event in made.events].count("draft_discarded") == 2


def test_an_answer_that_cites_only_what_failed_uses_no_result() -> None:
    """Citing is not enough: what is cited must have a result."""
    made = make(BROKEN, answers("It could not be found out, because something broke [t2]."))
    assert [gap.task for gap in made.synthesis.gaps] == ["t2", None]
    assert "uses no result" in made.synthesis.gaps[1].reason
    assert "> A mill. [t1]" in made.synthesis.answer


def test_a_second_draft_that_is_an_answer_counts() -> None:
    """What was wrong with the first costs one call."""
    said = iter(["<markdown>", "There are nine mills [t1-t9]."])
    made = make(NINE, lambda _: {"answer": next(said)})
    assert (made.synthesis.answer, made.synthesis.gaps) == ("There are nine mills [t1-t9].", ())


def test_a_second_draft_that_repeats_what_to_change_does_not_count() -> None:
    """The first one is kept: it is an answer."""
    first = "Mills are [t1]. Prices are 4,711 [t2]."
    copied: list[str] = []

    def talk(call: ModelCall) -> Any:
        if len(call.messages) > 2:
            copied.append(" ".join(re.findall(r"\d+\. (.*)", call.messages[-1].text)))
        return {"answer": f"{copied[-1]} [t1, t2]" if copied else first}

    made = make([result("t1", output="Mills."), result("t2", output="Prices.")], talk)
    assert copied
    assert made.synthesis.answer == first


def test_a_rejected_draft_is_written_again_with_the_money_held_for_it() -> None:
    """There is no draft to keep yet: whether the budget can spare the call is not asked."""
    made = make(NINE, answers("<markdown>"))
    assert not [event for event in made.events if event.kind == "decision"]


def test_a_critic_cannot_turn_an_answer_into_none() -> None:
    """A corrected draft that cites nothing is worse than the one before, which stays."""
    said = iter(["There are nine mills [t1-t9].", "Nine."])

    def talk(call: ModelCall) -> Any:
        if call.role == "critic":
            return {"verdict": "revise", "problems": ["It is too long."]}
        return {"answer": next(said)}

    made = make(NINE, talk, critic=BRAIN)
    assert made.synthesis.answer == "There are nine mills [t1-t9]."
    assert made.synthesis.gaps == ()


def test_a_deadline_after_a_rejected_draft_gives_the_listing_and_the_gap() -> None:
    """Nobody has answered: the run is not complete, whatever cut it short."""
    made = make(NINE, answers("<markdown>"), seconds=1.5)
    assert made.synthesis.answer.startswith("# The goal")
    assert "placeholder" in made.synthesis.gaps[0].reason


def test_an_unused_result_is_left_out_only_with_a_reason() -> None:
    """Ranges and lists name several; a reason that says nothing is none, and what is cited is not left out."""
    left_out = [
        {"task": "t2", "reason": "It repeats the first."},
        {"task": ["t3", "t4"], "reason": "Not asked."},
        {"task": "[t5-t6]", "reason": "Older."},
        {"task": "t7", "reason": "..."},
        {"task": "t8"},
        {"task": "t1", "reason": "Cited all the same."},
        "t9",
        {"task": "t99", "reason": "No task."},
    ]
    made = make(NINE, answers("There is a mill [t1].", left_out=left_out))
    provenance = made.synthesis.provenance
    assert provenance.unused == ("t7", "t8", "t9")
    assert provenance.left_out[0] == LeftOut(task="t2", reason="It repeats the first.")
    assert [each.task for each in provenance.left_out] == ["t2", "t3", "t4", "t5", "t6"]
    told = made.calls[1].messages[-1].text
    assert "does not use [t7]" in told
    assert "does not use [t2]" not in told


def test_a_result_that_a_cited_one_rests_on_is_used_through_it() -> None:
    """What t2 made of t1 is in the answer; t1 need not be cited."""
    made = make(NINE[:2], answers("There is a mill [t2]."), plan=plan_of(NINE[:2], edges={"t2": ["t1"]}))
    assert made.synthesis.provenance.unused == ()


SCHEMA = {"type": "object", "properties": {"mills": {"type": "string"}}, "required": ["mills"]}


@pytest.mark.parametrize("reply", [{"answer": "Nine [t1-t9].", "data": {"mills": "<text>"}},
                                   {"answer": "Nine.", "data": {"mills": "nine"}}])  # fmt: skip
def test_a_typed_answer_is_held_to_the_same(reply: dict[str, Any]) -> None:
    """Its words cite, for data has no place to; data of placeholders is not an answer either."""
    made = make(NINE, lambda _: reply, request=Request(text="r", answer_schema=SCHEMA))
    assert len(made.calls) == 2
    assert made.synthesis.data is None
    assert any("was rejected" in gap.reason for gap in made.synthesis.gaps)


def test_a_typed_answer_that_cites_is_complete() -> None:
    """The data are as they were given."""
    reply = {"answer": "Nine [t1-t9].", "data": {"mills": "nine"}}
    made = make(NINE, lambda _: reply, request=Request(text="r", answer_schema=SCHEMA))
    assert (made.synthesis.data, made.synthesis.gaps) == ({"mills": "nine"}, ())
    assert made.synthesis.provenance.accounts_for_all


def test_a_reduced_answer_has_to_cite_as_well() -> None:
    """A tree of summaries between the results and the answer takes nothing away from that."""

    def talk(call: ModelCall) -> Any:
        return {"answer": "Mills [t1-t9]." if "You summarise" in call.messages[0].text else "Mills."}

    made = make(NINE, talk, plan=plan_of(NINE, "reduce"))
    assert "cites no task" in made.synthesis.gaps[0].reason


def test_a_selected_placeholder_is_not_the_answer() -> None:
    """The answer is written from all results instead, with a note."""
    two = [result("t1", output="<the result itself>"), result("t2", output="A mill.")]

    def talk(call: ModelCall) -> Any:
        if call.role == "judge":
            scores = [{"candidate": 1, "score": 50}, {"candidate": 2, "score": 50}]
            first = "the result itself" in call.messages[-1].text.partition("Result 2")[0]
            return {"scores": scores, "best": 1 if first else 2, "reason": "r"}
        return {"answer": "There is a mill [t2].", "left_out": [{"task": "t1", "reason": "It is empty."}]}

    made = make(two, talk, plan=plan_of(two, "select"), judge=BRAIN)
    assert made.synthesis.answer == "There is a mill [t2]."
    assert made.synthesis.provenance.accounts_for_all


# -- whole runs --------------------------------------------------------------------------------------------------------


def three(**reply: Any) -> Flow:
    def talk(call: ModelCall, attribution: Any) -> Any:
        return reply if call.role == "synthesizer" else works(call, attribution)

    return Flow(talk, tasks(task("a"), task("b"), task("c")), clerks())


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"answer": "<markdown>"}, "partial"),
        ({"answer": "All in all."}, "partial"),
        ({"answer": "All in all. [a, b]"}, "partial"),
        ({"answer": "All. [a, b]", "left_out": [{"task": "c", "reason": "It says the same."}]}, "complete"),
        ({"answer": "All in all. [a, b, c]"}, "complete"),
        ({"answer": "All. [a, b, c]", "gaps": [{"task": None, "reason": "No prices.", "impact": "x"}]}, "partial"),
    ],
)
def test_complete_needs_an_answer_that_accounts_for_every_result(reply: dict[str, Any], status: str) -> None:
    """A run of three tasks that are all done is complete only if the answer cites or leaves out each of them."""
    flow = three(**reply)
    report = flow.run()
    assert report.status == status
    assert flow.run(number=1).status == status, "and the next session says the same"


def test_a_run_interrupted_while_its_answer_was_rejected_comes_to_the_same() -> None:
    """What was rejected stays so; no committed call is made twice."""
    whole = three(answer="<markdown>")
    whole.run()
    for at in (1.5, 2.5, 3.5):
        flow = three(answer="<markdown>")
        flow.run(interrupt_at=at)
        report = flow.run(number=1)
        assert (report.status, len(report.gaps)) == ("partial", 1)
        assert len(flow.calls("synthesizer")) == 2


def test_one_task_whose_result_is_a_placeholder_is_partial() -> None:
    """A one-task plan's outcome is the answer, and this is none."""
    flow = Flow(lambda *_: worker_result("<the result itself>"), tasks(task("a")), clerks())
    report = flow.run()
    assert (report.status, "placeholder" in report.gaps[0].reason) == ("partial", True)
