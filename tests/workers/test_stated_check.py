"""A small open model's answer from material: code looks for what was not given, and the model is asked in one word."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.values.message import Reply
from chargehand.workers.check_sources import DOUBTED
from chargehand.workers.plain_result import ALL_CONFIRMED
from chargehand.workers.stated_check import KNOWN, count_sentences, find_foreign
from tests.kernel import MODEL, SMALL_MODEL
from tests.workers.test_evidence import NOTES, work

SEATS = "The hall in Bergen has 310 seats."
QUESTION = "How many seats does the hall in Bergen have?"
ASKED = {"instruction": QUESTION}
FILE_TOOLS = ("read_file", "list_files", "search_files")


def likely(odds: float) -> Reply:
    return Reply(text="A", first_words={"A": -0.1, " B": -0.1 - odds})


def known(yes: float, no: float) -> list[Reply]:
    return [likely(yes if is_stated else no) for _, _, is_stated in KNOWN]


def checks(odds: float) -> list[Reply]:
    """Of known cases it is sure by 1.8 or 1.0; of this one so much."""
    return [*known(1.8, 1.0), likely(odds)]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text(NOTES)
    return path


@pytest.mark.parametrize(("odds", "doubted"), [(1.9, False), (1.8, False), (1.7, True), (0.2, True), (-3.0, True)])
def test_an_answer_is_doubted_that_its_own_model_finds_less_likely_than_known_right_ones(
    notes: Path, odds: float, doubted: bool
) -> None:
    """It chooses the answer nearly always, and more surely where the material has it.

    The answer is given all the same: it is often right.
    """
    replies = [SEATS, *checks(odds)]
    outcome, calls, _ = work(*replies, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.status, outcome.output) == ("done", SEATS)
    assert outcome.confidence == (DOUBTED if doubted else ALL_CONFIRMED)
    assert [gap.task for gap in outcome.gaps] == (["t2"] if doubted else [])
    assert outcome.partial == doubted
    assert [call.role for call in calls] == ["worker", *["judge"] * (len(KNOWN) + 1)]
    assert outcome.usage.calls == len(calls)


def test_a_server_that_says_no_odds_is_believed_by_the_letter(notes: Path) -> None:
    """If it tells the known cases apart; a word that begins with the letter is not the letter."""
    known_letters = [Reply(text="A" if is_stated else "B.") for _, _, is_stated in KNOWN]
    for said, doubted in (("A", False), ("**B**", True), ("Answer unclear", False)):
        replies = [SEATS, *known_letters, Reply(text=said)]
        outcome, _, _ = work(*replies, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
        assert outcome.partial == doubted


def test_all_that_is_asked_about_the_material_begins_alike(notes: Path) -> None:
    """A server that keeps the beginnings of prompts reads the material once; known cases are kept from run to run."""
    _, calls, _ = work(SEATS, *checks(1.9), material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    asked = [calls[0], calls[-1]]
    material = f"Material\n<data>\nnotes.md\n{NOTES.strip()}\n</data>\n\n"
    assert {call.messages[0].text for call in calls} == {asked[0].messages[0].text}
    assert all(call.messages[1].text.startswith(material) for call in asked)
    assert asked[0].messages[1].text == f"{material}{QUESTION}"
    assert not calls[0].tools
    assert [call.keeps for call in calls] == [False, *[True] * len(KNOWN), False]


def test_a_model_that_tells_no_answers_apart_is_not_believed(notes: Path) -> None:
    """Its answer counts as code finds it."""
    replies = [SEATS, *known(1.0, 1.0)]
    outcome, _, _ = work(*replies, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.confidence, outcome.partial) == (ALL_CONFIRMED, False)


def test_a_task_that_is_not_a_question_keeps_its_result(notes: Path) -> None:
    """A text that was asked for is given, however doubtful: the material need not state it."""
    task = {"instruction": "Put the notes into one sentence."}
    said = "Halls of the west coast are in Bergen and in Voss."
    outcome, _, _ = work(said, *checks(0.1), material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=task)
    assert (outcome.output, outcome.partial) == (said, True)


@pytest.mark.parametrize(
    "said", ["The hall in Bergen has 450 seats.", "The hall of Olga Dahl in Bergen has 310 seats."]
)
def test_a_figure_or_a_name_that_was_not_given_makes_an_answer_doubtful(notes: Path, said: str) -> None:
    """Code finds that without a call."""
    outcome, calls, _ = work(said, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.output, outcome.confidence, outcome.partial, len(calls)) == (said, DOUBTED, True, 1)
    assert any(word in outcome.gaps[0].reason for word in ("450", "Olga"))


@pytest.mark.parametrize(
    ("said", "model"),
    [
        (SEATS, MODEL),
        ("The hall in Voss is closed. It is. The hall in Bergen is not. It seats 310.", SMALL_MODEL),
    ],
)
def test_nothing_is_asked_of_larger_models_and_of_what_is_not_one_answer(notes: Path, said: str, model: str) -> None:
    """A long text is not one answer to one question."""
    _, calls, _ = work(said, material=notes, model=model, shows=True, task=ASKED)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("answer", "foreign"),
    [
        ("It cost 1,200 euros in 2019.", []),
        ("It cost 1200 euros.", []),
        ("It cost 1,200 euros [bill.md:7].", []),
        ("It cost 1,300 euros.", ["1,300"]),
        ("Anna Berg paid it.", []),
        ("It was paid by Anna Holm.", ["Holm"]),
        ("It was paid. Nobody knows why.", []),
        ("- **Paid** by Anna", []),
        ("", []),
    ],
)
def test_figures_and_names_that_were_not_given(answer: str, foreign: list[str]) -> None:
    """However a figure is grouped; a capital letter at the beginning of a sentence is not a name's."""
    assert find_foreign(answer, "Anna Berg paid 1,200 euros in 2019.") == foreign


def test_sentences_are_counted_by_their_ends() -> None:
    """A decimal point ends none, a new line does."""
    assert [count_sentences(text) for text in ("It is 1.5 m.", "One. Two! Three?", "a\nb", "")] == [1, 3, 2, 0]


def test_a_small_open_model_gets_its_short_prompt_and_is_not_asked_for_places(notes: Path) -> None:
    """Code finds the lines. What holds for every worker takes at most 150 tokens, of four characters each."""
    fields = {"prompt": "A long prompt.", "small_prompt": "You find facts."}
    replies = [SEATS, *known(1.0, 1.0)]
    _, [call, *_], _ = work(*replies, material=notes, model=SMALL_MODEL, shows=True, **fields)
    opening = call.messages[0].text
    assert opening.startswith("You find facts.\n")
    assert "square brackets" not in opening
    assert len(opening) <= 4 * 150
    _, [call], _ = work(SEATS, material=notes, shows=True, **fields)
    assert call.messages[0].text.startswith("A long prompt.\n")
    assert len(call.messages[0].text) - len("A long prompt.") <= 4 * 250
