"""Numbers in words."""

from __future__ import annotations

import pytest

from chargehand.trace.number_text import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (0, "0.0 s"),
        (0.0354, "35 ms"),
        (0.0994, "99 ms"),
        (0.0996, "0.1 s"),
        (0.901, "0.9 s"),
        (4.24, "4.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3_780, "1 h 03 min"),
    ],
)
def test_a_duration_has_one_unit_from_a_tenth_of_a_second_to_a_minute(seconds: float, words: str) -> None:
    """Times in one column can be compared at a glance."""
    assert duration(seconds) == words
