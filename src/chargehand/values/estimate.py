"""An estimate by constants, and past runs of the same team and models -> the estimate corrected by those runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Figures(NamedTuple):
    """What a run takes in total. `usd` is None when a price is unknown."""

    calls: float
    tokens: float
    seconds: float
    usd: float | None


class PastRun(NamedTuple):
    """`by_plan` is the estimate from constants, `expected` the estimate from earlier runs, `used` the real figures."""

    by_plan: Figures
    expected: Figures
    used: Figures


class Learned(NamedTuple):
    """The least, the middle and the most that runs like the past ones would take."""

    low: Figures
    expected: Figures
    high: Figures


def learn(by_plan: Figures, past: Sequence[PastRun]) -> Learned:
    """Each figure times the ratio of use to estimate in past runs; without past runs, the figure unchanged."""

    def scale(name: str, choose: Callable[[Sequence[float]], float]) -> float | None:
        figure: float | None = getattr(by_plan, name)
        ratios = [ratio for run in past if (ratio := _ratio(run, name)) is not None]
        return figure if figure is None or not ratios else figure * choose(ratios)

    def scale_all(choose: Callable[[Sequence[float]], float]) -> Figures:
        calls, tokens, seconds, usd = (scale(name, choose) for name in Figures._fields)
        return Figures(calls or 0.0, tokens or 0.0, seconds or 0.0, usd)

    return Learned(scale_all(min), scale_all(_median), scale_all(max))


def _ratio(run: PastRun, name: str) -> float | None:
    guessed, used = getattr(run.by_plan, name), getattr(run.used, name)
    # A run that used nothing, because its model failed or all was reused, says nothing about others.
    return used / guessed if guessed and used else None


def _median(ratios: Sequence[float]) -> float:
    # `statistics.median` is not used: its import takes longer than a small run takes to plan.
    ordered, half = sorted(ratios), len(ratios) // 2
    return ordered[half] if len(ratios) % 2 else (ordered[half - 1] + ordered[half]) / 2
