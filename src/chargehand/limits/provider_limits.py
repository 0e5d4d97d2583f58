"""Turns a request to call a provider into a permit or a refusal, by the rate, concurrency and breaker of the provider.

permit = await limits.acquire(run, order, tokens, max_wait=10)
if isinstance(permit, Refused): ...                 # go to the fallback
try:
    reply = await ...
    changes = permit.give_back("ok", loop.time(), tokens_actual=1_234)
finally:
    permit.give_back("cancelled", loop.time())           # does nothing after the first `done`
"""

from __future__ import annotations

import asyncio
import math
from typing import Literal, NamedTuple, assert_never
from weakref import WeakKeyDictionary

from chargehand.errors import UsageError
from chargehand.limits.breaker import Breaker, BreakerChange, Ticket
from chargehand.limits.calls_per_minute import Rate
from chargehand.limits.concurrency_after_429 import UNLIMITED, Adaptive
from chargehand.limits.fair_queue import FairQueue
from chargehand.values.plain_class import plain_class

# `cancelled` was sent and interrupted; `unsent` was never sent, so its whole permit is returned.
CallResult = Literal[
    "ok", "rate_limited", "overloaded", "connection", "timeout", "auth", "other", "cancelled", "unsent"
]


class Refused(NamedTuple):
    """The provider must not be called now. `until` is when to try again, on the loop's clock; None: not in this run."""

    until: float | None
    reason: str
    # Until when the provider itself asked for a pause, if it did.
    asked_until: float | None = None


@plain_class()
class Permit:
    """One call may be made. It counts as in flight until `give_back`."""

    run: str
    tokens: int
    # The change of the breaker, if there was one: it is half open now, and this is the trial call.
    change: BreakerChange | None
    _limits: ProviderLimits
    _ticket: Ticket
    _epoch: int
    _open: bool = True

    def give_back(
        self,
        result: CallResult,
        now: float,
        *,
        retry_after: float | None = None,
        tokens_actual: int | None = None,
        reason: str = "",
        connected: bool = False,
    ) -> list[BreakerChange]:
        """Give the permit back with the result of the call. Only the first time counts.

        `connected`: the provider had taken the request when the connection broke.
        """
        if not self._open:
            return []
        self._open = False
        if connected or result not in ("connection", "timeout", "cancelled", "unsent"):
            self._limits.exists = True
        return self._limits.settle(self, self._ticket, self._epoch, result, now, retry_after, tokens_actual, reason)


@plain_class()
class _Waiter:
    """A call that waits for a permit."""

    run: str
    tokens: int
    arrived: float
    # How long it may wait for a provider that is out; None means as long as it takes.
    max_wait: float | None
    # Done as soon as the waiter is served, refused or cancelled; it stays in the queue until it is at the head.
    turn: asyncio.Future[Permit | Refused]


class _Outage(NamedTuple):
    """No call may start: at the latest until one time, and at the earliest until another."""

    until: float
    at_least: float
    reason: str


