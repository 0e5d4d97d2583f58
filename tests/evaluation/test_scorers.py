"""Scorers: what counts as the right answer, as tables and as properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.evaluation import graphs, scorers
from chargehand.evaluation.case import (
    AnswerExpectation,
    Number,
    PlanCase,
    RoutingCase,
    RunExpectation,
    WorkerExpectation,
)
from chargehand.values.outcome import Usage
from chargehand.values.report import Contradiction, Gap, Provenance, Report, Timing
from tests.evaluation.samples import graph, task

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def passed(expect: dict[str, Any], output: Any, summary: str = "") -> list[bool]:
    found = scorers.check_worker(WorkerExpectation.model_validate(expect), output, summary)
    return [check.passed for check in found]


@pytest.mark.parametrize(
    ("expect", "output", "good"),
    [
        ({"exact": "Oslo"}, " Oslo\n", True),
        ({"exact": "Oslo"}, "oslo", False),
        ({"exact": None}, "Oslo", False),
        ({"exact": 1}, 1.0, True),
        ({"exact": 1}, True, False),
        ({"exact": {"a": [1, 2]}}, {"a": [1, 2.0]}, True),
        ({"exact": {"a": [1, 2]}}, {"a": [2, 1]}, False),
        ({"exact": {"a": 1}}, {"a": 1, "b": 2}, False),
        ({"contains": "the Fjord"}, "It is at THE\n  fjord.", True),
        ({"contains": "fjord"}, {"where": "Fjord"}, True),
        ({"contains": "fjord"}, "ford", False),
        ({"contains": "1 ½"}, "1 ½", True),
        ({"lacks": "advice"}, "Take this Advice.", False),
        ({"lacks": "advice"}, "Nothing of it.", True),
        ({"numeric": 4}, "There are 4.", True),
        ({"numeric": 4}, "There are 44, or 4.5, or t4.", False),
        ({"numeric": 1200}, "1,200 people in 2024", True),
        ({"numeric": -3.5}, "It fell by \u22123.5 %", True),
        ({"numeric": 4}, 4.0, True),
        ({"numeric": 1}, True, False),
        ({"numeric": {"value": 4, "tolerance": 0.1}}, 4.1, True),
        ({"numeric": {"value": 4, "tolerance": 0.1}}, 4.11, False),
        ({"numeric": {"value": 200, "relative": 0.01}}, "about 198", True),
        ({"numeric": {"value": 200, "relative": 0.01}}, "about 197", False),
        ({"numeric": {"value": 2, "field": "a.1.b"}}, {"a": [{"b": 1}, {"b": 2}]}, True),
        ({"numeric": {"value": 2, "field": "a.0.b"}}, {"a": [{"b": 1}, {"b": 2}]}, False),
        ({"numeric": {"value": 2, "field": "a.9"}}, {"a": [2]}, False),
        ({"numeric": {"value": 2, "field": "x"}}, "2", False),
    ],
)
def test_a_golden_answer_is_met_or_not(expect: dict[str, Any], output: Any, good: bool) -> None:
    """Exact, contains, lacks and numeric, each with what nearly meets it."""
    assert passed(expect, output) == [good]


def test_without_an_output_the_summary_is_the_answer() -> None:
    """A worker that puts its answer into the summary has still answered."""
    assert passed({"contains": "oslo"}, None, "It is Oslo.") == [True]
    assert passed({"contains": "oslo"}, 0, "It is Oslo.") == [False]


@given(JSON_VALUES)
def test_every_json_value_is_the_same_as_itself(value: Any) -> None:
    """Whatever is given, the exact golden answer for it is itself, and only a changed one is another."""
    assert scorers.same(value, value)
    assert not scorers.same([value], value)
    assert passed({"exact": value}, value) == [True] or value in (None, "")


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_a_number_allows_its_neighbourhood_and_nothing_beyond(value: float, tolerance: float) -> None:
    """The tolerance is on both sides, and more than it is too much."""
    number = Number(value=value, tolerance=tolerance)
    assert number.allows(value)
    assert number.allows(value + tolerance * 0.99)
    assert number.allows(value - tolerance * 0.99)
    assert not number.allows(value + tolerance * 1.01)


@given(st.integers(-(10**12), 10**12))
def test_every_whole_number_is_found_in_text_however_it_is_grouped(value: int) -> None:
    """A figure with separators is the same figure."""
    assert passed({"numeric": value}, f"It comes to {value:,} in all.") == [True]
    assert passed({"numeric": value}, f"({value})") == [True]


def test_routing_counts_the_secondary_worker_only_where_one_is_given() -> None:
    """Without a label for it, any secondary will do."""
    one = RoutingCase(request="Help", primary="a")
    two = RoutingCase(request="Help", primary="a", secondary="b")
    assert [check.passed for check in scorers.check_route(one, "a", "x")] == [True]
    assert [check.passed for check in scorers.check_route(two, "a", "x")] == [True, False]
    assert [check.passed for check in scorers.check_route(two, "b", "b")] == [False, True]


REFERENCE = graph(task("t1", "r"), task("t2", "r"), task("t3", "w", "t1", "t2"))


@pytest.mark.parametrize(
    ("plan", "nodes", "edges"),
    [
        (REFERENCE, (1, 1, 1), (1, 1, 1)),
        (graph(task("x", "w", "y", "z"), task("y", "r"), task("z", "r")), (1, 1, 1), (1, 1, 1)),
        (graph(task("t1", "r"), task("t3", "w", "t1")), (1, 2 / 3, 0.8), (1, 0.5, 2 / 3)),
        (graph(task("t1", "r"), task("t2", "r"), task("t3", "w")), (1, 1, 1), (0, 0, 0)),
        (graph(task("t1", "q"), task("t2", "q")), (0, 0, 0), (0, 0, 0)),
        (graph(task("t1", "w"), task("t2", "r", "t1")), (1, 2 / 3, 0.8), (0, 0, 0)),
    ],
)
def test_a_plan_is_compared_with_its_reference_by_workers(plan: Any, nodes: Any, edges: Any) -> None:
    """Ids and order do not matter; missing tasks lower recall, an edge the wrong way round is no edge."""
    _, figures, score = scorers.check_plan(PlanCase(request="x", plan=REFERENCE), plan)
    assert [figures[f"node_{name}"] for name in ("precision", "recall", "f1")] == pytest.approx(nodes)
    assert [figures[f"edge_{name}"] for name in ("precision", "recall", "f1")] == pytest.approx(edges)
    assert score == pytest.approx((nodes[2] + edges[2]) / 2)


def test_no_plan_is_worth_nothing() -> None:
    """A planner that gives no valid plan scores 0, even against a reference without edges."""
    checks, figures, score = scorers.check_plan(PlanCase(request="x", plan=graph(task("t1", "r"))), None, "no JSON")
    assert [(check.passed, check.said) for check in checks] == [(False, "no JSON")]
    assert (score, figures["validity"], figures["node_f1"], figures["edge_f1"]) == (0, 0, 0, 0)


def test_parallelism_is_tasks_for_each_step_of_the_longest_chain() -> None:
    """A chain has 1; what the reference does at the same time and the plan does not is lost."""
    chain = graph(task("t1", "r"), task("t2", "r", "t1"), task("t3", "w", "t2"))
    assert (graphs.parallelism(chain), graphs.parallelism(REFERENCE)) == (1, 1.5)
    _, figures, _ = scorers.check_plan(PlanCase(request="x", plan=REFERENCE), chain)
    assert figures["parallelism_kept"] == pytest.approx(2 / 3)


WORKERS = st.sampled_from("abc")


@given(st.lists(WORKERS, max_size=8), st.lists(WORKERS, max_size=8))
def test_f1_is_symmetric_and_between_none_and_all(ours: list[str], theirs: list[str]) -> None:
    """Precision one way is recall the other way; only equal multisets are perfect."""
    there, back = graphs.match(ours, theirs), graphs.match(theirs, ours)
    assert 0 <= there.f1 <= 1
    assert there.f1 == back.f1
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert (there.f1 == 1) == (sorted(ours) == sorted(theirs))
    if there.precision + there.recall:
        harmonic = 2 * there.precision * there.recall / (there.precision + there.recall)
        assert there.f1 == pytest.approx(harmonic)


def failed(checks: Any) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_an_answer_is_checked_for_words_citations_contradictions_and_gaps() -> None:
    """Each expectation is a check of its own, and says what was found instead."""
    expect = AnswerExpectation.model_validate(
        {"contains": ["well", "ill"], "cites": ["t1", "t2"], "contradictions": 1, "gaps": ["t3", "t4"]}
    )
    checks = scorers.check_answer(
        expect,
        "All is well.",
        Provenance(citations={"1": ("t1",)}),
        [Contradiction(subject="size"), Contradiction(subject="age")],
        [Gap(task="t3", reason="no data")],
    )
    assert failed(checks) == ["contains 'ill'", "cites t2", "contradictions", "gaps of t4"]
    assert "there are 2: size; age" in [check.said for check in checks]


@pytest.mark.parametrize(
    ("expect", "wrong"),
    [
        ({"status": "complete"}, ["status"]),
        ({"status": ["complete", "partial"]}, []),
        ({"max_tokens": 149}, ["max_tokens"]),
        ({"max_tokens": 150}, []),
        ({"max_usd": 1}, ["max_usd"]),
        ({"max_seconds": 1.9}, ["max_seconds"]),
        ({"max_seconds": 2}, []),
        ({"gaps": {"min": 1}}, []),
        ({"gaps": {"max": 0}}, ["gaps"]),
        ({"gaps": 0}, ["gaps"]),
    ],
)
def test_a_run_is_held_to_its_status_and_its_limits(expect: dict[str, Any], wrong: list[str]) -> None:
    """A price that is unknown keeps no limit."""
    report = Report(
        run="r",
        request="x",
        status="partial",
        answer="Well.",
        gaps=(Gap(reason="some"),),
        usage=Usage(input_tokens=100, output_tokens=50, usd=None),
        timing=Timing(wall_s=2.0),
    )
    assert failed(scorers.ran(RunExpectation.model_validate(expect), report)) == wrong
