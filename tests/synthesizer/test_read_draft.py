"""A reply in Markdown or JSON -> the answer and what is stated beside it."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.synthesizer import prompt
from chargehand.synthesizer.read_draft import read_draft, read_text
from chargehand.values.effect import ModelCall
from chargehand.values.report import Contradiction, Gap, LeftOut
from chargehand.values.request import Request
from tests.synthesizer.syntheses import make, result, text_of

TASKS = ("t1", "t2", "t3", "t4")
ANSWER = "There are 12 mills [t1].\n\n- All turn [t2]."
TWO = [result("t1", output="There are 12 mills."), result("t2", output="All turn.")]


def read(text: str) -> dict[str, Any]:
    data, problems = read_draft(text, prompt.schema(None), TASKS, typed=False)
    assert data is not None, problems
    return data


@pytest.mark.parametrize("frame", ["{}", "```markdown\n{}\n```", "<think>Twelve?</think>\n{}", "  {}\n\n"])
def test_markdown_is_the_answer(frame: str) -> None:
    """Also in a fence, and after what a model thought aloud."""
    data = read(frame.replace("{}", ANSWER))
    assert (data["answer"], data.get("confidence"), data["gaps"]) == (ANSWER, None, [])


@pytest.mark.parametrize("heading", ["## Notes", "### Notes:", "**Notes**", ""])
def test_notes_after_the_answer_are_read(heading: str) -> None:
    """With or without their heading; they are not part of the answer."""
    notes = """
- Missing: [t3] the price of 2024, so that the trend is unknown.
- **Missing**: who owns them.
- Left out: t4, because it repeats t1.
- Disagree: number of people; t1: 500; t2: 700
- Confidence: 80 %
"""
    data = read(f"{ANSWER}\n\n{heading}\n{notes}")
    assert data == {
        "answer": ANSWER,
        "gaps": [{"task": "t3", "reason": "the price of 2024, so that the trend is unknown."}, "who owns them."],
        "left_out": [{"task": "t4", "reason": "it repeats t1."}],
        "contradictions": [{"subject": "number of people", "claims": ["t1: 500", "t2: 700"], "resolved": False}],
        "confidence": 80,
    }


def test_a_note_may_go_on_in_the_next_line() -> None:
    """A line without a label belongs to the one before."""
    data = read(f"{ANSWER}\n\n## Notes\nMissing:\n- the price of 2024\nConfidence: high")
    assert (data["gaps"], data["confidence"]) == (["the price of 2024"], None)


def test_a_paragraph_of_the_answer_that_speaks_of_what_is_missing_stays() -> None:
    """Only what is at the very end is a note."""
    text = "**Missing:** the price of 2024 [t1].\n\nThe mills turn [t2]."
    assert read(text)["answer"] == text


def test_the_old_shape_is_still_read() -> None:
    """An object in JSON with the answer as one of its fields, fenced or not."""
    data = read('```json\n{"answer": "So [t1].", "gaps": [{"task": "t2", "reason": "r"}], "confidence": "70"}\n```')
    assert (data["answer"], data["gaps"], data["confidence"]) == ("So [t1].", [{"task": "t2", "reason": "r"}], 70)


@pytest.mark.parametrize("text", ["", " \n", "## Notes\n- Confidence: 3", '{"answer": "cut', '{"answer": 5}'])
def test_what_is_not_an_answer_is_said_to_be_none(text: str) -> None:
    """Empty, only notes, half an object, an object of another shape."""
    assert read_draft(text, prompt.schema(None), TASKS, typed=False)[0] is None


def test_a_synthesis_is_asked_for_in_markdown_and_read_from_it() -> None:
    """No JSON is asked for; gaps, contradictions, confidence and what is left out come from the notes."""
    notes = "## Notes\n- Missing: who owns them\n- Left out: t2, it repeats t1\n- Confidence: 60\n- Disagree: none"
    made = make(TWO, lambda _: f"There are 12 mills [t1].\n\n{notes}")
    [call] = made.of("synthesizer")
    assert (call.output_schema, "JSON" in text_of(call)) == (None, False)
    synthesis = made.synthesis
    assert (synthesis.answer, synthesis.confidence) == ("There are 12 mills [t1].", 60)
    assert synthesis.gaps == (Gap(reason="who owns them"),)
    assert synthesis.provenance.left_out == (LeftOut(task="t2", reason="it repeats t1"),)
    assert synthesis.contradictions == ()


def test_a_disagreement_that_only_the_writer_states_is_kept() -> None:
    """With its sides."""
    answer = "The results disagree on the colour [t1, t2].\n\nDisagree: the colour; t1: red; t2: blue"
    [found] = make(TWO, lambda _: answer).synthesis.contradictions
    assert found == Contradiction(subject="the colour", claims=("t1: red", "t2: blue"))


def test_a_typed_answer_is_asked_for_and_given_in_json() -> None:
    """Text alone does not have the data."""
    schema = {"type": "object", "required": ["n"]}
    said: list[Any] = ["There are 12 [t1, t2].", {"answer": "There are 12 [t1, t2].", "data": {"n": 12}}]

    def talk(call: ModelCall) -> Any:
        assert call.output_schema is not None
        return said.pop(0)

    made = make(TWO, talk, request=Request(text="r", answer_schema=schema))
    assert made.synthesis.data == {"n": 12}


def test_a_draft_that_is_sent_back_is_told_what_to_change_one_by_one() -> None:
    """Numbered, in sentences, without the codes that are for programs."""
    said = ["There are 13 mills [t1], 7 of brick [t9].", "There are 12 mills [t1], and all turn [t2]."]
    made = make(TWO, lambda _: said.pop(0))
    asked = made.of("synthesizer")[1].messages[-1].text
    assert asked.splitlines()[0] == "Your answer is not accepted yet. Change exactly this, and leave the rest as it is:"
    assert [line[:2] for line in asked.splitlines()[1:-1]] == ["1.", "2.", "3.", "4."]
    assert "unsupported_figure" not in asked
    assert asked.endswith("Then give the whole answer again, in the same form.")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("It is so [t1].\n\nMissing: a price.", "It is so [t1].\n\nMissing: a price."),
        ("<think>Hm.</think>\n```markdown\nIt is so [t1].\n```", "It is so [t1]."),
        ('{"answer": " It is so [t1]. "}', "It is so [t1]."),
        ('{"text": "x"}', ""),
        (" ", ""),
    ],
)
def test_a_summary_is_read_as_text_or_as_an_object(said: str, text: str) -> None:
    """What it lists as missing is a part of it; an object without an answer is nothing."""
    assert read_text(said) == text
