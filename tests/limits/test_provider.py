"""A provider's limits joined: who is served when, what cancellation and outages cost, and what loops share."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.errors import UsageError
from chargehand.limits import BreakerChange, CallResult, Permit, ProviderLimits, ProviderRegistry, Refused
from chargehand.testing import VirtualLoop, run_virtual
from tests.counts import examples


def now() -> float:
    return asyncio.get_running_loop().time()


async def permit(limits: ProviderLimits, run: str = "r", order: int = 0, tokens: int = 0) -> Permit:
    got = await limits.acquire(run, order, tokens)
    assert isinstance(got, Permit)
    return got


async def fail(limits: ProviderLimits, times: int, result: CallResult = "connection") -> list[BreakerChange]:
    return [change for _ in range(times) for change in (await permit(limits)).give_back(result, now())]


def left_behind(limits: ProviderLimits) -> tuple[int, int, object]:
    return limits.in_flight, limits.waiting, limits._timer  # pyright: ignore[reportPrivateUsage]


EMPTY = (0, 0, None)


@dataclass(slots=True)
class Simulated:
    """A provider with a hidden capacity and outages: refuses what is over it at once, answers the rest in a while."""

    capacity: int = 1_000_000
    latency_s: float = 2.0
    outage: tuple[float, float] = (0.0, 0.0)
    busy: int = 0
    most_busy: int = 0
    answered: int = 0
    # When each call that came to nothing was sent.
    wasted: list[float] = field(default_factory=list[float])

    async def call(self) -> CallResult:
        sent = now()
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        try:
            if self.outage[0] <= sent < self.outage[1]:
                await asyncio.sleep(0.05)
                return self._waste(sent, "connection")
            if self.busy > self.capacity:
                await asyncio.sleep(0.05)
                return self._waste(sent, "rate_limited")
            await asyncio.sleep(self.latency_s)
            if sent < self.outage[0] <= now():
                return self._waste(sent, "connection")
            self.answered += 1
            return "ok"
        finally:
            self.busy -= 1

    def _waste(self, sent: float, result: CallResult) -> CallResult:
        self.wasted.append(sent)
        return result


async def worker(
    limits: ProviderLimits, provider: Simulated, calls: int, chance: random.Random, changes: list[BreakerChange]
) -> None:
    """Makes its calls one after the other, each as often as it takes, with a little backoff."""
    for _ in range(calls):
        result: CallResult = "other"
        while result != "ok":
            granted = await permit(limits)
            changes += [granted.change] if granted.change else []
            result = await provider.call()
            changes += granted.give_back(result, now())
            if result != "ok":
                await asyncio.sleep(chance.uniform(0, 0.5))


def play(
    limits: ProviderLimits, provider: Simulated, workers: int, calls: int, seed: int = 0
) -> tuple[list[BreakerChange], float]:
    changes = list[BreakerChange]()

    async def main() -> None:
        chance = random.Random(seed)
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker(limits, provider, calls, chance, changes))
        assert left_behind(limits) == EMPTY

    _, seconds = run_virtual(main())
    assert provider.answered == workers * calls
    return changes, seconds


# -- what a provider's trouble costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at", [0.0, 31.0])
def test_an_outage_of_a_minute_costs_fewer_than_twenty_calls(at: float, seed: int) -> None:
    """20 workers, 8 at once, all retrying: those in flight and one trial now and then; afterwards all work is done."""
    provider = Simulated(outage=(at, at + 60.0))
    changes, _ = play(ProviderLimits("p", max_concurrent=8), provider, workers=20, calls=10, seed=seed)
    assert len(provider.wasted) < 20
    assert changes[0].state == "open"
    assert changes[-1].state == "closed"


@pytest.mark.parametrize("seed", range(5))
def test_an_outage_while_twenty_calls_are_in_flight_is_met_by_few_new_ones(seed: int) -> None:
    """The twenty are lost with the provider; what is sent into the outage after that are trials."""
    provider = Simulated(outage=(31.0, 91.0))
    play(ProviderLimits("p"), provider, workers=20, calls=30, seed=seed)
    assert sum(sent >= 31.0 for sent in provider.wasted) < 10


@pytest.mark.parametrize("capacity", [1, 3, 10, 40])
def test_the_limit_finds_a_hidden_capacity(capacity: int) -> None:
    """50 workers on a provider that takes `capacity` at once: few calls are refused, and most of it is used."""
    provider = Simulated(capacity=capacity)
    calls = 6 * capacity
    _, seconds = play(ProviderLimits("p"), provider, workers=50, calls=calls)
    total = 50 * calls
    ideal = total / capacity * provider.latency_s
    wasted = len(provider.wasted)
    assert wasted < 100 + total / 20
    assert seconds < ideal / 0.7


def test_a_429_burst_does_not_wipe_the_run() -> None:
    """A minute's allowance is used up and nothing says until when: 50 workers spend under 50 calls on finding out."""
    provider = Simulated(capacity=0, latency_s=1.0)
    limits = ProviderLimits("p", max_concurrent=16)

    async def main() -> None:
        asyncio.get_running_loop().call_later(60.0, setattr, provider, "capacity", 1_000)
        chance = random.Random(1)
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(worker(limits, provider, 1, chance, []))

    run_virtual(main())
    assert provider.answered == 50
    assert len(provider.wasted) < 50


