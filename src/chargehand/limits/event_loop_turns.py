"""Work that becomes due at the same time -> a part of it in each turn of the event loop, so that no turn is long."""

from __future__ import annotations

import asyncio
from collections import deque

# A worker's call does up to half a millisecond of work between two waits; the call that writes an answer does several.
PER_TURN = 16


class LoopTurns:
    """For one event loop. Hundreds of replies arrive together when their calls were sent together: without this class,
    all are processed in one turn, during which timers, signals and other runs of the process wait.
    """

    def __init__(self, per_turn: int = PER_TURN) -> None:
        self._per_turn = per_turn
        # How many calls may still continue in this turn. Invariant: no call waits while it is above 0.
        self._left = per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once, or in one of the next turns if enough other calls continue in this turn."""
        if self._left == self._per_turn:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        if self._left:
            self._left -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin_turn(self) -> None:
        self._left = self._per_turn
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._left < self._per_turn:
            asyncio.get_running_loop().call_soon(self._begin_turn)
