"""The line of figures under an answer."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.cli.report_footer import figures
from chargehand.trace.number_text import share


def _report(cached: int) -> Any:
    usage = {"calls": 3, "input_tokens": 2_000, "output_tokens": 100, "cached_tokens": cached, "usd": None}
    timing = {"wall_s": 1.0, "sequential_s": 0.0, "speedup": 1.0}
    return {"outcomes": [], "plan": None, "timing": timing, "usage": usage, "confidence": None}


@pytest.mark.parametrize(
    ("cached", "says"), [(0, "2,100 tokens ·"), (1_500, "2,100 tokens (75 % of the input from cache)")]
)
def test_the_share_from_a_cache_is_shown_where_there_is_one(cached: int, says: str) -> None:
    """Of the input, as that is what a cache makes cheaper."""
    assert says in figures(_report(cached))


@pytest.mark.parametrize(
    ("part", "whole", "says"), [(999, 1_000, "99 %"), (5, 5, "100 %"), (1, 0, "0 %"), (9, 5, "100 %")]
)
def test_a_share_is_not_rounded_up(part: int, whole: int, says: str) -> None:
    """Nearly all is not all, and odd counts break nothing."""
    assert share(part, whole) == says