class ProviderLimits:
    """The limits of one provider for all runs of one event loop. All state changes happen between two awaits.

    Waiters are served one run after the other, so that a wide run does not starve a narrow one. Only the head is
    considered: a large request that waits for tokens delays the small ones behind it, so they cannot overtake it for
    ever.
    """

    def __init__(
        self,
        name: str,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        max_concurrent: int | None = None,
        start: int | None = None,
        threshold: int = 5,
        cooldown_s: float = 1.0,
        longest_s: float = 30.0,
    ) -> None:
        self.name = name
        self.in_flight = 0
        # Whether it has ever answered or taken a request: else its address is probably wrong.
        self.exists = False
        self.rate = Rate()
        self.adaptive = Adaptive(start=start)
        self.breaker = Breaker(f"provider:{name}", threshold, cooldown_s, longest_s)
        self.tighten(rpm=rpm, tpm=tpm, max_concurrent=max_concurrent)
        # Runs whose key was refused.
        self._barred: dict[str, Breaker] = {}
        self._queue: FairQueue[_Waiter] = FairQueue()
        # Since when no call may start because of the breaker or Retry-After; None while calls may start.
        self._out_since: float | None = None
        self._failures = 0
        # The next moment at which time alone changes something for a waiter. None when no waiter waits for time. The
        # handle of uvloop for a wait of less than a millisecond does not know its time, so the time is kept here.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    @property
    def waiting(self) -> int:
        return sum(not waiter.turn.done() for waiter in self._queue)

    def tighten(self, *, rpm: float | None = None, tpm: float | None = None, max_concurrent: int | None = None) -> None:
        """Apply these limits as well: among runs with different limits, the strictest applies."""
        given = {"rpm": rpm, "tpm": tpm, "max_concurrent": max_concurrent}
        for setting, value in given.items():
            if value is not None and not value > 0:
                raise UsageError(
                    f"{setting} of provider {self.name} is {value}; give a number above 0, or leave it out for no limit"
                )
        self.rate.tighten(rpm, tpm)
        self.adaptive.tighten(UNLIMITED if max_concurrent is None else max_concurrent)

    # -- for callers -------------------------------------------------------------------------------------------------

    def try_acquire(self, run: str, tokens: int, now: float) -> Permit | Refused | None:
        """A permit if one is free and there are no waiters, a refusal if the run's key was refused, else None."""
        if (barred := self._barred.get(run)) is not None:
            return Refused(None, barred.reason)
        if self._head() is None and self._ready_at(now, tokens) <= now:
            return self._grant(now, run, tokens)
        return None

    async def acquire(self, run: str, order: int, tokens: int, *, max_wait: float | None = None) -> Permit | Refused:
        """Wait for a permit: as long as it takes for a slot and for the rate, at most `max_wait` for a provider that is
        out.

        Out means an open breaker or a Retry-After that has not passed. With `max_wait=0` an outage refuses at once.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if (answer := self.try_acquire(run, tokens, now)) is not None:
            return answer
        waiter = _Waiter(run, tokens, now, max_wait, loop.create_future())
        self._queue.push(run, order, waiter)
        self._pump(now)
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if not waiter.turn.cancelled() and isinstance(granted := waiter.turn.result(), Permit):
                granted.give_back("unsent", loop.time())  # it was handed over at the moment of cancellation
            else:
                self._pump(loop.time())  # the next one may need less
            raise

    def leave_alone(self, until: float) -> None:
        """Send nothing before this time, and then one call first: the provider has asked for this before."""
        now = asyncio.get_running_loop().time()
        self.exists = True
        self.adaptive.hold(now, until - now)
        self._pump(now)

    def leave(self, run: str, now: float) -> None:
        """Forget a run that ended: its waiters are refused, and its refused key no longer counts."""
        self._barred.pop(run, None)
        self._refuse_run(run, Refused(None, f"run {run} has ended"))
        self._pump(now)

    # -- for permits -------------------------------------------------------------------------------------------------

    def settle(
        self,
        permit: Permit,
        ticket: Ticket,
        epoch: int,
        result: CallResult,
        now: float,
        retry_after: float | None,
        tokens_actual: int | None,
        reason: str,
    ) -> list[BreakerChange]:
        """Take a permit back and learn from its result. Called by the permit, once."""
        if result == "unsent":
            self.rate.take(now, -1, -permit.tokens)
        elif tokens_actual is not None:
            self.rate.correct(now, permit.tokens, tokens_actual)
        changes = self._learn(permit.run, ticket, epoch, result, now, retry_after, reason or result)
        self.in_flight -= 1
        self._pump(now)
        return changes

    def _learn(
        self, run: str, ticket: Ticket, epoch: int, result: CallResult, now: float, retry_after: float | None, why: str
    ) -> list[BreakerChange]:
        changes: list[BreakerChange | None] = []
        match result:
            case "ok":
                self.adaptive.record_success(epoch, self.in_flight)
                changes.append(self.breaker.record_success(ticket))
            case "rate_limited":
                self.adaptive.record_throttle(now, epoch, self.in_flight, retry_after)
                changes.append(
                    self.breaker.record_success(ticket)
                )  # it answers; its capacity does not concern the breaker
            case "overloaded":
                self.adaptive.shrink(epoch, self.in_flight)
                self.adaptive.hold(now, retry_after)
                changes.append(self._record_failure(ticket, now, why))
            case "connection" | "timeout":
                opened = self._record_failure(ticket, now, why)
                if opened is not None:
                    self.adaptive.shrink(epoch, self.in_flight)  # so that all waiters do not come back at once
                changes.append(opened)
            case "auth":
                changes += [self.breaker.record_success(ticket), self._bar(run, why)]
            case "other":
                changes.append(self.breaker.record_success(ticket))
            case "cancelled" | "unsent":
                self.breaker.forget(ticket, now)
            case _:
                assert_never(result)
        return [change for change in changes if change is not None]

    def _record_failure(self, ticket: Ticket, now: float, why: str) -> BreakerChange | None:
        self._failures += 1  # every failure of a provider counts, from any run
        return self.breaker.record_failure(ticket, now, str(self._failures), why)

    def _bar(self, run: str, why: str) -> BreakerChange | None:
        barred = self._barred.setdefault(run, Breaker(self.breaker.name))
        change = barred.open_for_good(f"the key was refused, so this run calls {self.name} no more: {why}")
        self._refuse_run(run, Refused(None, barred.reason))
        return change

    def _refuse_run(self, run: str, refused: Refused) -> None:
        for waiter in self._queue.drop(run):
            if not waiter.turn.done():
                waiter.turn.set_result(refused)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _pump(self, now: float) -> None:
        """Serve the waiters that are due, refuse those that waited too long, and schedule the next look.

        Invariant: afterwards no waiter could be served before `_timer` unless a permit is given back or a call comes.
        """
        while (head := self._head()) is not None and self._ready_at(now, head.tokens) <= now:
            self._queue.serve()
            head.turn.set_result(self._grant(now, head.run, head.tokens))
        patience = self._refuse_the_impatient(now)
        head = self._head()
        self._arm(math.inf if head is None else min(self._ready_at(now, head.tokens), patience), head)

    def _arm(self, at: float, head: _Waiter | None) -> None:
        if self._timer is not None:
            if self._timer_at == at:
                return
            self._timer.cancel()
            self._timer = None
        if head is not None and at < math.inf:
            loop = head.turn.get_loop()
            self._timer, self._timer_at = loop.call_at(at, self._wake, loop, at), at

    def _wake(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._timer = None
        self._pump(max(at, loop.time()))  # a timer may fire slightly early

    def _head(self) -> _Waiter | None:
        while (head := self._queue.head()) is not None and head.turn.done():
            self._queue.skip()
        return head

    def _ready_at(self, now: float, tokens: int) -> float:
        """When a call of so many tokens may start in the current state; never while all slots are taken."""
        opens = self.breaker.retry_at(now)
        if opens is None or self.in_flight >= self.adaptive.limit:
            return math.inf
        return max(opens, self.adaptive.resume_at, now + self.rate.wait_for(now, 1, tokens))

    def _grant(self, now: float, run: str, tokens: int) -> Permit:
        self.rate.take(now, 1, tokens)
        self.in_flight += 1
        ticket = self.breaker.begin(now)
        return Permit(run, tokens, ticket.change, self, ticket, self.adaptive.epoch)

    def _refuse_the_impatient(self, now: float) -> float:
        """Refuse waiters whose wait for an unavailable provider is over; returns when the next wait will be over."""
        outage = self._outage(now)
        if outage is None:
            self._out_since = None
            return math.inf
        if self._out_since is None:
            self._out_since = now
        soonest = math.inf
        for waiter in self._queue:
            if waiter.max_wait is None or waiter.turn.done():
                continue
            gives_up = max(waiter.arrived, self._out_since) + waiter.max_wait
            if gives_up <= now or outage.at_least > gives_up:
                asked = self.adaptive.asked_until if self.adaptive.asked_until > now else None
                waiter.turn.set_result(Refused(max(outage.until, now), outage.reason, asked))
            else:
                soonest = min(soonest, gives_up)
        return soonest

    def _outage(self, now: float) -> _Outage | None:
        resume = self.adaptive.resume_at
        if self.breaker.state == "closed":
            asked = f"{self.name} asked to be left alone until then"
            refuses = f"{self.name} refuses calls again and again (429)"
            reason = asked if resume == self.adaptive.asked_until else refuses
            return _Outage(resume, resume, reason) if now < resume else None
        retry = self.breaker.retry_at(now)
        assert retry is not None, "a provider is never given up on, only by a run"
        is_open = self.breaker.state == "open"
        reason = f"{self.name} is {'left alone' if is_open else 'out:'} {self.breaker.reason}"
        # A trial under way may end at any moment; its time limit is only the latest end.
        at_least = retry if is_open else now
        return _Outage(max(resume, retry), max(resume, at_least), reason)


class ProviderRegistry:
    """One ProviderLimits for each provider and base URL, shared by all runs of an event loop.

    Each loop has its own: times and waiters of one loop mean nothing on another.
    """

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], ProviderLimits]]
        self._loops = WeakKeyDictionary()

    def limits_for(
        self,
        name: str,
        base_url: str,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        max_concurrent: int | None = None,
    ) -> ProviderLimits:
        """The provider's limits on the running loop; they apply in addition to limits given before."""
        for loop in [loop for loop in self._loops if loop.is_closed()]:
            del self._loops[loop]  # a waiter left behind there keeps its loop alive
        known = self._loops.setdefault(asyncio.get_running_loop(), {})
        limits = known.setdefault((name, base_url.rstrip("/")), ProviderLimits(name))
        limits.tighten(rpm=rpm, tpm=tpm, max_concurrent=max_concurrent)
        return limits
