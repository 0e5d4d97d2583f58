"""Turns requests and tokens per minute into seconds to wait: buckets that fill all the time.

A bucket holds a sixth of a minute's allowance, so any window of `s` seconds lets at most `limit * s / 60 + limit / 6`
through: after ten idle seconds a sixth of the limit may start at once, never more.
"""

from __future__ import annotations

import math
from dataclasses import field

from chargehand.values.plain_class import plain_class

# The bucket's size as a share of a minute's allowance.
BURST = 1 / 6
# A share of the bucket that is too small to wait for: a rounding error, not use.
_NOTHING = 1e-6


@plain_class()
class Bucket:
    """Fills at a steady rate up to its capacity; below zero it is in debt for a request larger than itself."""

    per_minute: float
    _level: float = field(default=0.0, init=False)
    # The time at which `_level` was correct. Before its first use the bucket is full.
    _at: float = field(default=-math.inf, init=False)

    @property
    def capacity(self) -> float:
        return max(1.0, self.per_minute * BURST)

    def wait_for(self, now: float, amount: float) -> float:
        """Seconds until the amount fits; an amount larger than the bucket fits when the bucket is full."""
        self._fill(now)
        missing = min(amount, self.capacity) - self._level
        return 0.0 if missing <= self.capacity * _NOTHING else missing * 60 / self.per_minute

    def take(self, now: float, amount: float) -> None:
        """Use this amount; a negative amount is given back."""
        self._fill(now)
        self._level = min(self._level - amount, self.capacity)

    def tighten(self, per_minute: float) -> None:
        self.per_minute = min(self.per_minute, per_minute)
        self._level = min(self._level, self.capacity)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self.per_minute / 60, self.capacity)
            self._at = now


@plain_class()
class Rate:
    """Requests and tokens per minute; None means no limit."""

    requests: Bucket | None = None
    tokens: Bucket | None = None

    def wait_for(self, now: float, requests: int, tokens: int) -> float:
        """Seconds until both fit, if no other call uses any."""
        return max(
            self.requests.wait_for(now, requests) if self.requests else 0.0,
            self.tokens.wait_for(now, tokens) if self.tokens else 0.0,
        )

    def take(self, now: float, requests: int, tokens: int) -> None:
        """Use these numbers; negative numbers are given back."""
        if self.requests:
            self.requests.take(now, requests)
        if self.tokens:
            self.tokens.take(now, tokens)

    def correct(self, now: float, tokens_estimated: int, tokens_actual: int) -> None:
        """Replace the expected use of a call by its real use."""
        if self.tokens:
            self.tokens.take(now, tokens_actual - tokens_estimated)

    def tighten(self, rpm: float | None, tpm: float | None) -> None:
        """Apply these limits as well."""
        if rpm is not None:
            self.requests = self.requests or Bucket(rpm)
            self.requests.tighten(rpm)
        if tpm is not None:
            self.tokens = self.tokens or Bucket(tpm)
            self.tokens.tighten(tpm)
