"""Buckets: never more than the burst over the rate in any window, and never stuck."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.limits import Bucket, Rate
from tests.counts import examples

Request = tuple[float, int]  # seconds after the one before, tokens


def served(rate: Rate, requests: list[Request]) -> list[tuple[float, int]]:
    """When each request goes, each as soon as it may."""
    now, out = 0.0, list[tuple[float, int]]()
    for gap, tokens in requests:
        now += gap
        for _ in range(3):
            now += (wait := rate.wait_for(now, 1, tokens))
            if not wait:
                break
        assert rate.wait_for(now, 1, tokens) == 0.0, "waiting what it said was not enough"
        rate.take(now, 1, tokens)
        out.append((now, tokens))
    return out


def over(sent: list[tuple[float, int]], bucket: Bucket) -> float:
    """By how much any window exceeds rate and burst; a last request larger than the bucket may go alone."""
    worst = float("-inf")
    for i in range(len(sent)):
        total = 0
        for at, amount in sent[i:]:
            total += amount
            allowed = bucket.capacity + (at - sent[i][0]) * bucket.per_minute / 60 + max(0, amount - bucket.capacity)
            worst = max(worst, total - allowed)
    return worst


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(1, 600),
    st.integers(1, 100_000),
    st.lists(st.tuples(st.sampled_from([0.0, 0.0, 0.1, 3.0, 90.0]), st.integers(0, 50_000)), max_size=40),
)
def test_no_window_holds_more_than_rate_and_burst(rpm: int, tpm: int, requests: list[Request]) -> None:
    """For requests and for tokens, in every window from any request to any later one."""
    rate = Rate(Bucket(rpm), Bucket(tpm))
    sent = served(rate, requests)
    assert rate.requests
    assert rate.tokens
    assert over([(at, 1) for at, _ in sent], rate.requests) < 1e-3
    assert over(sent, rate.tokens) < 1e-3 * tpm


def test_a_minute_at_full_speed_is_the_limit_and_a_sixth() -> None:
    """60 a minute: 10 at once, then one a second; the whole allowance is used."""
    sent = served(Rate(Bucket(60), None), [(0.0, 0)] * 80)
    assert sum(at == 0.0 for at, _ in sent) == 10
    assert sum(at <= 60.0 for at, _ in sent) == 70
    assert sent[-1][0] == pytest.approx(70.0)


def test_a_request_larger_than_the_bucket_goes_when_the_bucket_is_full() -> None:
    """It pays afterwards: the next one waits until the debt is filled up."""
    rate = Rate(None, Bucket(6_000))
    rate.take(0.0, 1, 1_000)
    assert rate.wait_for(0.0, 1, 5_000) == pytest.approx(10.0)
    rate.take(10.0, 1, 5_000)
    assert rate.wait_for(10.0, 1, 100) == pytest.approx(41.0)


@pytest.mark.parametrize(("actual", "wait"), [(1_000, 10.0), (0, 0.0), (2_000, 20.0), (500, 5.0)])
def test_what_a_call_really_used_replaces_the_estimate(actual: int, wait: float) -> None:
    """Less is given back, more is owed."""
    rate = Rate(None, Bucket(6_000))
    rate.take(0.0, 1, 1_000)
    rate.correct(0.0, 1_000, actual)
    assert rate.wait_for(0.0, 1, 1_000) == pytest.approx(wait)


def test_giving_back_never_fills_over_the_brim() -> None:
    """A correction that comes when the bucket is full again adds nothing."""
    bucket = Bucket(60)
    bucket.take(0.0, 5)
    bucket.take(100.0, -5)
    bucket.take(100.0, 10)
    assert bucket.wait_for(100.0, 1) == pytest.approx(1.0)


def test_the_stricter_limit_holds() -> None:
    """Whichever was given first, and a limit that was not given changes nothing."""
    for given_limits in ([60, 600], [600, 60], [60, None], [None, 60]):
        rate = Rate()
        for rpm in given_limits:
            rate.tighten(rpm, None)
        assert rate.requests
        assert rate.requests.per_minute == 60
        assert rate.tokens is None
