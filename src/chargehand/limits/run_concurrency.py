"""The concurrency limit of a run: a slot is held only while an effect is in flight."""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import field

from chargehand.values.plain_class import plain_class


@plain_class()
class Gate:
    """At most `limit` slots; free ones go to the lowest order first, so that begun tasks end before new ones start."""

    limit: int
    # Invariant: 0 <= held <= limit, and no waiter exists while a slot is free.
    held: int = 0
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(
        default_factory=list[tuple[int, int, asyncio.Future[None]]]
    )
    _arrivals: int = 0

    def try_acquire(self) -> bool:
        """Take a slot if one is free; then there are no waiters."""
        if self.held >= self.limit:
            return False
        self.held += 1
        return True

    async def acquire(self, order: int) -> None:
        if self.try_acquire():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (order, self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was handed over at the moment of cancellation
            raise

    def release(self) -> None:
        """Hand the slot to the next in order, or free it."""
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self.held -= 1
