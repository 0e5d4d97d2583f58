"""How fast this machine is just now: bounds in seconds are for a quiet machine, and stretch on a slow or busy one.

Where a bound tells a limit that fires from one that fires late, the limit is stretched with it. Where it tells linear
time from quadratic or from for ever, what it forbids takes tens of times longer under the same load.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

# How long a test waits for what is bound to happen: less than the limit of a test, so that it is the test that tells.
PATIENCE_S = 120.0
# Seconds that the work below takes on the quiet machine that the bounds were written for.
USUAL_S = 0.012
LOOPS = 200_000
Clock = Callable[[], float]


def slowness(clock: Clock = time.monotonic) -> float:
    """How many times longer than usual a fixed piece of work takes, at least 1.

    By the wall's clock that is slow or busy; by `time.process_time` it is slow only.
    """
    began = clock()
    total = 0
    for number in range(LOOPS):
        total += number * number % 7
    return max(1.0, (clock() - began) / USUAL_S)


class Timed:
    """A block, how long it took and how slow the machine was meanwhile."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._slowness = 1.0
        self.seconds = 0.0

    def __enter__(self) -> Timed:
        self._slowness = slowness(self._clock)
        self._began = self._clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds = self._clock() - self._began
        self._slowness = max(self._slowness, slowness(self._clock))

    def within(self, seconds: float, after: float = 0.0) -> bool:
        """Whether it took no longer than `after`, by the clock, and `seconds` of a quiet machine."""
        return self.seconds <= after + seconds * self._slowness
