"""Interchangeable workers and their recent performance -> the worker for the next task, or none yet.

A task is bound late: it waits at the pool until a member has room, so a slow member gets few tasks. The member with
room and the least expected wait is taken, (tasks under way + 1) x recent seconds / share of good ends:

    member   under way   seconds   errors   expected wait
    a        2           1.0       0 %      3.0
    b        0           9.0       0 %      9.0      slow
    c        0           1.0       80 %     5.0      fails a lot
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from chargehand.values.plain_class import plain_class
from chargehand.values.step import Head

# The weight of the latest result.
RECENT = 0.3
# However much a member fails, its wait is not taken for more than this many times its seconds.
WORST = 0.05


@plain_class()
class Load:
    """The recent performance of one member. `seconds` is None until its first task has ended."""

    under_way: int = 0
    seconds: float | None = None
    errors: float = 0.0

    def record_end(self, seconds: float | None) -> None:
        """Count a task that was done in this many seconds; None when it failed."""
        if seconds is not None:
            self.seconds = seconds if self.seconds is None else (1 - RECENT) * self.seconds + RECENT * seconds
        self.errors = (1 - RECENT) * self.errors + RECENT * (0.0 if seconds is not None else 1.0)


def choose(loads: Mapping[str, Load], room: int) -> str | None:
    """The member with the least expected wait, the first of equals; None while none has room for one more."""
    known = [load.seconds for load in loads.values() if load.seconds is not None]
    # A member without an ended task counts as the fastest, so it is tried.
    guess = min(known, default=1.0)
    free = [name for name, load in loads.items() if load.under_way < room]
    return min(free, key=lambda name: expected_wait(loads[name], guess), default=None)


def expected_wait(load: Load, guess: float) -> float:
    seconds = guess if load.seconds is None else load.seconds
    return (load.under_way + 1) * seconds / max(1 - load.errors, WORST)


@plain_class()
class Pools:
    """One per dispatch. `loads` is written only by `bind` and `release`."""

    members: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    # How many calls may be in flight in the whole run: members together never have room for fewer.
    width: int = 8
    loads: dict[str, Load] = field(default_factory=dict[str, Load])
    _waiting: list[asyncio.Event] = field(default_factory=list[asyncio.Event])

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def mates(self, worker: str) -> Iterable[str]:
        """The others of its pool."""
        for members in self.members.values():
            if worker in members:
                yield from (each for each in members if each != worker)

    def choose(self, pool: str, able: Sequence[str]) -> str | None:
        """Which of the able members gets the next task of the pool; None while the task has to wait."""
        members = self.members[pool]
        loads = {name: self.loads.setdefault(name, Load()) for name in able or members}
        return choose(loads, -(-self.width // len(members)))

    async def wait(self, *, again: bool) -> None:
        """Wait until a member may have room; a task that has waited before stays first."""
        turn = asyncio.Event()
        self._waiting.insert(0 if again else len(self._waiting), turn)
        try:
            await turn.wait()
        except asyncio.CancelledError:
            if turn.is_set():
                self._wake()  # woken in the moment of cancellation: it was somebody's turn
            else:
                self._waiting.remove(turn)
            raise

    def bind(self, worker: str) -> None:
        """Give a task to the worker."""
        self.loads.setdefault(worker, Load()).under_way += 1

    def release(self, worker: str, head: Head | None) -> None:
        """Its attempt is over; None when it was not made."""
        load = self.loads[worker]
        load.under_way -= 1
        if head is not None:
            load.record_end(head.usage.seconds if head.ok else None)
        self._wake()

    def _wake(self) -> None:
        # In the order they came; one place has become free.
        if self._waiting:
            self._waiting.pop(0).set()
