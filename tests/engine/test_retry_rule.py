"""Which failed calls are sent again, and after how long."""

from __future__ import annotations

import random

import pytest

from chargehand.engine.local.retry_rule import (
    LONGEST_BACKOFF_S,
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


def test_the_pause_doubles_up_to_a_ceiling_or_is_what_the_provider_asked_for() -> None:
    """Spread by chance, so that calls that failed together are not sent together."""
    chance, failed = random.Random(1), ModelError("overloaded", "Too busy.")
    for retries in range(12):
        assert 0 <= backoff(failed, retries, chance) <= min(LONGEST_BACKOFF_S, 0.5 * 2**retries)
    asked = ModelError("rate_limited", "Slower.", retry_after=7.0)
    assert 7.0 <= backoff(asked, 0, chance) <= 7.1
