"""Consecutive results -> whether calls may begin: a worker or provider that keeps failing gets none, then one trial
call.

    state       a call may begin        success            failure
    closed      always                  forgets failures   counted; the threshold opens it
    open        from retry_at, as the   late: ignored      late: ignored
                trial call: half_open
    half_open   no: one trial at once   closed             open, for twice as long as before

A result counts only in the state its call began in, so a late result from before a change has no effect.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, NamedTuple

from chargehand.values.plain_class import plain_class

State = Literal["closed", "open", "half_open"]


class BreakerChange(NamedTuple):
    """A breaker changed its state: the content of a `breaker_changed` event."""

    name: str
    state: State
    reason: str


class Ticket(NamedTuple):
    """A call that began, and the change of state that it caused."""

    generation: int
    change: BreakerChange | None = None


@plain_class()
class Breaker:
    """Closed, open or half open. The caller gives the times; no method waits."""

    name: str
    threshold: int = 5
    cooldown_s: float = 1.0
    longest_s: float = 30.0
    state: State = field(default="closed", init=False)
    # Why it is in this state; part of the refusal.
    reason: str = field(default="", init=False)
    # Open until the end: no call is tried again.
    for_good: bool = field(default=False, init=False)
    # Counts changes of state. A ticket of an earlier generation is late.
    _generation: int = field(default=0, init=False)
    # The tasks that failed since the last success; only while closed.
    _failed: set[str] = field(default_factory=set[str], init=False)
    # How long it is open now, or will be open the next time.
    _cooldown: float = field(default=0.0, init=False)
    # When the next trial may begin. While half open: when a trial without a result counts as lost.
    _retry_at: float = field(default=0.0, init=False)

    def allows(self, now: float) -> bool:
        at = self.retry_at(now)
        return at is not None and at <= now

    def retry_at(self, now: float) -> float | None:
        """When a call may begin in the current state; None means never."""
        if self.for_good:
            return None
        return now if self.state == "closed" else self._retry_at

    def begin(self, now: float) -> Ticket:
        """Let a call begin. Unless closed, it is the trial: no other call begins until it ends or is too late."""
        assert self.allows(now), f"{self.name} is {self.state} until {self._retry_at}"
        if self.state == "closed":
            return Ticket(self._generation)
        self._retry_at = now + self.longest_s
        if self.state == "half_open":
            return Ticket(self._generation)
        return Ticket(self._generation + 1, self._go("half_open", f"one call is tried after {self._cooldown:g} s"))

    def record_success(self, ticket: Ticket) -> BreakerChange | None:
        if ticket.generation != self._generation:
            return None
        self._failed.clear()
        if self.state == "closed":
            return None
        self._cooldown = 0.0
        return self._go("closed", "it works again")

    def record_failure(self, ticket: Ticket, now: float, what: str, reason: str) -> BreakerChange | None:
        """Count a failure of `what`; repeated failures of the same thing count once."""
        if ticket.generation != self._generation:
            return None
        if self.state == "half_open":
            return self._open(now, f"the failed trial call: {reason}")
        self._failed.add(what)
        if len(self._failed) < self.threshold:
            return None
        return self._open(now, f"{len(self._failed)} errors in a row: {reason}")

    def forget(self, ticket: Ticket, now: float) -> None:
        """Forget an interrupted call: it has no result, and another call may be the trial."""
        if ticket.generation == self._generation and self.state == "half_open":
            self._retry_at = now

    def open_until(self, at: float, reason: str) -> None:
        """Restore the open state that an earlier session recorded."""
        self._cooldown, self._retry_at = self.cooldown_s, at
        self._go("open", reason)

    def open_for_good(self, reason: str) -> BreakerChange | None:
        if self.for_good:
            return None
        self.for_good = True
        return self._go("open", reason)

    def _open(self, now: float, why: str) -> BreakerChange:
        self._cooldown = min(self._cooldown * 2 or self.cooldown_s, self.longest_s)
        self._retry_at = now + self._cooldown
        self._failed.clear()
        return self._go("open", f"for {self._cooldown:g} s after {why}")

    def _go(self, state: State, reason: str) -> BreakerChange:
        self.state = state
        self.reason = reason
        self._generation += 1
        return BreakerChange(self.name, state, reason)
