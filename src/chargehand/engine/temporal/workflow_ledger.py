"""The budget of a run above its steps: each step is allotted a part, spends within it, and gives back the rest.

limit = spent by segments + allotted to steps under way + held back for the answer + left
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from chargehand.values.budget import Budget

# A step gets at least this much, if necessary after other steps gave some back: about one call with a full answer.
LEAST_TOKENS = 16_384
# What has to be left for another attempt to have a chance.
SMALLEST_ATTEMPT = 1_024


@dataclass(frozen=True)
class Allotment:
    """What a step may spend in addition to what its segment has spent before; None without a limit."""

    tokens: int | None
    usd: float | None


@dataclass
class WorkflowLedger:
    """One per run. It uses plain numbers and no clock: a replay of the workflow gives the same allotments."""

    limit: Budget = field(default_factory=Budget)
    # Segment -> what all its steps have spent so far.
    spent: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    allotted: dict[str, Allotment] = field(default_factory=dict[str, Allotment])
    tasks: dict[str, Budget] = field(default_factory=dict[str, Budget])
    # Tokens for the answer: to write it, and to read what workers wrote.
    to_write: int = 0
    to_read: int = 0
    unfinished: int = 1
    # Sums over the two tables above.
    _spent: tuple[int, float] = (0, 0.0)
    _allotted: tuple[int, float] = (0, 0.0)
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque[asyncio.Future[None]])

    # -- the part of the engine port ----------------------------------------------------------------------------------

    def hold(self, tokens: int) -> None:
        self.to_write = tokens

    def release(self) -> None:
        self.to_write = self.to_read = 0

    def allot(self, task: str, budget: Budget) -> None:
        self.tasks[task] = budget

    def affordable(self, tokens: int = 0) -> bool:
        left, usd = self._amount_left(under_way=False)
        enough = left is None or left - self.to_write - self.to_read > max(tokens, SMALLEST_ATTEMPT)
        return enough and (usd is None or usd > 0)

    def expect(self, tasks: int, within: str = "") -> None:
        self.unfinished = max(tasks, 1)

    # -- allotments ---------------------------------------------------------------------------------------------------

    async def reserve(self, segment: str, *, whole: bool, again: bool = False) -> Allotment:
        """A share of what is left; all of it for a step of the supervisor itself, and for a step that asks for more.

        It waits while others could give back enough.
        """
        while True:
            share = self._share(segment, whole=whole, again=again)
            if share is not None:
                self.allotted[segment] = share
                self._add_allotted(share, 1)
                return share
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def settle(self, segment: str, tokens: int, usd: float, written: int = 0) -> None:
        """The step is over, and its segment has spent so much in all."""
        if (share := self.allotted.pop(segment, None)) is not None:
            self._add_allotted(share, -1)
        before = self.spent_in(segment)
        self._spent = self._spent[0] + tokens - before[0], self._spent[1] + usd - before[1]
        self.spent[segment] = (tokens, usd)
        self.to_read += written
        self.wake()

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, deque[asyncio.Future[None]]()
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def spent_in(self, segment: str) -> tuple[int, float]:
        return self.spent.get(segment, (0, 0.0))

    def _share(self, segment: str, *, whole: bool, again: bool) -> Allotment | None:
        left, usd = self._amount_left()
        held = 0 if whole else self.to_write + self.to_read
        parts = 1 if whole or again else max(self.unfinished - len(self.allotted), 1)
        tokens = None
        if left is not None:
            room = max(left - held, 0)
            if room < LEAST_TOKENS and self.allotted:
                return None
            tokens = min(max(room // parts, LEAST_TOKENS), room)
        money = None if usd is None else max(usd, 0.0) / parts
        return self._within_task(segment, tokens, money)

    def _within_task(self, segment: str, tokens: int | None, usd: float | None) -> Allotment:
        """At most what the whole task of a segment, its parts included, has left."""
        task = segment.partition(".s.")[0]
        budget = self.tasks.get(task)
        if budget is None:
            return Allotment(tokens, usd)
        own = [self.spent_in(task)]
        if segment != task:  # a task is split once
            own += [used for each, used in self.spent.items() if each.startswith(f"{task}.s.")]
        if budget.tokens is not None:
            rest = max(budget.tokens - sum(used for used, _ in own), 0)
            tokens = rest if tokens is None else min(tokens, rest)
        if budget.usd is not None:
            rest_usd = max(budget.usd - sum(cost for _, cost in own), 0.0)
            usd = rest_usd if usd is None else min(usd, rest_usd)
        return Allotment(tokens, usd)

    def _add_allotted(self, share: Allotment, sign: int) -> None:
        tokens, usd = self._allotted
        self._allotted = tokens + sign * (share.tokens or 0), usd + sign * (share.usd or 0.0)

    def _amount_left(self, *, under_way: bool = True) -> tuple[int | None, float | None]:
        (spent, cost), (tokens, usd) = self._spent, self._allotted if under_way else (0, 0.0)
        limit = self.limit
        return (
            None if limit.tokens is None else limit.tokens - spent - tokens,
            None if limit.usd is None else limit.usd - cost - usd,
        )
