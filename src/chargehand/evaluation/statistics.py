"""Figures of cases -> their mean with a 95 % interval for cases like them.

Shares that are 0 or 1 in every case have Wilson's interval, which is also correct if all or no cases pass. Any other
figure has a bootstrap interval, with the same draws every time, so that equal figures give equal intervals.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import sqrt
from statistics import fmean, stdev

from chargehand.values.base import Value

DRAWS = 1_000
CONFIDENCE = 0.95
# The quantile of the standard normal distribution for it.
_Z = 1.959964
# With fewer cases than this, a bootstrap has too little to draw from.
FEWEST = 5
# From this number of cases on, the normal interval is the same and needs no draws.
MANY = 500


class Estimate(Value):
    """A mean over cases, with repeats of a case averaged first, and its interval. `n` counts cases.

    Without an interval, `low` equals `high`: there is one case, or all cases gave the same figure.
    """

    mean: float
    low: float
    high: float
    n: int


# Case -> what was measured in each of its repeats.
Figures = Mapping[str, Sequence[float]]


def estimate(figures: Figures, *, share: bool = False) -> Estimate | None:
    """None if nothing was measured. A `share` is always between 0 and 1."""
    cases = [values for values in figures.values() if values]
    if not cases:
        return None
    means = [values[0] if len(values) == 1 else fmean(values) for values in cases]
    mean = fmean(means)
    if share and all(value in (0.0, 1.0) for values in cases for value in values):
        low, high = _wilson(mean, len(means))
    elif all(each == means[0] for each in means):
        low = high = mean = means[0]
    else:
        low, high = _normal(means, mean) if len(means) >= MANY else _bootstrap(means)
    # Rounding in a sum must not put the mean outside its own interval.
    return Estimate(mean=mean, low=min(low, mean), high=max(high, mean), n=len(means))


def difference(first: Figures, second: Figures) -> Estimate | None:
    """How much higher the second is, case by case over the shared cases."""
    shared = [case for case in first if first[case] and second.get(case)]
    return estimate({case: [fmean(second[case]) - fmean(first[case])] for case in shared})


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Repeats of a case do not count as more cases; a case counts with its share of passed repeats."""
    middle = share + _Z**2 / (2 * n)
    spread = _Z * sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    whole = 1 + _Z**2 / n
    return max((middle - spread) / whole, 0.0), min((middle + spread) / whole, 1.0)


def _normal(means: Sequence[float], mean: float) -> tuple[float, float]:
    spread = _Z * stdev(means, mean) / sqrt(len(means))
    return mean - spread, mean + spread


def _bootstrap(means: Sequence[float]) -> tuple[float, float]:
    found = sorted(sum(map(means.__getitem__, draw)) / len(means) for draw in _draws(len(means)))
    return quantile(found, (1 - CONFIDENCE) / 2), quantile(found, (1 + CONFIDENCE) / 2)


@lru_cache(maxsize=8)
def _draws(n: int) -> tuple[list[int], ...]:
    """The cases of each draw: the same for all figures with this number of cases."""
    chance = random.Random(n)
    return tuple(chance.choices(range(n), k=n) for _ in range(DRAWS))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies, interpolated between the two nearest."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
