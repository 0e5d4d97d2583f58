"""Which failed calls are sent again, and after how long."""

from __future__ import annotations

import random

import pytest

from chargehand.engine.local.retry_rule import (
    PAUSES_S,
    RETRIES_AFTER_PAGE,
    TRANSPORT_RETRIES,
    backoff,
    may_retry,
)
from chargehand.errors import ErrorKind, ModelError


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("overloaded", TRANSPORT_RETRIES),
        ("rate_limited", TRANSPORT_RETRIES),
        ("connection", TRANSPORT_RETRIES),
        ("bad_request", 0),
        ("auth", 0),
    ],
)
def test_how_often_a_call_is_sent_again(kind: ErrorKind, most: int) -> None:
    """Not at all where the same request would fail again."""
    error = ModelError(kind, "It failed.")
    assert [may_retry(error, retries) for retries in range(6)] == [retries < most for retries in range(6)]


def test_a_page_in_place_of_a_reply_is_asked_for_once_more() -> None:
    """A gateway may have failed for a moment; more often there is no model server at the address."""
    page = ModelError("contract", "A page came.", transient=True)
    assert [may_retry(page, retries) for retries in range(3)] == [retries < RETRIES_AFTER_PAGE for retries in range(3)]


def test_pauses_grow_and_are_spread_by_chance() -> None:
    """At least half of the longest each: together they outlast a short outage, and they end within 90 s."""
    chance, failed = random.Random(1), ModelError("overloaded", "Too busy.")
    for retries, longest in enumerate(PAUSES_S):
        assert longest / 2 <= backoff(failed, retries, chance, 120.0) <= longest
        assert backoff(failed, retries, chance, 3.0) <= 1.0
    assert len(PAUSES_S) == TRANSPORT_RETRIES
    assert (sum(PAUSES_S) / 2 >= 30, sum(PAUSES_S) <= 90) == (True, True)


def test_what_the_provider_asked_for_is_waited_for() -> None:
    """And a little more, by chance."""
    asked = ModelError("rate_limited", "Slower.", retry_after=7.0)
    assert 7.0 <= backoff(asked, 0, random.Random(1), 2.0) <= 7.1
