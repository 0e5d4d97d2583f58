"""The workers as a dispatch sees them: which of them can do a task, which takes over, which is out for now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from chargehand.dispatcher.pool import Pools
from chargehand.errors import ErrorKind
from chargehand.limits import Breaker, BreakerChange, Ticket
from chargehand.values.base import JSON
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Tier
from chargehand.values.step import Head
from chargehand.workers import WorkerFacts

# A worker is taken out when this many different tasks in a row failed on it, and tried again after a pause, once.
FAILURES_IN_A_ROW = 3
PAUSE_S = 15.0
# A breaker's generations count from 0, so this number is never the current one.
_LATE = -1
# Not caused by the worker: these say nothing about the next task. Providers have breakers of their own.
_NOT_ITS_DOING: tuple[ErrorKind, ...] = (
    "budget",
    "deadline",
    "cancelled",
    "auth",
    "in_doubt",
    "rate_limited",
    "overloaded",
    "connection",
    "analyzer",
)


def out_key(worker: str) -> str:
    """Under which key it is decided whether a worker is out."""
    return f"@worker/{worker}/out"


@plain_class()
class AvailableWorkers:
    """One per dispatch. Breakers are written only by `begin`, `record_end` and `restore`."""

    roster: Mapping[str, WorkerFacts]
    fallbacks: Mapping[str, str]
    # Whether a task may be handed to a person whom the plan did not name.
    ask: bool = False
    pools: Pools = field(default_factory=Pools)
    breakers: dict[str, Breaker] = field(default_factory=dict[str, Breaker])
    # Worker -> the keys of its attempts that are under way, in the order they began.
    attempts: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def tier(self, name: str) -> Tier:
        """The tier a worker works at when the task names none."""
        return self.roster[name].tier

    def others(self, name: str, failed: Collection[str]) -> tuple[str, ...]:
        """Workers that can take over, best first: fallbacks, then roster order; never one that failed this task."""
        names = dict.fromkeys((*self._fallbacks_of(name), *self.roster))
        return tuple(o for o in names if o != name and o not in failed and not self.is_out(o) and self._may_have(o))

    def fallback_for(self, name: str, failed: Collection[str]) -> str | None:
        """The first of its fallbacks that has not failed this task."""
        names = (o for o in self._fallbacks_of(name) if o not in failed and not self.is_out(o))
        return next((o for o in names if self._may_have(o)), None)

    def _may_have(self, name: str) -> bool:
        """People get tasks that others could not do only where people may be asked."""
        return self.ask or not self.roster[name].waits_for_person

    def _fallbacks_of(self, name: str) -> Iterator[str]:
        """The substitutes of a worker: those of its pool, then those its team names."""
        yield from self.pools.mates(name)
        seen = {name}
        while (name := self.fallbacks.get(name, "")) and name not in seen:
            seen.add(name)
            yield name

    def member(self, pool: str, failed: Collection[str], now: float) -> str | None:
        """The member of a pool that gets a task now; None while no able member has room."""
        members = self.pools.members[pool]
        able = [name for name in members if name not in failed and self.wait_for(name, now) is None]
        return self.pools.choose(pool, able)

    def wait_for(self, name: str, now: float) -> float | None:
        """Seconds until this worker may be tried again, infinite when it is out for good; None when it is in."""
        breaker = self.breakers.get(name)
        if breaker is None or breaker.allows(now):
            return None
        at = breaker.retry_at(now)
        return float("inf") if at is None else max(at - now, 0.001)

    def is_out(self, name: str) -> bool:
        """Whether it is out for the rest of the run."""
        return name in self.breakers and self.breakers[name].for_good

    def verdict(self, name: str, now: float) -> JSON:
        """Until when a worker is out and why, for the record; None while it is in."""
        breaker = self.breakers[name]
        return None if breaker.state == "closed" else {"until": breaker.retry_at(now), "reason": breaker.reason}

    def restore(self, name: str, verdict: JSON) -> None:
        """Take a worker out as an earlier session did."""
        if verdict is None:
            return
        if verdict["until"] is None:
            self._breaker(name).open_for_good(verdict["reason"])
        else:
            self._breaker(name).open_until(verdict["until"], verdict["reason"])

    def stand_in(self, name: str, failed: Collection[str], now: float) -> str | None:
        """The first fallback that is in and has not failed this task."""
        names = (other for other in self._fallbacks_of(name) if other not in failed and self._may_have(other))
        return next((other for other in names if self.wait_for(other, now) is None), None)

    def begin(self, name: str, now: float) -> Ticket | None:
        """Let an attempt begin; None when the worker is out."""
        breaker = self._breaker(name)
        return breaker.begin(now) if breaker.allows(now) else None

    def rejoin(self, name: str, now: float) -> Ticket:
        """Let an attempt of an earlier session continue; while its worker is out, its result changes no breaker."""
        return self.begin(name, now) or Ticket(_LATE)

    def _breaker(self, name: str) -> Breaker:
        if (known := self.breakers.get(name)) is None:
            known = Breaker(f"worker {name}", threshold=FAILURES_IN_A_ROW, cooldown_s=PAUSE_S, longest_s=PAUSE_S)
            self.breakers[name] = known
        return known

    def begin_attempt(self, name: str, key: str) -> None:
        self.attempts.setdefault(name, {})[key] = None

    def end_attempt(self, name: str, key: str) -> None:
        del self.attempts[name][key]

    def under_way(self, name: str) -> tuple[str, ...]:
        """The keys of this worker's attempts that are under way."""
        return tuple(self.attempts.get(name, ()))

    def forget(self, name: str, ticket: Ticket, now: float) -> None:
        """An attempt was not made after all: it says nothing about the worker."""
        self.breakers[name].forget(ticket, now)

    def record_end(self, ticket: Ticket, name: str, head: Head, now: float) -> BreakerChange | None:
        """What an attempt says about its worker. A failed trial takes it out for the rest of the run."""
        breaker = self.breakers[name]
        if head.error is None:
            return breaker.record_success(ticket)
        if head.error in _NOT_ITS_DOING:
            breaker.forget(ticket, now)
            return None
        trial = breaker.state == "half_open"
        change = breaker.record_failure(ticket, now, head.task, head.why)
        if trial and change is not None:
            return breaker.open_for_good(f"the trial failed too: {head.why}")
        return change

    def refusal(self, name: str) -> str:
        """Why a worker that is out for good does not get a task."""
        return f"{name} was taken out for the rest of the run: {self.breakers[name].reason}."
