"""A small open model's answer from material: it is asked in one word whether the lines state it, measured first."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.values.message import Reply
from chargehand.workers.plain_result import ALL_CONFIRMED
from chargehand.workers.stated_check import NOT_STATED, QUESTION
from tests.kernel import MODEL, SMALL_MODEL
from tests.workers.test_evidence import NOTES, work

SEATS = "The hall in Bergen has 310 seats."
LINE = "The hall in Bergen seats 310 people."


def likely(odds: float) -> Reply:
    return Reply(text="stated", first_words={"stated": -0.1, " Missing": -0.1 - odds})


def known(yes: float, no: float) -> list[Reply]:
    return [likely(yes if is_stated else no) for _, is_stated in QUESTION.known]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text(NOTES)
    return path


@pytest.mark.parametrize(("odds", "confidence"), [(1.6, ALL_CONFIRMED), (1.2, NOT_STATED)])
def test_an_answer_is_doubted_that_its_own_model_does_not_find_in_the_lines(
    notes: Path, odds: float, confidence: int
) -> None:
    """It calls every answer stated. Of those that are it is surer: what separates the known ones decides."""
    replies = [SEATS, *known(1.8, 1.0), likely(odds)]
    outcome, calls, _ = work(*replies, material=notes, model=SMALL_MODEL, shows=True)
    assert (outcome.status, outcome.output, outcome.confidence) == ("done", SEATS, confidence)
    assert calls[-1].messages[-1].text == (
        f"Passage: {LINE}\nQuestion: Read the notes and say how many seats the hall in Bergen has.\nAnswer: {SEATS}"
    )
    assert [call.role for call in calls] == ["worker", *["judge"] * (len(QUESTION.known) + 1)]
    assert outcome.usage.calls == len(calls)


def test_a_model_that_tells_no_answers_apart_is_not_believed(notes: Path) -> None:
    """Its answer counts as code finds it."""
    outcome, _, _ = work(SEATS, *known(1.0, 1.0), material=notes, model=SMALL_MODEL, shows=True)
    assert outcome.confidence == ALL_CONFIRMED


@pytest.mark.parametrize(
    ("said", "model"),
    [
        (SEATS, MODEL),
        ("Nobody knows.", SMALL_MODEL),
        (f"{LINE} The hall in Voss is closed. Halls of the west coast are there. {SEATS}", SMALL_MODEL),
    ],
)
def test_nothing_is_asked_of_larger_models_and_of_what_is_not_one_answer(notes: Path, said: str, model: str) -> None:
    """Without a line there is nothing to hold it against, and a long text is not one answer to one question."""
    _, calls, _ = work(said, material=notes, model=model, shows=True)
    assert len(calls) == 1


def test_a_small_open_model_gets_its_short_prompt_and_is_not_asked_for_places(notes: Path) -> None:
    """Code finds the lines. What holds for every worker takes at most 150 tokens, of four characters each."""
    fields = {"prompt": "A long prompt.", "small_prompt": "You find facts."}
    _, [call, *_], _ = work(SEATS, *known(1.0, 1.0), material=notes, model=SMALL_MODEL, shows=True, **fields)
    opening = call.messages[0].text
    assert opening.startswith("You find facts.\n")
    assert "square brackets" not in opening
    assert len(opening) <= 4 * 150
    _, [call], _ = work(SEATS, material=notes, shows=True, **fields)
    assert call.messages[0].text.startswith("A long prompt.\n")
    assert len(call.messages[0].text) - len("A long prompt.") <= 4 * 250
