"""A small open model's answer from material: code looks for what was not given, and it is doubted."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.values.message import Reply
from chargehand.workers.check_sources import DOUBTED
from chargehand.workers.stated_check import count_sentences, find_foreign
from chargehand.workers.worker_prompt import NO_PROMPT
from tests.kernel import MODEL, SMALL_MODEL
from tests.workers.test_evidence import NOTES, work

SEATS = "The hall in Bergen has 310 seats."
QUESTION = "How many seats does the hall in Bergen have?"
ASKED = {"instruction": QUESTION}
FILE_TOOLS = ("read_file", "list_files", "search_files")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text(NOTES)
    return path


def test_a_short_answer_from_material_is_given_and_doubted(notes: Path) -> None:
    """It is often right, and nothing tells when: on questions of others a third of such answers were wrong."""
    outcome, calls, _ = work(SEATS, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.status, outcome.output, outcome.confidence, outcome.partial) == ("done", SEATS, DOUBTED, True)
    assert [gap.task for gap in outcome.gaps] == ["t2"]
    assert outcome.usage.calls == len(calls) == 1


def test_the_prompt_of_a_small_model_is_the_material_and_the_question(notes: Path) -> None:
    """No tools that would read it again."""
    _, [call], _ = work(SEATS, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert call.messages[1].text == f"Material\n<data>\nnotes.md\n{NOTES.strip()}\n</data>\n\n{QUESTION}"
    assert not call.tools


def test_a_task_that_is_not_a_question_keeps_its_result(notes: Path) -> None:
    """A text that was asked for is given, however doubtful: the material need not state it."""
    task = {"instruction": "Put the notes into one sentence."}
    said = "Halls of the west coast are in Bergen and in Voss."
    outcome, _, _ = work(said, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=task)
    assert (outcome.output, outcome.partial) == (said, True)


@pytest.mark.parametrize(
    "said", ["The hall in Bergen has 450 seats.", "The hall of Olga Dahl in Bergen has 310 seats."]
)
def test_a_figure_or_a_name_that_was_not_given_makes_an_answer_doubtful(notes: Path, said: str) -> None:
    """Code finds that without a call."""
    outcome, calls, _ = work(said, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.output, outcome.confidence, outcome.partial, len(calls)) == (said, DOUBTED, True, 1)
    assert any(word in outcome.gaps[0].reason for word in ("450", "Olga"))


def test_a_long_answer_from_material_is_doubted_too(notes: Path) -> None:
    """A small model that works an answer out step by step can be as wrong. Its own words are no invented names."""
    said = "The hall in Voss is closed. It is. The Hall of Bergen is not. It seats 310."
    outcome, _, _ = work(said, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=ASKED)
    assert (outcome.output, outcome.partial, len(outcome.gaps)) == (said, True, 1)
    assert "misread" in outcome.gaps[0].reason
    lines = [source for claim in outcome.claims for source in claim.sources if ":" in source]
    assert lines
    assert all(line in outcome.gaps[0].impact for line in lines)


def test_an_answer_is_doubted_also_if_its_task_has_a_context(notes: Path) -> None:
    """A planner adds one to most tasks."""
    asked = {"instruction": QUESTION, "context": "The team compares halls."}
    outcome, _, _ = work(SEATS, material=notes, model=SMALL_MODEL, shows=True, tools=FILE_TOOLS, task=asked)
    assert (outcome.partial, len(outcome.gaps)) == (True, 1)


def test_answers_of_larger_models_are_not_doubted(notes: Path) -> None:
    outcome, _, _ = work(SEATS, material=notes, model=MODEL, shows=True, task=ASKED)
    assert not outcome.gaps


def test_without_a_prompt_a_small_model_gets_one_plain_call(notes: Path) -> None:
    """The file's text and the question, as a person would paste them; other models get the worker's prompt."""
    fields = {"prompt": "A long prompt.", "small_prompt": NO_PROMPT, "tools": FILE_TOOLS, "task": ASKED}
    outcome, [call], _ = work(SEATS, material=notes, model=SMALL_MODEL, shows=True, **fields)
    assert [message.text for message in call.messages] == [f"{NOTES.strip()}\n\n\n{QUESTION}"]
    assert (call.tools, outcome.output) == ((), SEATS)
    _, [call], _ = work(SEATS, material=notes, shows=True, **fields)
    assert call.messages[0].text.startswith("A long prompt.\n")
    assert call.output_cap == 4096
    _, [call], _ = work("Nothing is given.", model=SMALL_MODEL, **fields)
    assert call.messages[0].text.startswith("A long prompt.\n")


def test_a_plain_call_that_does_not_come_to_an_end_is_cut_and_used(notes: Path) -> None:
    """A small model that repeats itself would write to its limit, and the same again in a second try."""
    endless = Reply(text="It has 310 seats. It has 310 seats. It", stop="length")
    fields = {"small_prompt": NO_PROMPT, "tools": FILE_TOOLS, "task": ASKED}
    outcome, [call], _ = work(endless, material=notes, model=SMALL_MODEL, shows=True, **fields)
    assert call.output_cap == 1_024
    assert (outcome.status, outcome.output, outcome.partial) == ("done", endless.text, True)
    assert "cut off" in outcome.gaps[0].reason


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
    _, [call], _ = work(SEATS, material=notes, model=SMALL_MODEL, shows=True, **fields)
    opening = call.messages[0].text
    assert opening.startswith("You find facts.\n")
    assert "square brackets" not in opening
    assert len(opening) <= 4 * 150
    _, [call], _ = work(SEATS, material=notes, shows=True, **fields)
    assert call.messages[0].text.startswith("A long prompt.\n")
    assert len(call.messages[0].text) - len("A long prompt.") <= 4 * 250
