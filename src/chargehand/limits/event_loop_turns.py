"""Work that becomes due all at once -> so much of it in each turn of the event loop, so that none is long."""

from __future__ import annotations

import asyncio
from collections import deque

# A call of a worker does up to half a millisecond of work between two waits, the call that writes an answer several.
PER_TURN = 16


class LoopTurns:
    """For one event loop. Hundreds of replies arrive together when their calls were sent together: without this all
    are worked on in one turn, in which no timer, signal or other run of the process gets through.
    """

    def __init__(self, per_turn: int = PER_TURN) -> None:
        self._per_turn = per_turn
        # How many may still continue in this turn. Invariant: nobody waits while it is above 0.
        self._left = per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once, or in one of the next turns if enough others continue in this one."""
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
