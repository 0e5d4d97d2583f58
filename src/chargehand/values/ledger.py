"""The ledger that reserves before a call and settles after it.

    limit = spent + reserved (calls in flight) + held back (for the synthesis) + left

A call is granted, has to wait while calls in flight could free enough, or is denied. The output of a worker is reserved
twice: the worker writes it, and the synthesizer reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import inf
from typing import NamedTuple

from chargehand.values.budget import LARGEST_HOLD, SMALLEST_OUTPUT, SMALLEST_SHARE, Budget
from chargehand.values.key import TaskPath
from chargehand.values.plain_class import plain_class


class Wish(NamedTuple):
    """What a call would like to reserve. `echo`: the synthesizer will read the output of the call.

    `share` is the number of tasks that still need budget: one reservation must not make parallel tasks wait for each
    other. With room for less than `least` tokens of output the call is not made. `held`: the call may use the tokens
    that are held back.
    """

    key: str
    input_tokens: int
    output_cap: int
    usd_per_token: tuple[float, float] | None = None
    task: str | None = None
    share: int = 1
    least: int = SMALLEST_OUTPUT
    echo: bool = False
    held: bool = False


class Reservation(NamedTuple):
    """Tokens and money reserved for one call."""

    key: str
    task: str | None
    input_tokens: int
    output_tokens: int
    usd: float | None
    echo: bool
    # The cost of the synthesizer reading the output of the call.
    usd_to_read: float = 0.0

    @property
    def tokens(self) -> int:
        """What the call itself may use."""
        return self.input_tokens + self.output_tokens

    @property
    def set_aside(self) -> int:
        return self.tokens + (self.output_tokens if self.echo else 0)

    @property
    def usd_set_aside(self) -> float:
        return (self.usd or 0.0) + self.usd_to_read


class Grant(NamedTuple):
    reservation: Reservation


class Wait:
    """Not now, but reservations of other calls could free enough."""


class Deny(NamedTuple):
    reason: str


@plain_class()
class Account:
    """One limit and how much of it is used. Only the ledger writes it."""

    name: str
    limit: Budget
    spent_tokens: int = 0
    spent_usd: float = 0.0
    reserved_tokens: int = 0
    reserved_usd: float = 0.0

    def tokens_left(self, *, in_flight: bool) -> int | None:
        """Tokens that are not spent and, if calls in flight count, not reserved; None without a limit."""
        if self.limit.tokens is None:
            return None
        return self.limit.tokens - self.spent_tokens - (self.reserved_tokens if in_flight else 0)

    def usd_left(self, *, in_flight: bool) -> float | None:
        if self.limit.usd is None:
            return None
        return self.limit.usd - self.spent_usd - (self.reserved_usd if in_flight else 0.0)


@plain_class()
class Ledger:
    """How much of the budget of a run and of its tasks is reserved, and for what. Every method is one atomic step.

    Invariant: spent + reserved + held back <= the limit, except for `short`, the estimation error of settled calls.
    """

    limit: Budget
    open: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    # Held back for the synthesis: what it will write, and what it will read.
    to_write: int = 0
    to_read: int = 0
    # USD per token of input and output of the model that writes the answer; None if unknown.
    writer: tuple[float, float] | None = None
    # By how many tokens settled calls exceeded their reservations, in total.
    short: int = 0
    _run: Account = field(init=False)
    _tasks: dict[str, Account] = field(default_factory=dict[str, Account])

    def __post_init__(self) -> None:
        self._run = Account("the run", self.limit)

    @property
    def spent_tokens(self) -> int:
        return self._run.spent_tokens

    @property
    def spent_usd(self) -> float:
        return self._run.spent_usd

    @property
    def reserved_tokens(self) -> int:
        return self._run.reserved_tokens

    @property
    def held_back(self) -> int:
        """No more than a part of the limit: a small budget is for the work first."""
        own = self.to_write if self.limit.tokens is None else min(self.to_write, int(LARGEST_HOLD * self.limit.tokens))
        return own + self.to_read

    @property
    def held_back_usd(self) -> float:
        """The same in money."""
        read, write = self.writer or (0.0, 0.0)
        own = self.to_write * write
        return (own if self.limit.usd is None else min(own, LARGEST_HOLD * self.limit.usd)) + self.to_read * read

    def tokens_left(self, *, held: bool = False) -> int | None:
        """Tokens neither spent, reserved nor held back; None without a limit."""
        left = self._run.tokens_left(in_flight=True)
        return None if left is None else left - (0 if held else self.held_back)

    def release(self) -> None:
        """Stop holding tokens back: the answer is written."""
        self.to_write = self.to_read = 0

    def affordable(self, needed: int = SMALLEST_SHARE) -> bool:
        """Whether there is room for another attempt: for a call of that size, after the calls in flight are settled."""
        tokens, usd = self._run.tokens_left(in_flight=False), self._run.usd_left(in_flight=False)
        enough = tokens is None or tokens - self.held_back > max(needed, SMALLEST_SHARE)
        return enough and (usd is None or usd > self.held_back_usd)

    def allot(self, task: str, limit: Budget, tokens: int = 0, usd: float = 0.0) -> None:
        """Keep a task within a budget, some of which an earlier session may have used; the tightest budget applies."""
        account = self._tasks.setdefault(task, Account(f"task {task}", limit, tokens, usd))
        account.limit = account.limit.within(limit)

    def reserve(self, wish: Wish) -> Grant | Wait | Deny:
        """Reserve the estimated input and an output cap clamped to a fair share of what is left."""
        accounts = self._accounts(wish.task)
        least = min(wish.least, wish.output_cap)
        times = 2 if wish.echo else 1
        cap = wish.output_cap
        for account in accounts:
            held = self.held_back if account is self._run and not wish.held else 0
            left = account.tokens_left(in_flight=True)
            if left is None:
                continue
            room = (left - held - wish.input_tokens) // times
            share = wish.share if account is self._run else 1
            cap = min(cap, max(room // max(share, 1), SMALLEST_SHARE), room)
            if cap < least:
                need = wish.input_tokens + times * least
                most = account.tokens_left(in_flight=False)
                if most is not None and need <= most - held and account.reserved_tokens:
                    return Wait()
                parts = _parts_of(account.spent_tokens, account.reserved_tokens, held, "{:,}".format)
                return Deny(
                    f"{account.name}'s budget of {account.limit.tokens:,} tokens has {max(left - held, 0):,} left"
                    f"{parts} and this call needs about {need:,}"
                )
        if wish.usd_per_token is None:
            if (limited := next((each for each in accounts if each.limit.usd is not None), None)) is not None:
                return Deny(f"{limited.name}'s budget of {limited.limit.usd} USD cannot be kept: the price is unknown")
            return self._grant(wish, Reservation(wish.key, wish.task, wish.input_tokens, cap, None, wish.echo))
        return self._grant_money(wish, wish.usd_per_token, cap, least)

    def _grant_money(self, wish: Wish, prices: tuple[float, float], cap: int, least: int) -> Grant | Wait | Deny:
        """The same for money, for `cap` tokens of output."""
        accounts = self._accounts(wish.task)
        read = wish.input_tokens * prices[0]
        again = self.writer[0] if wish.echo and self.writer else 0.0
        for account in accounts:
            left = self._usd_left(account, wish, in_flight=True)
            if left is None or not prices[1] + again:
                continue
            share = wish.share if account is self._run else 1
            fair = (left / max(share, 1) - read) / (prices[1] + again)
            room = (left - read) / (prices[1] + again)
            cap = max(min(cap, int(max(fair, min(SMALLEST_SHARE, room)))), least)
        usd = read + cap * prices[1]
        need = usd + cap * again
        for account in accounts:
            left = self._usd_left(account, wish, in_flight=True)
            if left is None or need <= left:
                continue
            most = self._usd_left(account, wish, in_flight=False)
            if most is not None and need <= most and account.reserved_usd:
                return Wait()
            held = self.held_back_usd if account is self._run and not wish.held else 0.0
            parts = _parts_of(account.spent_usd, account.reserved_usd, held, "{:.4f}".format)
            return Deny(
                f"{account.name}'s budget of {account.limit.usd} USD has {max(left, 0):.4f} left{parts} and this call "
                f"needs about {need:.4f}"
            )
        reservation = Reservation(wish.key, wish.task, wish.input_tokens, cap, usd, wish.echo, cap * again)
        return self._grant(wish, reservation)

    def _usd_left(self, account: Account, wish: Wish, *, in_flight: bool) -> float | None:
        held = self.held_back_usd if account is self._run and not wish.held else 0.0
        left = account.usd_left(in_flight=in_flight)
        return None if left is None else left - held

    def _grant(self, wish: Wish, reservation: Reservation) -> Grant:
        self.open[wish.key] = reservation
        for account in self._accounts(wish.task):
            account.reserved_tokens += reservation.set_aside
            account.reserved_usd += reservation.usd_set_aside
        return Grant(reservation)

    def settle(self, key: str, tokens: int | None, usd: float | None, written: int = 0) -> None:
        """Close a reservation with the real usage; unknown usage counts as the most that the call could have used."""
        reservation = self.open.pop(key)
        # A negative number counts as unknown: a call must not give back more than it reserved.
        used = reservation.tokens if tokens is None or tokens < 0 else tokens
        cost = usd if usd is not None and 0.0 <= usd < inf else reservation.usd or 0.0
        self.short += max(used - reservation.tokens, 0)
        if reservation.echo:
            self.to_read += max(written, 0)
        for account in self._accounts(reservation.task):
            account.reserved_tokens -= reservation.set_aside
            account.reserved_usd -= reservation.usd_set_aside
            account.spent_tokens += used
            account.spent_usd += cost

    def top_up(self, tokens: int, usd: float) -> Budget:
        """Raise the limits that the run has by so much; returns the new limits."""
        more = {
            "tokens": None if self.limit.tokens is None else self.limit.tokens + tokens,
            "usd": None if self.limit.usd is None else self.limit.usd + usd,
        }
        self.limit = self._run.limit = self.limit.model_copy(update=more)
        return self.limit

    def charge(self, tokens: int, usd: float | None) -> None:
        """Count what an earlier session of the run has spent."""
        self._run.spent_tokens += max(tokens, 0)
        self._run.spent_usd += usd if usd is not None and 0.0 <= usd < inf else 0.0

    def _accounts(self, task: str | None) -> tuple[Account, ...]:
        """The limits of the run, of the task if it has one, and of the tasks it is a part of or nested in."""
        if task is None or not self._tasks:
            return (self._run,)
        return (self._run, *(self._tasks[name] for name in TaskPath.parse(task).wholes if name in self._tasks))


def _parts_of(spent: float, reserved: float, held: float, show: Callable[[float], str]) -> str:
    """What is not left of a limit, part by part; nothing for a limit of which all is left."""
    parts = {"used": spent, "set aside for calls in flight": reserved, "kept for the answer": held}
    said = ", ".join(f"{show(amount)} {what}" for what, amount in parts.items() if amount)
    return f" ({said})" if said else ""


@plain_class()
class Calibration:
    """How many tokens a model counts for each estimated token, learned from the usage it reports."""

    # The factor that raises an estimate, so that it is rarely too low.
    margin: float = 1.1
    _ratios: dict[str, float] = field(default_factory=dict[str, float])

    def estimate(self, model: str, raw: int) -> int:
        return raw if model not in self._ratios else max(int(raw * self._ratios[model] * self.margin), 1)

    def learn(self, model: str, raw: int, actual: int) -> None:
        """Recent calls count more; an extreme ratio means that the provider counts something else."""
        if raw <= 0 or actual <= 0:
            return
        ratio = min(max(actual / raw, 0.1), 100.0)
        known = self._ratios.get(model)
        self._ratios[model] = ratio if known is None else 0.7 * known + 0.3 * ratio