def test_retry_after_is_honoured_by_everybody() -> None:
    """One call is told to wait 30 seconds; nothing at all starts before."""

    async def main() -> list[float]:
        limits = ProviderLimits("p", max_concurrent=4)
        (await permit(limits)).give_back("rate_limited", now(), retry_after=30.0)
        starts = list[float]()

        async def one() -> None:
            granted = await permit(limits)
            starts.append(now())
            await asyncio.sleep(1)
            granted.give_back("ok", now())

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(one())
        return starts

    starts, _ = run_virtual(main())
    assert min(starts) == 30.0


# -- the breaker of a provider ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "opens"),
    [
        ("connection", True),
        ("timeout", True),
        ("overloaded", True),
        ("rate_limited", False),
        ("other", False),
        ("cancelled", False),
        ("unsent", False),
        ("ok", False),
    ],
)
def test_which_results_open_the_breaker(result: CallResult, opens: bool) -> None:
    """5xx, connection and timeout do, other 4xx never."""

    async def main() -> str:
        limits = ProviderLimits("p", threshold=3)
        changes = await fail(limits, 3, result)
        assert [change.state for change in changes] == (["open"] if opens else [])
        return limits.breaker.state

    state, _ = run_virtual(main())
    assert state == ("open" if opens else "closed")


def test_a_refused_key_closes_the_provider_to_its_run_at_once() -> None:
    """Waiters of that run are refused, other runs go on, and the run's end forgets it."""

    async def main() -> None:
        limits = ProviderLimits("p", max_concurrent=1)
        first = await permit(limits, "bad")
        waiting = [asyncio.create_task(limits.acquire("bad", 0, 0)) for _ in range(2)]
        other = asyncio.create_task(limits.acquire("good", 0, 0))
        await asyncio.sleep(0)
        changes = first.give_back("auth", now(), reason="401")
        assert [(change.name, change.state) for change in changes] == [("provider:p", "open")]
        for refused in await asyncio.gather(*waiting):
            assert isinstance(refused, Refused)
            assert refused.until is None
            assert "401" in refused.reason
        granted = await other
        assert isinstance(granted, Permit)
        assert granted.give_back("ok", now()) == []
        assert isinstance(await limits.acquire("bad", 0, 0), Refused)
        limits.leave("bad", now())
        assert isinstance(await limits.acquire("bad", 0, 0), Permit)

    run_virtual(main())


def test_an_outage_refuses_at_once_who_will_not_wait() -> None:
    """With when to try again and why; when that time has come the first caller is the trial."""

    async def main() -> None:
        limits = ProviderLimits("p", threshold=2, cooldown_s=4.0)
        await fail(limits, 2)
        refused = await limits.acquire("r", 0, 0, max_wait=0)
        assert isinstance(refused, Refused)
        assert refused.until == 4.0
        assert "2 errors in a row" in refused.reason
        await asyncio.sleep(4)
        trial = await limits.acquire("r", 0, 0, max_wait=0)
        assert isinstance(trial, Permit)
        assert trial.change == BreakerChange("provider:p", "half_open", "one call is tried after 4 s")
        assert isinstance(await limits.acquire("r", 0, 0, max_wait=0), Refused)
        assert [change.state for change in trial.give_back("ok", now())] == ["closed"]
        assert isinstance(await limits.acquire("r", 0, 0, max_wait=0), Permit)

    run_virtual(main())


