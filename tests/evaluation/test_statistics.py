"""Means with intervals: what they must do whatever the figures are."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.evaluation.plots import span
from chargehand.evaluation.statistics import MANY, Estimate, difference, estimate, quantile
from tests.counts import examples

VALUES = st.floats(-1e6, 1e6)
FIGURES = st.dictionaries(st.text(max_size=3), st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=examples(25), deadline=None)
@given(FIGURES)
def test_the_mean_lies_in_its_interval_and_the_interval_in_the_values(figures: dict[str, list[float]]) -> None:
    """And the same figures give the same interval every time."""
    found = estimate(figures)
    assert found is not None
    values = [value for repeats in figures.values() for value in repeats]
    slack = 1e-6 * max(1.0, *map(abs, values))
    assert min(values) - slack <= found.low <= found.mean <= found.high <= max(values) + slack
    assert found.n == len(figures)
    assert found.mean == pytest.approx(fmean(fmean(repeats) for repeats in figures.values()))
    assert estimate(figures) == found


def test_nothing_measured_has_no_mean() -> None:
    """None, never 0."""
    assert estimate({}) is None
    assert estimate({"a": []}) is None
    assert difference({"a": [1.0]}, {"b": [1.0]}) is None


def test_figures_that_are_all_equal_have_an_interval_of_no_width() -> None:
    """There is nothing to draw from: none is shown."""
    found = estimate({"a": [0.1, 0.1], "b": [0.1]})
    assert found is not None
    assert (found.low, found.high) == (0.1, 0.1)
    assert span(found) == "0.10"


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Of 120 samples of 60 coin flips with chance 0.7, about 95 % of the intervals hold 0.7."""
    chance = random.Random(7)
    held = 0
    for _ in range(120):
        sample = {str(case): [float(chance.random() < 0.7)] for case in range(60)}
        found = estimate(sample, share=True)
        assert found is not None
        held += found.low <= 0.7 <= found.high
    assert 0.88 <= held / 120 <= 1


def test_repeats_of_one_case_are_not_taken_for_more_cases() -> None:
    """Twenty repeats of two cases that differ leave the interval as wide as two cases do."""
    repeated = {"a": [1.0] * 20, "b": [0.0] * 20}
    assert estimate(repeated) == Estimate(mean=0.5, low=0.0, high=1.0, n=2)
    assert estimate(repeated, share=True) == estimate({"a": [1.0], "b": [0.0]}, share=True)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [(3, 3, 0.4385, 1), (0, 3, 0, 0.5615), (1, 1, 0.207, 1), (7, 8, 0.529, 0.978), (57, 57, 0.937, 1)],
)
def test_all_passed_of_a_few_is_no_certainty(passed: int, n: int, low: float, high: float) -> None:
    """Wilson's interval for what is 0 or 1 in every case."""
    found = estimate({str(case): [float(case < passed)] for case in range(n)}, share=True)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-4), pytest.approx(high, abs=5e-4))


def test_many_cases_have_the_interval_that_drawing_would_give() -> None:
    """Without drawing."""
    cases = {str(case): [float(case % 7)] for case in range(MANY)}
    normal = estimate(cases)
    drawn = estimate({case: cases[case] for case in list(cases)[1:]})
    assert normal is not None
    assert drawn is not None
    assert (normal.low, normal.high) == (pytest.approx(drawn.low, abs=0.02), pytest.approx(drawn.high, abs=0.02))


def test_a_difference_is_taken_case_by_case() -> None:
    """Cases of very different difficulty do not hide that one is better by the same amount in each."""
    first = {str(case): [float(case)] for case in range(20)}
    second = {str(case): [case + 0.5] for case in range(20)}
    found = difference(first, second)
    assert found is not None
    assert (found.low, found.mean, found.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(("share", "value"), [(0, 1), (1, 4), (0.5, 2.5), (1 / 3, 2)])
def test_a_quantile_lies_between_the_two_nearest(share: float, value: float) -> None:
    """As in every textbook."""
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == pytest.approx(value)
