"""The ledger: what is set aside never exceeds the limit, waiting makes sense, and everything is settled in the end."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from chargehand.budget import SMALLEST_OUTPUT, Budget, Deny, Grant, Ledger, Wait
from chargehand.testing import run_virtual

LIMIT = 10_000
USD = 1.0
PRICE = (1e-5, 5e-5)


class Accounts(RuleBasedStateMachine):
    """Calls whose input is estimated exactly and whose answers keep to their cap, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(Budget(tokens=LIMIT, usd=USD))
        self.calls = 0

    @rule(size=st.integers(0, 6_000), cap=st.integers(1, 8_000), share=st.integers(0, 50), priced=st.booleans())
    def reserve(self, size: int, cap: int, share: int, priced: bool) -> None:
        self.calls += 1
        before = dict(self.ledger.open)
        left = LIMIT - self.ledger.spent_tokens
        match self.ledger.reserve(f"c{self.calls}", size, cap, PRICE if priced else None, share):
            case Grant(reservation):
                assert reservation.input_tokens == size
                assert min(SMALLEST_OUTPUT, cap) <= reservation.output_tokens <= cap
                assert self.ledger.open == before | {f"c{self.calls}": reservation}
            case Wait():
                assert before, "nobody holds anything: there is nothing to wait for"
                assert size + min(SMALLEST_OUTPUT, cap) <= left, "it will not fit whatever is freed"
                assert self.ledger.open == before
            case Deny(reason):
                assert reason
                assert self.ledger.open == before

    @precondition(lambda self: self.ledger.open)
    @rule(data=st.data(), used=st.floats(0, 1), known=st.booleans())
    def settle(self, data: st.DataObject, used: float, known: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.ledger.open)))
        reservation = self.ledger.open[key]
        tokens = int(reservation.tokens * used) if known else None
        usd = None if not known or reservation.usd is None else reservation.usd * used
        before = self.ledger.spent_tokens
        self.ledger.settle(key, tokens, usd)
        assert self.ledger.spent_tokens == before + (reservation.tokens if tokens is None else tokens)
        assert key not in self.ledger.open

    @invariant()
    def never_over_the_limit(self) -> None:
        assert self.ledger.reserved_tokens == sum(r.tokens for r in self.ledger.open.values())
        assert self.ledger.spent_tokens + self.ledger.reserved_tokens <= LIMIT
        assert self.ledger.spent_usd + sum(r.usd or 0.0 for r in self.ledger.open.values()) <= USD + 1e-9


Accounts.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestAccounts = Accounts.TestCase


def test_without_a_limit_everything_is_granted_in_full() -> None:
    """None is no limit, not zero."""
    granted = Ledger(Budget()).reserve("c", 10**9, 10**9, None)
    assert isinstance(granted, Grant)
    assert granted.reservation.output_tokens == 10**9


def test_one_reservation_does_not_serialise_a_fan_out() -> None:
    """With ten tasks to go the first call is clamped to its share, so that the others fit beside it."""
    ledger = Ledger(Budget(tokens=50_000))
    for number in range(10):
        assert isinstance(ledger.reserve(f"c{number}", 100, 50_000, None, share=10 - number), Grant)
    assert ledger.reserved_tokens <= 50_000


@pytest.mark.parametrize(("spent", "expected"), [(0, Grant), (9_700, Deny), (10_000, Deny), (12_000, Deny)])
def test_a_call_is_denied_when_nothing_could_free_enough(spent: int, expected: type[object]) -> None:
    """Under 256 tokens of room for an answer a call is not made; overspent is no different from spent."""
    ledger = Ledger(Budget(tokens=LIMIT))
    ledger.charge(spent, None)
    assert isinstance(ledger.reserve("c", 100, 4_000, None), expected)


def test_a_denial_for_money_names_the_money() -> None:
    """Dollars are a limit of their own."""
    ledger = Ledger(Budget(usd=0.01))
    denied = ledger.reserve("c", 1_000_000, 100, PRICE)
    assert isinstance(denied, Deny)
    assert "USD" in denied.reason


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_waiters_are_never_left_behind(seed: int) -> None:
    """Whoever waits and asks again after each settlement is granted or denied in the end."""
    chance = random.Random(seed)

    async def call(ledger: Ledger, freed: asyncio.Condition, key: str) -> bool:
        size, cap = chance.randrange(3_000), chance.randrange(1, 5_000)
        async with freed:
            while isinstance(verdict := ledger.reserve(key, size, cap, None, share=chance.randint(1, 5)), Wait):
                await freed.wait()
        if isinstance(verdict, Deny):
            return False
        await asyncio.sleep(chance.random())
        async with freed:
            ledger.settle(key, chance.randrange(verdict.reservation.tokens + 1), None)
            freed.notify_all()
        return True

    async def main() -> None:
        ledger, freed = Ledger(Budget(tokens=LIMIT)), asyncio.Condition()
        ended = await asyncio.gather(*(call(ledger, freed, f"c{n}") for n in range(20)))
        assert any(ended)
        assert ledger.open == {}
        assert ledger.spent_tokens <= LIMIT

    run_virtual(main())
