"""A result in plain text: its statements become claims with the sources that hold."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.values.effect import ToolResult
from chargehand.values.plan import Task
from chargehand.workers.check_sources import Grounds
from chargehand.workers.plain_result import hold_text
from chargehand.workers.worker_answer import Answer, as_text

TASK = Task(id="t1", worker="ann", instruction="Say what the ferry costs.", success_criterion="A figure.")
SHOWN = """ferry.md (lines 1-4 of 4)
1: # Ferry
2: The ferry makes fourteen crossings a day in winter.
3: An adult pays 64 kroner, a child pays half.
4: The boat was built in Florø in 1997."""


def hold(text: str, shown: str = SHOWN, **fields: Any) -> tuple[Answer, tuple[str, ...]]:
    read = ToolResult(text=shown, lines={"ferry.md": 4}, reads={"ferry.md": "x"})
    grounds = Grounds(TASK, {}, [({}, read)] if shown else [], has_means=True, **fields)
    held = hold_text(as_text(text), grounds)
    return held.answer, held.false


def test_a_source_in_the_text_becomes_the_claims_source() -> None:
    """The mark is taken out of the statement and stays in the text."""
    answer, false = hold("An adult pays 64 kroner [ferry.md:3]. It was built in 1997. [ferry.md:4]")
    assert [(claim.statement, claim.sources) for claim in answer.claims] == [
        ("An adult pays 64 kroner.", ("ferry.md:3",)),
        ("It was built in 1997.", ("ferry.md:4",)),
    ]
    assert false == ()
    assert answer.confidence == 90
    assert answer.output == "An adult pays 64 kroner [ferry.md:3]. It was built in 1997. [ferry.md:4]"


def test_a_statement_without_a_source_gets_the_line_whose_words_it_has() -> None:
    """Small models name none: code finds the line, where one stands out."""
    answer, _ = hold("The ferry makes fourteen crossings a day in winter.")
    assert [claim.sources for claim in answer.claims] == [("ferry.md:2",)]
    assert answer.confidence == 90


def test_an_answer_in_other_words_gets_the_line_with_its_figures() -> None:
    """All of its figures and a word that says something are in one line; without the word it is another figure."""
    assert [claim.sources for claim in hold("Every adult is charged 64.")[0].claims] == [("ferry.md:3",)]
    assert hold("There are 64 people on board.")[0].confidence == 50
    assert hold("Every adult is charged 64 or 65.")[0].confidence == 50


def test_an_invented_source_is_taken_out_of_the_text() -> None:
    """A file nobody gave and a line the file does not have are no sources, and the confidence says so."""
    answer, false = hold("Qqq zzz is so [other.md:3]. Xxx yyy is so [ferry.md:99].")
    assert set(false) == {"other.md:3", "ferry.md:99"}
    assert answer.output == answer.summary == "Qqq zzz is so. Xxx yyy is so."
    assert answer.claims == ()
    assert answer.confidence == 50


def test_a_text_that_nothing_confirms_is_not_sure() -> None:
    """Something was read, and none of it is in the text."""
    assert hold("Whales are mammals that breathe air.")[0].confidence == 50
    assert hold("Whales are mammals that breathe air.", shown="")[0].confidence is None


def test_code_and_headings_are_not_statements() -> None:
    """A fence is skipped, and so is what has no more than two words."""
    answer, _ = hold(
        "# Result\n```\nThe ferry makes fourteen crossings a day in winter.\n```\n- An adult pays 64 kroner"
    )
    assert [claim.statement for claim in answer.claims] == ["An adult pays 64 kroner"]


def test_thousands_of_sentences_are_read_in_time() -> None:
    """At most sixty become claims; nothing is quadratic in the text."""
    answer, _ = hold("The ferry makes fourteen crossings a day in winter. " * 20_000)
    assert len(answer.claims) == 60


def test_an_invented_source_far_down_in_the_text_was_kept() -> None:
    """Sources are checked in every sentence and in short lines; only so many statements become claims."""
    text = "An adult pays 64 kroner [ferry.md:3].\n" * 80 + "Total [other.md:3]\nIt is so far away [ghost.md:1]."
    answer, false = hold(text)
    assert set(false) == {"other.md:3", "ghost.md:1"}
    assert answer.output.endswith("Total\nIt is so far away.")  # type: ignore[union-attr]
    assert len(answer.claims) == 60
    assert answer.confidence == 50


def test_of_several_sources_in_one_mark_the_invented_one_is_taken_out() -> None:
    """Each is looked at by itself."""
    answer, false = hold("An adult pays 64 kroner [ferry.md:3, other.md:3].")
    assert false == ("other.md:3",)
    assert answer.output == "An adult pays 64 kroner [ferry.md:3]."
    assert answer.claims[0].sources == ("ferry.md:3",)


def test_a_remark_in_brackets_made_a_statement_sure() -> None:
    """It is not a source that anybody can look up."""
    answer, _ = hold("Whales are mammals that breathe air [fig.three].")
    assert answer.confidence == 50


@pytest.mark.parametrize("piece", [" ", "[", "[abc", ". ", ". [abc]", "   [", "- ", "* ", "\n", "a.b:1 [", "1. "])
def test_a_text_of_marks_without_an_end_is_read(piece: str) -> None:
    """In time linear in its length."""
    hold("So" + piece * (200_000 // len(piece)) + "end")
