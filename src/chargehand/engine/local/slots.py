"""Which effects may be in flight: the concurrency gate in task order, closed while the run is paused.

It is closed for good when the session winds down.
"""

from __future__ import annotations

import asyncio
from dataclasses import field

from chargehand.engine.local.prompt_beginnings import FirstCall
from chargehand.limits import Gate
from chargehand.values.plain_class import plain_class


@plain_class()
class Waited:
    """Seconds one effect was kept waiting, whether anything of it was sent, and the text of a reply under way."""

    seconds: float = 0.0
    sent: bool = False
    pieces: list[str] = field(default_factory=list[str])
    # For a call that others wait for: releases them.
    first: FirstCall | None = None


class Slots:
    """A limited number at once. Begun tasks come before new ones, the supervisor's own calls before both."""

    def __init__(self, limit: int) -> None:
        self._gate = Gate(limit)
        self._orders: dict[str | None, int] = {None: -1}
        # Set while no slot is held: what a drain waits for.
        self.idle = asyncio.Event()
        self.idle.set()
        self.draining = False
        # Set unless the run is paused.
        self._proceeds = asyncio.Event()
        self._proceeds.set()

    @property
    def held(self) -> int:
        return self._gate.held

    def order(self, task: str | None) -> int:
        """The place of a task in the queue: that of its first attempt."""
        return self._orders.setdefault(task, len(self._orders))

    def close(self) -> None:
        """Give out no slot until `open`."""
        self._proceeds.clear()

    def open(self) -> None:
        self._proceeds.set()

    async def may_begin(self) -> None:
        """Return once something new may begin: not while the run is paused, and not at all when the session ends."""
        if not self._proceeds.is_set():
            await self._proceeds.wait()
        if self.draining:
            await never()

    async def take(self, task: str | None, waited: Waited) -> None:
        while True:
            if not self._gate.try_acquire():
                loop = asyncio.get_running_loop()
                began = loop.time()
                await self._gate.acquire(self.order(task))
                waited.seconds += loop.time() - began
            self.idle.clear()
            if self._proceeds.is_set() and not self.draining:
                return
            self.free()
            await self.may_begin()

    def free(self) -> None:
        self._gate.release()
        if not self._gate.held:
            self.idle.set()


async def never() -> None:
    """Wait until cancelled: nothing new is begun, because the session ends."""
    await asyncio.get_running_loop().create_future()
