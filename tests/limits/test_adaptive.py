"""The concurrency limit: one more for a round of successes, half for a round with a refusal."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.limits import Adaptive
from tests.counts import examples


def test_fifty_refusals_of_calls_already_in_flight_halve_once() -> None:
    """A burst tells one thing."""
    adaptive = Adaptive(most=50)
    for left in range(50, 0, -1):
        adaptive.record_throttle(1.0, 0, left, None)
    assert adaptive.limit == 25
    assert adaptive.resume_at < 1.0


def test_an_unlimited_provider_is_halved_from_what_was_in_flight() -> None:
    """Not from infinity, which would take 60 rounds."""
    adaptive = Adaptive()
    adaptive.record_throttle(0.0, 0, 40, None)
    assert adaptive.limit == 20


def test_it_grows_by_one_for_as_many_successes_as_its_limit() -> None:
    """And never over the most."""
    adaptive = Adaptive(most=5, start=3)
    limits = list[int]()
    for _ in range(14):
        adaptive.record_success(0, adaptive.limit)
        limits.append(adaptive.limit)
    assert limits == [3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5]


def test_successes_that_do_not_test_the_limit_do_not_raise_it() -> None:
    """One call at a time says nothing about twenty at once."""
    adaptive = Adaptive(most=50, start=20)
    for _ in range(1_000):
        adaptive.record_success(0, 1)
    assert adaptive.limit == 20


def test_retry_after_holds_everything_back_even_when_it_comes_late() -> None:
    """The longest one asked for counts."""
    adaptive = Adaptive(most=8)
    adaptive.record_throttle(10.0, 0, 8, 5.0)
    adaptive.record_throttle(11.0, 0, 7, 30.0)
    adaptive.record_throttle(12.0, 0, 6, 1.0)
    assert adaptive.resume_at == 41.0
    assert adaptive.limit == 4


def test_refusals_with_no_success_in_between_are_paused_longer_and_longer() -> None:
    """A limit of time, not of concurrency: a success ends the row."""
    adaptive = Adaptive(most=1)
    pauses = list[float]()
    for _ in range(9):
        adaptive.record_throttle(0.0, adaptive.epoch, 1, None)
        pauses.append(adaptive.resume_at)
    assert pauses[1:] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert adaptive.asked_until < 0, "the provider asked for none of them: this is not a quota"
    adaptive.record_success(adaptive.epoch, 1)
    adaptive.record_throttle(1_000.0, adaptive.epoch, 1, None)
    assert adaptive.resume_at == 60.0


def test_a_steady_capacity_is_tested_less_and_less() -> None:
    """Refused at 4 again and again, it takes longer each time to go back there; a round survived ends that."""
    adaptive = Adaptive(most=50, start=4)
    rounds = list[int]()
    for _ in range(6):
        adaptive.record_throttle(0.0, adaptive.epoch, 4, None)
        successes = 0
        while adaptive.limit < 4:
            adaptive.record_success(adaptive.epoch, adaptive.limit)
            successes += 1
        rounds.append(successes - 2)  # two for the step from 2 to 3
    assert rounds == [3 * 2, 3 * 4, 3 * 8, 3 * 16, 3 * 16, 3 * 16]
    for _ in range(4 + 5 + 6):
        adaptive.record_success(adaptive.epoch, adaptive.limit)
    assert adaptive.limit == 7


@settings(max_examples=examples(100), deadline=None)
@given(
    st.integers(1, 100),
    st.one_of(st.none(), st.integers(-5, 200)),
    st.lists(st.tuples(st.sampled_from(["ok", "throttled", "tighten"]), st.integers(1, 100), st.integers(0, 3))),
)
def test_the_limit_stays_between_one_and_the_most(
    most: int, start: int | None, steps: list[tuple[str, int, int]]
) -> None:
    """Whatever comes back, of whatever epoch."""
    adaptive = Adaptive(most=most, start=start)
    for number, (step, amount, late) in enumerate(steps):
        epoch = adaptive.epoch - late
        match step:
            case "ok":
                adaptive.record_success(epoch, amount)
            case "throttled":
                adaptive.record_throttle(number, epoch, amount, None)
            case _:
                adaptive.tighten(amount)
        assert 1 <= adaptive.limit <= adaptive.most <= most
