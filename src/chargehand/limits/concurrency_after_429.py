"""Turns a provider's answers into a limit of parallel calls: one more after a round of successes, half after a 429.

All calls begun between two halvings are one epoch. The first refusal of an epoch halves; the others change nothing.
"""

from __future__ import annotations

import math
import sys
from dataclasses import field

from chargehand.values.plain_class import plain_class

UNLIMITED = sys.maxsize
# How long nothing new starts after the second, third, ... refusal with no success in between and no Retry-After.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
# If the provider asks for a longer wait than this, a quota is used up: after the wait, one call is sent first.
QUOTA_S = 60.0
# The most rounds of successes that it takes to return to the number at which a call was refused.
MOST_CAUTION = 16


@plain_class()
class Adaptive:
    """Invariant: 1 <= limit <= most."""

    most: int = UNLIMITED
    # The first limit; None means `most`.
    start: int | None = None
    limit: int = field(init=False)
    # Nothing new starts before this.
    resume_at: float = field(default=-math.inf, init=False)
    # Until when the provider itself asked for a pause. Pauses that are chosen here are not included.
    asked_until: float = field(default=-math.inf, init=False)
    # Counts halvings.
    epoch: int = field(default=0, init=False)
    # Successes of this epoch since the limit last grew.
    _successes: int = field(default=0, init=False)
    # Refused epochs since the last success.
    _refusals: int = field(default=0, init=False)
    # How many calls were in flight at the last refusal, and how many rounds of successes it takes to allow that number
    # again. The rounds double with each refusal at that number, so that a steady capacity is not tested all the time.
    _refused_at: int = field(default=UNLIMITED, init=False)
    _caution: int = field(default=1, init=False)

    # The limit before a quota was used up. It applies again after one call was answered.
    _before_quota: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.limit = self.most if self.start is None else max(1, min(self.start, self.most))

    def record_success(self, epoch: int, in_flight: int) -> None:
        """A call was answered while `in_flight` calls were under way, including itself."""
        self._refusals = 0
        if self._before_quota is not None and epoch == self.epoch:
            self.limit, self._before_quota = min(self._before_quota, self.most), None
            return
        # A success says nothing about a limit that was not reached.
        if epoch != self.epoch or in_flight * 2 < self.limit:
            return
        self._successes += 1
        if self._successes >= self.limit * (self._caution if self.limit + 1 == self._refused_at else 1):
            if self.limit >= self._refused_at:
                self._refused_at, self._caution = UNLIMITED, 1
            self._successes = 0
            self.limit = min(self.limit + 1, self.most)

    def record_throttle(self, now: float, epoch: int, in_flight: int, retry_after: float | None) -> None:
        """A call was refused temporarily (429)."""
        if retry_after is not None and retry_after > QUOTA_S:
            self.hold(now, retry_after)  # fewer parallel calls would not have helped
            return
        if epoch == self.epoch:
            in_use = min(self.limit, in_flight)
            self._caution = min(self._caution * 2, MOST_CAUTION) if in_use >= self._refused_at else 2
            self._refused_at = in_use
            self._refusals += 1
            if retry_after is None and self._refusals > 1:
                # Fewer parallel calls did not help, so the limit is one of time: probe rarely, not with every waiter.
                pause = min(FIRST_PAUSE_S * 2.0 ** min(self._refusals - 2, 10), LONGEST_PAUSE_S)
                self.resume_at = max(self.resume_at, now + pause)
        self.shrink(epoch, in_flight)
        self.hold(now, retry_after)

    def shrink(self, epoch: int, in_flight: int) -> None:
        """Halve the number in use, once per epoch."""
        if epoch == self.epoch:
            self.epoch += 1
            self._successes = 0
            self.limit = max(1, min(self.limit, in_flight) // 2)

    def hold(self, now: float, retry_after: float | None) -> None:
        if retry_after is None:
            return
        self.asked_until = max(self.asked_until, now + retry_after)
        self.resume_at = max(self.resume_at, self.asked_until)
        if retry_after > QUOTA_S and self._before_quota is None:
            # Calls under way began before the wait: their results say nothing about the time after it.
            self._before_quota, self.limit, self.epoch = self.limit, 1, self.epoch + 1

    def tighten(self, most: int) -> None:
        self.most = min(self.most, most)
        self.limit = min(self.limit, self.most)
