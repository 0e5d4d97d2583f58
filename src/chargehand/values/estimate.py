"""An estimate by constants and past runs of the same team and models -> an estimate that they correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Figures(NamedTuple):
    """What a run takes in all. `usd` is None where a price is not known."""

    calls: float
    tokens: float
    seconds: float
    usd: float | None


class PastRun(NamedTuple):
    """`by_plan` is the estimate from constants, `expected` the one that earlier runs gave, `used` what it came to."""

    by_plan: Figures
    expected: Figures
    used: Figures


class Learned(NamedTuple):
    """The least, the middle and the most that runs like the past ones would take."""

    low: Figures
    expected: Figures
    high: Figures


def learn(by_plan: Figures, past: Sequence[PastRun]) -> Learned:
    """Each figure times what past runs used for each unit of the estimate by their plan; as it is without any."""

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
    return used / guessed if guessed and used is not None else None


def _median(ratios: Sequence[float]) -> float:
    # Not that of `statistics`, which takes longer to import than a small run takes to plan.
    return sorted(ratios)[len(ratios) // 2]
