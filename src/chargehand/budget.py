"""Limits as a value, and the ledger that reserves before a call and settles after it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import Field

from chargehand.value import Value

DEFAULT_TOKENS = 500_000
# A call with less room than this for its answer is not worth making.
SMALLEST_OUTPUT = 256
# A reservation never squeezes a call's answer below this while there is more left than that.
SMALLEST_SHARE = 1_024


class Budget(Value):
    """At most this much; None is no limit."""

    tokens: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens and money set aside for one call."""

    key: str
    input_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Grant:
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now, but what others have set aside could free enough."""


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


@dataclass(slots=True)
class Ledger:
    """Who has set aside how much of a budget. Only the engine writes it; every method is one atomic step.

    Invariant: spent + the sum of open reservations <= the limit, but for the estimation error of settled calls.
    """

    limit: Budget
    spent_tokens: int = 0
    spent_usd: float = 0.0
    open: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    # The sums over `open`, kept as it changes: a fan-out reserves and settles once per task.
    reserved_tokens: int = 0
    reserved_usd: float = 0.0

    def left(self) -> int | None:
        """Tokens neither spent nor set aside."""
        return None if self.limit.tokens is None else self.limit.tokens - self.spent_tokens - self.reserved_tokens

    def reserve(
        self,
        key: str,
        input_tokens: int,
        output_cap: int,
        usd_per_token: tuple[float, float] | None,
        share: int = 1,
        least: int = SMALLEST_OUTPUT,
    ) -> Grant | Wait | Deny:
        """Set tokens aside for a call: the estimated input plus an output cap clamped to a fair share of what is left.

        `share` is the number of tasks that still want something; it keeps one reservation from serialising a fan-out.
        With room for less than `least` tokens of output the call is not made.
        """
        cap, least = output_cap, min(least, output_cap)
        if (left := self.left()) is not None:
            assert self.limit.tokens is not None
            cap = min(cap, max((left - input_tokens) // max(share, 1), SMALLEST_SHARE), left - input_tokens)
            if cap < least:
                if input_tokens + least <= self.limit.tokens - self.spent_tokens and self.open:
                    return Wait()
                return Deny(
                    f"the run's budget of {self.limit.tokens:,} tokens has {max(left, 0):,} left and this call needs "
                    f"about {input_tokens + least:,}"
                )
        usd = None if usd_per_token is None else input_tokens * usd_per_token[0] + cap * usd_per_token[1]
        if self.limit.usd is not None and usd is not None:
            left_usd = self.limit.usd - self.spent_usd
            if usd > left_usd - self.reserved_usd:
                if usd <= left_usd and self.open:
                    return Wait()
                return Deny(
                    f"the run's budget of {self.limit.usd} USD has {max(left_usd, 0):.4f} left "
                    f"and this call needs about {usd:.4f}"
                )
        reservation = Reservation(key, input_tokens, cap, usd)
        self.open[key] = reservation
        self.reserved_tokens += reservation.tokens
        self.reserved_usd += usd or 0.0
        return Grant(reservation)

    def settle(self, key: str, tokens: int | None, usd: float | None) -> None:
        """Close a reservation with what was used; unknown usage counts as all that was set aside."""
        reservation = self.open.pop(key)
        self.reserved_tokens -= reservation.tokens
        self.reserved_usd -= reservation.usd or 0.0
        self.spent_tokens += reservation.tokens if tokens is None else tokens
        self.spent_usd += (reservation.usd or 0.0) if usd is None else usd

    def charge(self, tokens: int, usd: float | None) -> None:
        """Count what an earlier session of the run has spent."""
        self.spent_tokens += tokens
        self.spent_usd += usd or 0.0