@pytest.mark.parametrize(
    ("max_wait", "served_at", "refused_at"), [(None, 6.0, None), (1.0, None, 0.0), (5.0, None, 5.0)]
)
def test_waiters_are_patient_as_long_as_they_said(
    max_wait: float | None, served_at: float | None, refused_at: float | None
) -> None:
    """Sent away at once if it is sure to take longer, else when time is up, while a trial runs from 4 s to 6 s."""

    async def main() -> tuple[str, float]:
        limits = ProviderLimits("p", threshold=2, cooldown_s=4.0)
        await fail(limits, 2)

        async def trial() -> None:
            granted = await permit(limits, order=-1)
            await asyncio.sleep(2)
            granted.give_back("ok", now())

        async with asyncio.TaskGroup() as group:
            group.create_task(trial())
            await asyncio.sleep(0)
            got = await limits.acquire("r", 0, 0, max_wait=max_wait)
            return type(got).__name__, now()

    (what, at), _ = run_virtual(main())
    assert (what, at) == (("Permit", served_at) if served_at is not None else ("Refused", refused_at))


def test_waiting_for_a_slot_is_not_an_outage() -> None:
    """Who will not wait for an outage still queues for a slot and for the rate."""

    async def main() -> float:
        limits = ProviderLimits("p", max_concurrent=1, rpm=6)
        first = await permit(limits)
        asyncio.get_running_loop().call_later(3, lambda: first.give_back("ok", now()))
        assert isinstance(await limits.acquire("r", 0, 0, max_wait=0), Permit)
        return now()

    at, _ = run_virtual(main())
    assert at == pytest.approx(10.0)


def test_patience_counts_from_the_beginning_of_each_outage() -> None:
    """Ten seconds in the queue before it take nothing from the five it will wait, nor does an outage before."""

    async def main() -> None:
        limits = ProviderLimits("p", max_concurrent=1, threshold=1, cooldown_s=4.0)
        for began in (0.0, 14.0):
            assert now() == began
            holder = await permit(limits)
            waiting = asyncio.create_task(limits.acquire("r", 0, 0, max_wait=5.0))
            await asyncio.sleep(10)
            holder.give_back("connection", now())
            trial = await waiting
            assert isinstance(trial, Permit)
            trial.give_back("ok", now())

    run_virtual(main())


def test_after_an_outage_the_waiters_do_not_come_back_all_at_once() -> None:
    """40 were in flight when it began; when the trial succeeds at most half as many start."""

    async def main() -> int:
        limits = ProviderLimits("p")
        for lost in [await permit(limits) for _ in range(40)]:
            lost.give_back("connection", now())
        waiting = [asyncio.create_task(permit(limits)) for _ in range(40)]
        await asyncio.sleep(1)
        assert limits.in_flight == 1
        (await waiting[0]).give_back("ok", now())
        started = limits.in_flight
        for task in waiting[1:]:
            (await task).give_back("ok", now())
        return started

    started, _ = run_virtual(main())
    assert started <= 20


def test_a_trial_that_is_broken_off_goes_to_the_next() -> None:
    """Cancelling the trial call neither closes nor opens anything."""

    async def main() -> None:
        limits = ProviderLimits("p", threshold=1, cooldown_s=1.0)
        await fail(limits, 1)
        trial = await permit(limits)
        heir = asyncio.create_task(permit(limits))
        await asyncio.sleep(0.5)
        assert trial.give_back("cancelled", now()) == []
        assert [change.state for change in (await heir).give_back("ok", now())] == ["closed"]
        assert now() == 1.5

    run_virtual(main())


def test_a_permit_counts_once() -> None:
    """`done` again, as in a `finally`, does nothing."""

    async def main() -> None:
        limits = ProviderLimits("p", threshold=2)
        granted = await permit(limits)
        for _ in range(5):
            assert granted.give_back("connection", now()) == []
        assert limits.in_flight == 0
        assert limits.breaker.state == "closed"

    run_virtual(main())


