"""Which effects may be in flight: the concurrency gate in task order, closed while the run is paused.

It is closed for good when the session winds down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import field

from chargehand.engine.local.prompt_cache_order import FirstCall
from chargehand.limits import Gate
from chargehand.values.plain_class import plain_class


@plain_class()
class Waited:
    """Seconds one effect was kept waiting, whether anything of it was sent, and the text of a reply under way."""

    seconds: float = 0.0
    # Seconds in which the run was paused, and by which the limits of the call's time are still to be moved.
    paused: float = 0.0
    sent: bool = False
    # Whether a try was sent that was neither answered nor refused: the provider may have used tokens for it.
    unanswered: bool = False
    pieces: list[str] = field(default_factory=list[str])
    # For a call that others wait for: releases them.
    first: FirstCall | None = None


# Larger than the number of tasks: a task without a slot so far comes after all that had one.
NEW = 500_000


class Slots:
    """A limited number at once. Begun tasks come before new ones, the supervisor's own calls before both."""

    def __init__(self, limit: int) -> None:
        self._gate = Gate(limit)
        # The places of tasks: in the plan, and among those that have had a slot.
        self._listed: dict[str | None, int] = {}
        self._begun: dict[str | None, int] = {None: -1}
        # Set while no slot is held: what a drain waits for.
        self.idle = asyncio.Event()
        self.idle.set()
        # Called when the last slot that is held becomes free.
        self.on_idle: Callable[[], None] = _do_nothing
        self.draining = False
        # Set unless the run is paused.
        self._proceeds = asyncio.Event()
        self._proceeds.set()

    @property
    def held(self) -> int:
        return self._gate.held

    def line_up(self, tasks: Iterable[str | None]) -> None:
        """Note the order in which new tasks come: as they are in the plan, and others as they arrive."""
        for task in tasks:
            self._listed.setdefault(task, len(self._listed))

    def order(self, task: str | None) -> int:
        """The place of a task in the queue: begun tasks in the order of their first slots, then new ones as listed."""
        begun = self._begun.get(task)
        return NEW + self._listed.get(task, NEW) if begun is None else begun

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
        loop = asyncio.get_running_loop()
        while True:
            if not self._gate.try_acquire():
                began = loop.time()
                await self._gate.acquire(self.order(task))
                waited.seconds += loop.time() - began
            self.idle.clear()
            self._begun.setdefault(task, len(self._begun))
            if self._proceeds.is_set() and not self.draining:
                return
            self.free()
            began = loop.time()
            await self.may_begin()
            waited.paused += loop.time() - began

    def free(self) -> None:
        self._gate.release()
        if not self._gate.held:
            self.idle.set()
            self.on_idle()


def _do_nothing() -> None:
    """Nothing waits for free slots."""


async def never() -> None:
    """Wait until cancelled: nothing new is begun, because the session ends."""
    await asyncio.get_running_loop().create_future()
