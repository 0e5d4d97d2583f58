"""How fast this machine is just now: bounds in seconds are for a quiet machine, and stretch on a slow or busy one.

A bound that is stretched still tells a limit that fires from one that does not, and linear time from quadratic: what it
forbids takes tens of times longer, on the same machine under the same load.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds that the work below takes on the quiet machine that the bounds were written for.
USUAL_S = 0.012
LOOPS = 200_000


def slowness(clock: Callable[[], float] = time.monotonic) -> float:
    """How many times longer than usual a fixed piece of work takes, at least 1.

    By the wall's clock that is slow or busy; by `time.process_time` it is slow only.
    """
    began = clock()
    total = 0
    for number in range(LOOPS):
        total += number * number % 7
    return max(1.0, (clock() - began) / USUAL_S)


class Timed:
    """A block and how long it took; `within` is a bound for it that knows how slow the machine was meanwhile."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.seconds = 0.0

    def __enter__(self) -> Timed:
        self._slow = slowness(self._clock)
        self._began = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self._clock() - self._began
        self._slow = max(self._slow, slowness(self._clock))

    def within(self, seconds: float) -> bool:
        return self.seconds <= seconds * self._slow