# -- turns -----------------------------------------------------------------------------------------------------------


def test_a_small_run_is_not_starved_by_a_large_one() -> None:
    """100 waiters came first; the three of the other run are served among the next seven."""
    served = list[str]()

    async def one(limits: ProviderLimits, run: str, order: int) -> None:
        granted = await permit(limits, run, order)
        served.append(f"{run}{order}")
        await asyncio.sleep(1)
        granted.give_back("ok", now())

    async def main() -> None:
        limits = ProviderLimits("p", max_concurrent=1)
        async with asyncio.TaskGroup() as group:
            for order in reversed(range(100)):
                group.create_task(one(limits, "large", order))
            await asyncio.sleep(0)
            for order in (2, 0, 1):
                group.create_task(one(limits, "small", order))
        assert left_behind(limits) == EMPTY

    run_virtual(main())
    assert served[:8] == ["large99", "large0", "small0", "large1", "small1", "large2", "small2", "large3"]
    assert len(served) == 103


def test_a_large_request_is_not_overtaken_for_ever() -> None:
    """It needs more tokens than the bucket holds, among a stream of small ones, and goes in its turn."""

    async def main() -> float:
        limits = ProviderLimits("p", tpm=6_000)
        went = 0.0

        async def small(after: float) -> None:
            await asyncio.sleep(after)
            (await permit(limits, "small", tokens=300)).give_back("ok", now())

        async def large() -> None:
            nonlocal went
            await asyncio.sleep(1)
            (await permit(limits, "large", tokens=20_000)).give_back("ok", now())
            went = now()

        async with asyncio.TaskGroup() as group:
            group.create_task(large())
            for number in range(100):
                group.create_task(small(number * 0.5))
        return went

    went, _ = run_virtual(main())
    assert went <= 20.0


def test_nobody_overtakes_the_queue() -> None:
    """Who comes while others wait is not served at once, even if it would fit."""

    async def main() -> None:
        limits = ProviderLimits("p", tpm=6_000)
        await permit(limits, tokens=900)
        waiting = asyncio.create_task(limits.acquire("r", 0, 500))
        await asyncio.sleep(0)
        assert limits.try_acquire("s", 10, now()) is None
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(limits.try_acquire("s", 10, now()), Permit)

    run_virtual(main())


# -- cancellation and everything at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["cancel", "hand over"])
def test_a_permit_handed_over_in_the_moment_of_cancellation_goes_on(first: str) -> None:
    """The one it was handed to is cancelled before it runs: the next gets it, with the rate given back."""

    async def main() -> float:
        limits = ProviderLimits("p", max_concurrent=1, tpm=600)
        holder = await permit(limits)
        doomed = asyncio.create_task(limits.acquire("r", 0, 100))
        heir = asyncio.create_task(permit(limits, order=1, tokens=100))
        await asyncio.sleep(0)
        steps: list[Callable[[], object]] = [doomed.cancel, lambda: holder.give_back("ok", now())]
        for step in steps if first == "cancel" else reversed(steps):
            step()
        granted = await heir
        assert doomed.cancelled()
        assert limits.in_flight == 1
        granted.give_back("ok", now())
        assert left_behind(limits) == EMPTY
        return now()

    at, _ = run_virtual(main())
    assert at == 0.0


@dataclass(frozen=True)
class Caller:
    run: str
    order: int
    tokens: int
    comes_at: float
    takes_s: float
    result: CallResult
    retry_after: float | None
    max_wait: float | None
    cancelled_at: float | None


