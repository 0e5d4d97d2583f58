"""What code alone can prove to differ: one key, two values."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.synthesizer.reconcile import reconcile
from chargehand.values.outcome import Claim, Finding, Outcome, done
from chargehand.values.plan import Task


def says(task: str, *statements: str) -> Outcome:
    return done(task, "ann", summary="", output=None, claims=[Claim(statement=s, confidence=80) for s in statements])


def finds(task: str, message: str, **fields: object) -> Outcome:
    data = {"severity": "warning", "category": "bug", "path": "a.py", "line": 3, "message": message, **fields}
    return done(task, "ann", summary="", output=None, findings=[Finding.model_validate(data)])


def proven(*outcomes: Outcome, tasks: tuple[Task, ...] = ()) -> list[tuple[str, str]]:
    """The tasks of each pair."""
    found = reconcile({outcome.task: outcome for outcome in outcomes}, tasks).proven
    return [(pair.first.task, pair.second.task) for pair in found]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The fee is 5 EUR.", "The fee is 7 EUR."),
        ("It takes 45 minutes.", "It takes 50 minutes."),
        ("The office in Oslo employs 500 people.", "The office in Oslo employs 700 people."),
        ("The term ends on 1 May 2025.", "The term ends on 2025-05-02."),
        ("The term ends in May 2025.", "The term ends in June 2025."),
        ("The fee is 5 EUR.", "The fee is 5 USD."),
        ("The pause is 30 ms.", "The pause is 30 s."),
        ("Population of Oslo: 717,710", "population of Oslo: 709,037"),
    ],
)
def test_one_key_and_two_values_is_a_contradiction(one: str, other: str) -> None:
    """In the number, the unit or the date, whichever comes first."""
    assert proven(says("t1", one), says("t2", other)) == [("t1", "t2")]
    assert proven(says("t1", other), says("t2", one)) == [("t1", "t2")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It takes 45 minutes.", "It takes 0.75 hours."),
        ("Population of Oslo: 717,710", "Population of Oslo: 718,000"),
        ("The fee is 5 EUR.", "The fee is 5.0 EUR."),
        ("The term ends on 1 May 2025.", "The term ends in May 2025."),
        ("Revenue in 2022 was 5 EUR.", "Revenue in 2023 was 7 EUR."),
        ("Oslo has 5 schools.", "Bergen has 7 schools."),
        ("The drug is safe.", "The drug is unsafe."),
        ("The fee of 5 EUR is due on Monday.", "The fee of 7 EUR is due on Tuesday."),
    ],
)
def test_what_code_cannot_prove_is_left_to_the_judge(one: str, other: str) -> None:
    """The same in another unit or rounded, about something else, or a matter of words."""
    assert proven(says("t1", one), says("t2", other)) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"Oslo": {"population": 700}}, {"Oslo": {"population": 900}}, True),
        ({"city": "Oslo", "people": 700}, {"city": "Oslo", "people": 900}, True),
        ({"oslo_population": 700}, {"osloPopulation": 900}, True),
        ([{"city": "Oslo", "people": 7}, {"city": "Rome", "people": 9}], [{"city": "Oslo", "people": 8}], True),
        ({"encrypted": True}, {"encrypted": False}, True),
        ({"city": "Oslo", "people": 700}, {"city": "Bergen", "people": 900}, False),
        ({"oslo_people": 700}, {"oslo_people": 700.0}, False),
        ({"score": 7}, {"score": 8}, False),
    ],
)
def test_values_of_data_are_compared_by_their_key(one: Any, other: Any, expected: bool) -> None:
    """And by what names the entry."""
    outcomes = [done(id, "ann", summary="", output=output) for id, output in (("t1", one), ("t2", other))]
    assert bool(proven(*outcomes)) == expected


def test_a_key_that_names_nothing_is_about_what_was_asked() -> None:
    """One schema for several things is the rule in a fan-out; two who were asked of the same thing can disagree."""
    asked = (
        Task(id="t1", instruction="Find the salary of a data engineer in Oslo."),
        Task(id="t2", instruction="Find the salary of a data engineer in Bergen."),
        Task(id="t3", instruction="Check what a data engineer earns in Bergen."),
    )
    salaries = {"t1": 850_000, "t2": 770_000, "t3": 850_000}
    outcomes = [done(id, "ann", summary="", output={"salary_nok": salary}) for id, salary in salaries.items()]
    assert proven(*outcomes[:2], tasks=asked) == []
    assert proven(*outcomes, tasks=asked) == [("t2", "t3")]
    assert proven(*outcomes[:2]) == [("t1", "t2")], "where nobody knows what was asked"


def test_a_task_does_not_contradict_itself() -> None:
    """Only different tasks do, even one that says both."""
    assert proven(says("t1", "The fee is 5 EUR.", "The fee is 7 EUR.")) == []
    both = says("t1", "The fee is 5 EUR.", "The fee is 7 EUR.")
    assert proven(both, says("t2", "The fee is 5 EUR.")) == [("t1", "t2")]


def test_many_values_of_one_thing_make_few_pairs() -> None:
    """Each statement is held against one that differs from it."""
    assert len(proven(*(says(f"t{n}", f"The fee is {n} EUR.") for n in range(300)))) == 299
    fives = [says(f"t{n}", "The fee is 5 EUR.") for n in range(50)]
    assert proven(*fives, says("u", "The fee is 7 EUR.")) == [("t0", "u")]


def test_the_same_finding_with_two_severities_is_a_contradiction() -> None:
    """At the same place and of the same category or in the same words; its subject is the place."""
    one = finds("t1", "Query from input.")
    [pair] = reconcile(
        {"t1": one, "t2": finds("t2", "The query is from input.", severity="info", end_line=9)}, ()
    ).proven
    assert (pair.subject, pair.first.text) == ("a.py:3 bug", "warning: Query from input.")
    assert proven(one, finds("t2", "Query from input.", severity="info", line=80)) == []
    assert proven(one, finds("t2", "Query from input.", severity="info", path="b.py")) == []
    assert proven(one, finds("t2", "The variable total is unused.", severity="info")) == []
    narrow = {"category": "sql-injection"}
    other = finds("t2", "Injection possible.", severity="info", **narrow)
    assert proven(finds("t1", "Query from input.", **narrow), other) == [("t1", "t2")]
