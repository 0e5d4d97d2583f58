"""Which statements of an outcome are compared with those of others."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.statements import MOST_PER_OUTCOME, read_statements
from chargehand.values.outcome import Claim, Outcome, done, escalated, failed
from tests.pace import Timed


def texts(*outcomes: Outcome) -> list[str]:
    return [statement.text for statement in read_statements(outcomes)]


def test_claims_and_the_sentences_of_the_output_are_statements() -> None:
    """With the outcome's confidence and the task as source; questions, headings and code state nothing."""
    said = "# Fees\n\n- The **fee** is 5 EUR.\n- See:\n\nIs it high?\n\n```\nprint(1)\n```\nIt rose in [May](a.md)."
    outcome = done("t1", "a", summary="Done.", output=said, confidence=70, claims=[Claim(statement="Rents fell.")])
    assert texts(outcome) == ["Rents fell.", "The fee is 5 EUR.", "It rose in May."]
    assert [(each.confidence, each.sources) for each in read_statements([outcome])][1] == (70, ("t1",))


@pytest.mark.parametrize(
    "said",
    [
        "In short, the supplier's fee is 5 EUR a month, as its price list says.",
        "# Result\n\n> `The fee is 5 EUR.`",
        "| what |\n|---|\n| **The fee is 5 EUR** |",
        "- As I found, the fee is 5 EUR",
    ],
)
def test_a_sentence_that_repeats_a_claim_is_not_a_second_statement(said: str) -> None:
    """However it is laid out."""
    claim = Claim(statement="The fee is 5 EUR.")
    assert texts(done("t1", "a", summary=said, output=said, claims=[claim])) == ["The fee is 5 EUR."]


def test_a_summary_is_read_where_there_are_no_claims_and_no_text() -> None:
    """Beside data it says what the data is about."""
    assert texts(done("t1", "a", summary="The fee is 5 EUR.", output={"encrypted": True})) == [
        "The fee is 5 EUR.", "encrypted: yes"
    ]  # fmt: skip
    assert texts(done("t1", "a", summary="The fee is 5 EUR.", output="Rents fell last year.")) == [
        "Rents fell last year."
    ]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (["Oslo has 700 people."], ["Oslo has 700 people."]),
        ([[{"note": "x", "text": "Oslo has 700 people."}]], ["note: x", "Oslo has 700 people."]),
        ({"Oslo": {"population": 700}}, ["Oslo population: 700"]),
        ({"city": "Oslo", "people": 700}, ["Oslo city: Oslo", "Oslo people: 700"]),
        ({"osloPopulation": 700}, ["oslo Population: 700"]),
        ({"verdict": "approve"}, ["verdict: approve"]),
        ({"score": 7, "line": 3, "people": 700}, []),
        ([{"people": 7}, {"people": 8}], []),
        ({"tests": "def test_net() -> None:\n    assert net(1) == 1"}, []),
        ([700, 800], []),
        (None, []),
    ],
)
def test_outputs_that_are_data_are_read(output: Any, expected: list[str]) -> None:
    """Their sentences, and their values by key and by what names the entry; what nothing names is left out."""
    assert texts(done("t1", "a", summary="", output=output)) == expected


def test_only_what_was_found_counts() -> None:
    """Not why a task failed, nor what analyzers did; a partial output does."""
    assert texts(failed("t1", "b", "internal", "The fee is 7 EUR.")) == []
    partial = escalated("t1", "b", "ambiguous_input", "The fee is 9 EUR.", "The fee is 7 EUR.")
    assert texts(partial) == ["The fee is 7 EUR."]
    assert texts(done("t1", "b", summary="3 files.", output={"analyzers": [], "text": "It ran."})) == []


def test_the_same_words_are_kept_of_two_tasks() -> None:
    """A task may say both sides: then the other one contradicts it."""
    outcomes = [done(f"t{n}", "a", summary="", output="The fee is 5 EUR.") for n in range(5)]
    assert [each.task for each in read_statements(outcomes)] == ["t0", "t1"]


def test_a_bare_yes_or_no_belongs_to_its_question() -> None:
    """It is not a statement of its own."""
    assert texts(done("t1", "a", summary="Is the lock released? Yes.", output=None)) == ["Is the lock released? Yes."]


def test_data_of_any_depth_and_size_is_read_up_to_a_limit() -> None:
    """Neither recursion nor a million entries; what comes early is read."""
    deep: Any = "Oslo has 700 people."
    for _ in range(2_000):
        deep = [{"k": deep}]
    wide = ["Oslo has 800 people.", *[{"city": f"C{n}", "people": n} for n in range(100_000)]]
    assert texts(done("t1", "a", summary="", output=deep)) == ["Oslo has 700 people."]
    with Timed(time.process_time) as took:
        assert len(texts(done("t1", "a", summary="", output=wide))) == MOST_PER_OUTCOME
    assert took.within(2)


@given(st.lists(st.text(max_size=80), min_size=2, max_size=6))
def test_any_text_is_read(said: list[str]) -> None:
    """Never an error, and the same answer twice."""
    outcomes = [
        done(f"t{n}", "a", summary=text, output=text, claims=[Claim(statement=text)]) for n, text in enumerate(said)
    ]
    assert read_statements(outcomes) == read_statements(outcomes)