RESULTS: tuple[CallResult, ...] = (
    "ok", "ok", "ok", "ok", "rate_limited", "overloaded", "connection", "timeout", "auth", "other", "unsent",
)  # fmt: skip
seconds = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 7.0])
callers = st.lists(
    st.builds(
        Caller,
        run=st.sampled_from("abc"),
        order=st.integers(0, 3),
        tokens=st.sampled_from([0, 10, 100, 5_000]),
        comes_at=seconds,
        takes_s=seconds,
        result=st.sampled_from(RESULTS),
        retry_after=st.sampled_from([None, None, 3.0]),
        max_wait=st.sampled_from([None, None, 0.0, 2.0]),
        cancelled_at=st.sampled_from([None, None, 0.0, 0.5, 1.0, 3.0]),
    ),
    max_size=25,
)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 6, 600]),
    st.sampled_from([None, 600, 60_000]),
    callers,
)
def test_whatever_happens_everybody_is_answered_and_nothing_leaks(
    max_concurrent: int | None, rpm: int | None, tpm: int | None, crowd: list[Caller]
) -> None:
    """Any crowd: nobody waits for ever, the limits hold, and afterwards no slot, waiter or timer is left."""
    starts = list[float]()

    async def call(limits: ProviderLimits, caller: Caller) -> None:
        await asyncio.sleep(caller.comes_at)
        got = await limits.acquire(caller.run, caller.order, caller.tokens, max_wait=caller.max_wait)
        if isinstance(got, Refused):
            assert got.reason
            assert got.until is None or got.until >= now()
            return
        if caller.result != "unsent":
            starts.append(now())
        assert limits.in_flight <= (max_concurrent or 100)
        try:
            await asyncio.sleep(caller.takes_s)
            got.give_back(caller.result, now(), retry_after=caller.retry_after, tokens_actual=caller.tokens // 2)
        finally:
            got.give_back("cancelled", now())

    async def main() -> None:
        loop = asyncio.get_running_loop()
        limits = ProviderLimits("p", max_concurrent=max_concurrent, rpm=rpm, tpm=tpm, threshold=2)
        tasks = [asyncio.create_task(call(limits, caller)) for caller in crowd]
        for task, caller in zip(tasks, crowd, strict=True):
            if caller.cancelled_at is not None:
                loop.call_at(caller.comes_at + caller.cancelled_at, task.cancel)
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert ended is None or isinstance(ended, asyncio.CancelledError), ended
        assert left_behind(limits) == EMPTY

    run_virtual(main())
    if rpm is not None:
        burst = max(1.0, rpm / 6)
        for first, at in enumerate(starts):
            for last in range(first, len(starts)):
                assert last - first + 1 <= burst + (starts[last] - at) * rpm / 60 + 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_a_storm_of_cancellations_loses_no_slot(seed: int) -> None:
    """300 callers, two thirds cancelled at any moment: the others are all served."""
    chance = random.Random(seed)
    served = 0

    async def one(limits: ProviderLimits) -> None:
        nonlocal served
        await asyncio.sleep(chance.choice((0, 0, 1, 2)))
        granted = await permit(limits, chance.choice("abcd"), chance.randrange(9), 10)
        try:
            await asyncio.sleep(chance.choice((0, 0.1, 1)))
            granted.give_back("ok", now())
            served += 1
        finally:
            granted.give_back("cancelled", now())

    async def main() -> int:
        limits = ProviderLimits("p", max_concurrent=5, rpm=1_200, tpm=12_000)
        tasks = [asyncio.create_task(one(limits)) for _ in range(300)]
        doomed = chance.sample(tasks, 200)
        for task in doomed:
            asyncio.get_running_loop().call_later(chance.choice((0, 0.1, 1, 2, 5)), task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert left_behind(limits) == EMPTY
        return sum(task.cancelled() for task in tasks)

    cancelled, _ = run_virtual(main())
    assert served == 300 - cancelled >= 100


def test_the_end_of_a_run_sends_its_waiters_away() -> None:
    """And leaves those of others where they are."""

    async def main() -> None:
        limits = ProviderLimits("p", max_concurrent=1)
        holder = await permit(limits)
        ours, theirs = (asyncio.create_task(limits.acquire(run, 0, 0)) for run in ("ours", "theirs"))
        await asyncio.sleep(0)
        limits.leave("ours", now())
        assert await ours == Refused(None, "run ours has ended")
        assert limits.waiting == 1
        holder.give_back("ok", now())
        granted = await theirs
        assert isinstance(granted, Permit)
        granted.give_back("ok", now())
        assert left_behind(limits) == EMPTY

    run_virtual(main())


def test_a_run_that_ends_at_the_head_of_the_queue_lets_the_next_go_at_once() -> None:
    """Its large request waited for tokens; the small one behind it needs no waiting, and no timer is left."""

    async def main() -> float:
        limits = ProviderLimits("p", tpm=6_000)
        (await permit(limits, tokens=500)).give_back("ok", now())
        ours = asyncio.create_task(limits.acquire("ours", 0, 1_000))
        theirs = asyncio.create_task(permit(limits, "theirs", tokens=100))
        await asyncio.sleep(0)
        limits.leave("ours", now())
        assert isinstance(await ours, Refused)
        (await theirs).give_back("ok", now())
        assert left_behind(limits) == EMPTY
        return now()

    at, _ = run_virtual(main())
    assert at == 0.0


# -- settings and loops ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["rpm", "tpm", "max_concurrent"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_would_let_nothing_through_is_a_usage_error(setting: str, value: float) -> None:
    """The message names the setting, the provider and the remedy."""
    with pytest.raises(UsageError, match=f"{setting} of provider p is {value}; .* leave it out"):
        ProviderLimits("p").tighten(**{setting: value})  # type: ignore[arg-type]


def test_all_runs_of_a_loop_share_a_provider_and_the_strictest_limit_holds() -> None:
    """By name and base URL, with or without its last slash."""

    async def main() -> None:
        registry = ProviderRegistry()
        one = registry.limits_for("p", "http://localhost/v1", max_concurrent=8)
        assert registry.limits_for("p", "http://localhost/v1/", max_concurrent=3, rpm=60) is one
        assert registry.limits_for("p", "http://localhost/v1") is one
        assert registry.limits_for("p", "http://localhost/v2") is not one
        assert registry.limits_for("q", "http://localhost/v1") is not one
        assert one.adaptive.limit == 3
        assert one.rate.requests
        assert one.rate.requests.per_minute == 60

    run_virtual(main())


def test_a_loop_that_was_closed_takes_its_waiters_with_it() -> None:
    """The next loop begins with fresh limits, and neither loop nor limits are kept alive."""
    registry = ProviderRegistry()

    async def stuck() -> ProviderLimits:
        limits = registry.limits_for("p", "http://localhost")
        await fail(limits, 5)
        waiting = limits.acquire("r", 0, 0)
        waiting.send(None)  # it waits, with a timer set, and will never be gone on with
        assert left_behind(limits)[1:] != EMPTY[1:]
        return limits

    async def fresh() -> ProviderLimits:
        limits = registry.limits_for("p", "http://localhost")
        (await permit(limits)).give_back("ok", now())
        return limits

    def on_a_new_loop(work: Callable[[], Awaitable[ProviderLimits]]) -> tuple[weakref.ref[object], ...]:
        loop = VirtualLoop()
        limits = loop.run_until_complete(work())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        return weakref.ref(loop), weakref.ref(limits)

    old = on_a_new_loop(stuck)
    new = on_a_new_loop(fresh)
    gc.collect()
    assert [ref() for ref in old + new] == [None] * 4


@pytest.mark.parametrize(
    ("said", "connected", "exists"),
    [
        ("rate_limited", False, True),
        ("auth", False, True),
        ("connection", False, False),
        ("connection", True, True),
        ("ok", False, True),
    ],
)
def test_a_refusal_is_an_answer_too(said: CallResult, connected: bool, exists: bool) -> None:
    """Only a provider that nobody has heard of, and that took no request, is given little patience."""

    async def main() -> bool:
        limits = ProviderLimits("p")
        permit = await limits.acquire("run", 0, 1)
        assert isinstance(permit, Permit)
        permit.give_back(said, asyncio.get_running_loop().time(), connected=connected)
        return limits.exists

    assert run_virtual(main())[0] is exists


def test_a_wait_of_less_than_a_millisecond_works_on_uvloop() -> None:
    """Its handle for such a wait does not know its time, and the next call that waits asks when the wait ends."""

    async def call_after_a_short_pause() -> int:
        limits = ProviderLimits("p")
        limits.adaptive.hold(now(), 0.0004)
        return len(await asyncio.gather(*(permit(limits, order=number) for number in range(3))))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(call_after_a_short_pause()) == 3
