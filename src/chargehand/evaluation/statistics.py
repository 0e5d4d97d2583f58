"""Figures of cases -> their mean with a 95 % interval by bootstrap: cases are drawn anew, and within each its repeats.

Seeded by what is measured, so that the same figures always give the same interval.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean

from chargehand.value import Value

DRAWS = 1_000
CONFIDENCE = 0.95


class Estimate(Value):
    """A mean over cases, repeats of a case averaged first, and the interval it lies in. `n` counts cases."""

    mean: float
    low: float
    high: float
    n: int


# Case -> what was measured in each of its repeats.
Figures = Mapping[str, Sequence[float]]


def estimate(figures: Figures, seed: str) -> Estimate | None:
    """None where nothing was measured."""
    cases = [list(values) for values in figures.values() if values]
    if not cases:
        return None
    mean = fmean(fmean(values) for values in cases)
    first = cases[0][0]
    if all(value == first for values in cases for value in values):
        return Estimate(mean=mean, low=first, high=first, n=len(cases))
    low, high = _interval(cases, seed)
    # Rounding in a sum must not put the mean outside of its own interval.
    return Estimate(mean=mean, low=min(low, mean), high=max(high, mean), n=len(cases))


def difference(first: Figures, second: Figures, seed: str) -> Estimate | None:
    """How much higher the second is, case by case over the cases both have."""
    shared = [case for case in first if first[case] and second.get(case)]
    return estimate({case: [fmean(second[case]) - fmean(first[case])] for case in shared}, seed)


def _interval(cases: Sequence[Sequence[float]], seed: str) -> tuple[float, float]:
    chance = random.Random(seed)
    means = [fmean(values) for values in cases]
    # Drawing again from repeats that are all equal gives the same again.
    varied = {number: values for number, values in enumerate(cases) if any(value != values[0] for value in values)}
    numbers = range(len(cases))

    def drawn() -> float:
        if not varied:
            return fmean(chance.choices(means, k=len(means)))
        return fmean(
            sum(chance.choices(values, k=len(values))) / len(values)
            if (values := varied.get(number))
            else means[number]
            for number in chance.choices(numbers, k=len(cases))
        )

    found = sorted(drawn() for _ in range(DRAWS))
    return quantile(found, (1 - CONFIDENCE) / 2), quantile(found, (1 + CONFIDENCE) / 2)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of them lies, between the two nearest."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
