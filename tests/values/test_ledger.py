"""The ledger: what is set aside never exceeds the limit, waiting makes sense, and everything is settled in the end."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import ValidationError

from chargehand.models import Attribution
from chargehand.testing import run_virtual
from chargehand.values.budget import LARGEST_HOLD, SMALLEST_OUTPUT, SMALLEST_SHARE, Budget
from chargehand.values.effect import ModelCall, ModelResult
from chargehand.values.ledger import Calibration, Deny, Grant, Ledger, Reservation, Wait, Wish
from chargehand.values.message import Reply, TokenCount
from tests.counts import examples
from tests.kernel import FunctionModel, engine, question

LIMIT = 10_000
USD = 0.2
PRICE = (1e-5, 5e-5)
# Tasks with a budget of their own, and how much it is.
OWN = {"t1": 3_000, "t2": 8_000}


class Accounts(RuleBasedStateMachine):
    """Calls of a run and its tasks in any order. `error` is by how much a call may exceed what was set aside for it."""

    error = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(Budget(tokens=LIMIT, usd=USD), writer=PRICE)
        for task, tokens in OWN.items():
            self.ledger.allot(task, Budget(tokens=tokens))
        self.calls = 0
        self.spent = dict.fromkeys(OWN, 0)
        # Tokens and money by which calls went over what was set aside, as it really was.
        self.over, self.over_usd = 0, 0.0
        self.held_was_used = False

    @rule(
        size=st.integers(0, 6_000),
        cap=st.integers(1, 8_000),
        share=st.integers(0, 50),
        priced=st.integers(0, 9).map(lambda n: n > 0),
        task=st.sampled_from((None, "t1", "t1.s.a", "t2", "t3")),
        echo=st.booleans(),
        held=st.integers(0, 9).map(lambda n: n == 0),
    )
    def reserve(self, size: int, cap: int, share: int, priced: bool, task: str | None, echo: bool, held: bool) -> None:
        self.calls += 1
        key, before = f"c{self.calls}", dict(self.ledger.open)
        left = LIMIT - self.ledger.spent_tokens - (0 if held else self.ledger.held_back)
        match self.ledger.reserve(Wish(key, size, cap, PRICE if priced else None, task, share, echo=echo, held=held)):
            case Grant(reservation):
                assert priced, "a price that is unknown fits no budget of money"
                assert reservation.input_tokens == size
                assert min(SMALLEST_OUTPUT, cap) <= reservation.output_tokens <= cap
                assert self.ledger.open == before | {key: reservation}
                assert reservation.set_aside <= left
                self.held_was_used = self.held_was_used or held
            case Wait():
                assert before, "nobody holds anything: there is nothing to wait for"
                assert size + min(SMALLEST_OUTPUT, cap) * (2 if echo else 1) <= left, "it will not fit ever"
                assert self.ledger.open == before
            case Deny(reason):
                assert reason
                assert self.ledger.open == before

    @precondition(lambda self: self.ledger.open)
    @rule(data=st.data(), used=st.floats(0, 1), known=st.booleans())
    def settle(self, data: st.DataObject, used: float, known: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.ledger.open)))
        reservation = self.ledger.open[key]
        tokens = int(reservation.tokens * used * (1 + self.error)) if known else None
        usd = None if not known or reservation.usd is None else reservation.usd * used * (1 + self.error)
        before = self.ledger.spent_tokens
        self.ledger.settle(key, tokens, usd, written=int(reservation.output_tokens * used))
        spent = reservation.tokens if tokens is None else tokens
        assert self.ledger.spent_tokens == before + spent
        assert key not in self.ledger.open
        self.over += max(spent - reservation.tokens, 0)
        self.over_usd += max((usd or 0.0) - (reservation.usd or 0.0), 0.0)
        if (task := (reservation.task or "").partition(".s.")[0]) in OWN:
            self.spent[task] += spent

    @rule(tokens=st.integers(0, 4_000))
    def hold(self, tokens: int) -> None:
        if self.calls == 0:
            self.ledger.to_write = tokens

    @invariant()
    def over_the_limit_by_no_more_than_the_stated_error(self) -> None:
        open_now = self.ledger.open.values()
        assert self.ledger.short == self.over
        assert self.ledger.reserved_tokens == sum(r.set_aside for r in open_now)
        assert self.ledger.spent_tokens + self.ledger.reserved_tokens <= LIMIT + self.ledger.short
        assert self.ledger.spent_usd + sum(r.usd_set_aside for r in open_now) <= USD + self.over_usd + 1e-9
        for task, limit in OWN.items():
            waiting = sum(r.set_aside for r in open_now if (r.task or "").partition(".s.")[0] == task)
            assert self.spent[task] + waiting <= limit + self.ledger.short

    @invariant()
    def what_is_held_back_is_there(self) -> None:
        if not self.held_was_used:
            left = self.ledger.tokens_left(held=True)
            assert left is not None
            assert left >= self.ledger.held_back - self.ledger.short
            left_usd = USD - self.ledger.spent_usd - sum(r.usd_set_aside for r in self.ledger.open.values())
            assert left_usd >= self.ledger.held_back_usd - self.over_usd - 1e-9

    def teardown(self) -> None:
        for key in list(self.ledger.open):
            self.ledger.settle(key, 0, 0.0)
        assert self.ledger.reserved_tokens == 0
        assert self.ledger.spent_tokens <= LIMIT + self.ledger.short


class WrongEstimates(Accounts):
    """The same with calls that use up to half again of what was set aside for them."""

    error = 0.5


Accounts.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=30, deadline=None)
WrongEstimates.TestCase.settings = Accounts.TestCase.settings
TestExactEstimates = Accounts.TestCase
TestWrongEstimates = WrongEstimates.TestCase


def granted(verdict: Grant | Wait | Deny) -> Reservation:
    assert isinstance(verdict, Grant), verdict
    return verdict.reservation


def test_without_a_limit_everything_is_granted_in_full() -> None:
    """None is no limit, not zero."""
    assert granted(Ledger(Budget()).reserve(Wish("c", 10**9, 10**9))).output_tokens == 10**9
    assert Ledger(Budget()).tokens_left() is None


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"tokens": -1}, {"usd": 0}, {"usd": -0.5}, {"seconds": 0}])
def test_a_budget_is_more_than_nothing(wrong: dict[str, Any]) -> None:
    """Zero and negative budgets are refused where they are written."""
    with pytest.raises(ValidationError):
        Budget(**wrong)


def test_one_reservation_does_not_serialise_a_fan_out() -> None:
    """With ten tasks to go the first call is clamped to its share, so that the others fit beside it."""
    ledger = Ledger(Budget(tokens=50_000))
    for number in range(10):
        granted(ledger.reserve(Wish(f"c{number}", 100, 50_000, share=10 - number)))
    assert ledger.reserved_tokens <= 50_000


def test_a_share_is_never_less_than_is_worth_having() -> None:
    """A thousand tasks to go: the first calls get room for an answer, not a thousandth of it."""
    ledger = Ledger(Budget(tokens=50_000))
    assert granted(ledger.reserve(Wish("c", 100, 4_000, share=1_000))).output_tokens == SMALLEST_SHARE


@pytest.mark.parametrize(("spent", "expected"), [(0, Grant), (9_700, Deny), (10_000, Deny), (12_000, Deny)])
def test_a_call_is_denied_when_nothing_could_free_enough(spent: int, expected: type[object]) -> None:
    """Under 256 tokens of room for an answer a call is not made; overspent is no different from spent."""
    ledger = Ledger(Budget(tokens=LIMIT))
    ledger.charge(spent, None)
    assert isinstance(ledger.reserve(Wish("c", 100, 4_000)), expected)


def test_a_denial_for_money_names_the_money() -> None:
    """Dollars are a limit of their own."""
    denied = Ledger(Budget(usd=0.01)).reserve(Wish("c", 1_000_000, 100, PRICE))
    assert isinstance(denied, Deny)
    assert "USD" in denied.reason


def test_what_a_worker_writes_is_set_aside_twice() -> None:
    """Once to write it and once for the synthesizer to read it; after the call just what was written stays held."""
    ledger = Ledger(Budget(tokens=LIMIT))
    reservation = granted(ledger.reserve(Wish("c", 1_000, 2_000, echo=True)))
    assert ledger.tokens_left() == LIMIT - 1_000 - 2 * 2_000
    ledger.settle("c", 1_000 + 300, None, written=300)
    assert reservation.tokens == 3_000
    assert ledger.tokens_left() == LIMIT - 1_300 - 300
    assert ledger.tokens_left(held=True) == LIMIT - 1_300


def test_what_is_unused_returns() -> None:
    """A call that was set aside for 8,000 and used 100 leaves room for the next one."""
    ledger = Ledger(Budget(tokens=LIMIT))
    granted(ledger.reserve(Wish("a", 1_000, 7_000)))
    assert isinstance(ledger.reserve(Wish("b", 3_000, 4_000)), Wait)
    ledger.settle("a", 100, None)
    assert granted(ledger.reserve(Wish("b", 3_000, 4_000))).output_tokens == 4_000


def test_a_tasks_own_budget_holds_for_all_its_parts() -> None:
    """The tasks it was split into share it; other tasks do not touch it."""
    ledger = Ledger(Budget(tokens=100_000))
    ledger.allot("t1", Budget(tokens=2_000), tokens=500)
    granted(ledger.reserve(Wish("a", 300, 700, task="t1.s.a")))
    assert isinstance(ledger.reserve(Wish("b", 400, 700, task="t1.s.b")), Wait)
    ledger.settle("a", 1_000, None)
    denied = ledger.reserve(Wish("b", 400, 700, task="t1"))
    assert isinstance(denied, Deny)
    assert "task t1" in denied.reason
    granted(ledger.reserve(Wish("c", 400, 700, task="t2")))


def test_the_synthesis_has_room_when_the_workers_have_none() -> None:
    """Workers call until they are denied; what they wrote can be read and the answer written."""
    ledger, to_write = Ledger(Budget(tokens=60_000)), 6_000
    ledger.to_write = to_write
    written = calls = 0
    while isinstance(verdict := ledger.reserve(Wish("w", 800, 2_000, echo=True)), Grant):
        ledger.settle("w", 800 + verdict.reservation.output_tokens, None, verdict.reservation.output_tokens)
        written, calls = written + verdict.reservation.output_tokens, calls + 1
    assert isinstance(verdict, Deny)
    assert calls > 5
    assert granted(ledger.reserve(Wish("s", written, to_write, held=True))).output_tokens == to_write


def test_a_small_budget_is_for_the_work_first() -> None:
    """No more than a fifth is held back for writing the answer."""
    ledger = Ledger(Budget(tokens=5_000))
    ledger.to_write = 10_000
    assert ledger.held_back == int(5_000 * LARGEST_HOLD)
    granted(ledger.reserve(Wish("w", 500, 4_000)))


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 40_000)), min_size=1, max_size=30))
def test_a_calibrated_estimate_is_within_reason(reports: list[tuple[int, int]]) -> None:
    """Whatever providers report, an estimate stays above 0 and below what is beyond reason."""
    calibration = Calibration()
    for raw, actual in reports:
        calibration.learn("m", raw, actual)
    assert 1 <= calibration.estimate("m", 1_000) <= 110_000
    assert calibration.estimate("other", 1_000) == 1_000


def test_a_calibrated_estimate_follows_what_the_model_reports() -> None:
    """A model that counts twice as many tokens is estimated at twice and a margin."""
    calibration = Calibration()
    for _ in range(3):
        calibration.learn("m", 1_000, 2_000)
    assert calibration.estimate("m", 500) == pytest.approx(1_100, abs=1)


# -- calls at the same time, through the engine ----------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 3, 50)))
def test_waiters_are_never_left_behind(seed: int, slots: int) -> None:
    """Twenty workers with random calls on a budget that is too small: each call is made or denied, some are broken off.

    Nothing hangs, nothing stays set aside, and no more is used than the budget and the stated estimation error.
    """
    chance = random.Random(seed)
    limit, wrong = chance.choice((3_000, 10_000, 40_000)), chance.choice((1.0, 1.0, 1.4))
    used = [0]

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        output = chance.randrange(asked[attribution.idempotency_key])
        size = int(local.ledger.open[key_of[call.messages[0].text]].input_tokens * wrong)
        used[0] += size + output
        await asyncio.sleep(chance.random())
        known = TokenCount(input_tokens=size, output_tokens=output)
        return Reply(text="ok", usage=known if chance.random() < 0.8 else None)

    class Noting(FunctionModel):
        async def complete(
            self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Any = None
        ) -> Reply:
            asked[attribution.idempotency_key] = max_output + 1
            return await super().complete(call, max_output, attribution, on_text)

    asked: dict[str, int] = {}
    key_of: dict[str, str] = {}
    local = engine(Noting(answer), budget=Budget(tokens=limit), max_concurrent=slots)

    async def work(number: int) -> list[ModelResult]:
        results: list[ModelResult] = []
        for step in range(chance.randint(1, 3)):
            key = f"t{number}/1/model/{step}"
            text = f"{key} " * chance.randint(1, 200)
            key_of[text] = key
            results.append(await local.perform(key, question(text, cap=chance.randint(1, 5_000))))
        return results

    async def main() -> list[Any]:
        async with local:
            local.budget.expect(20)
            works = [asyncio.create_task(work(number)) for number in range(20)]
            for broken_off in chance.sample(works, 4):
                asyncio.get_running_loop().call_later(chance.random() * 2, broken_off.cancel)
            return await asyncio.gather(*works, return_exceptions=True)

    ended, _ = run_virtual(main())
    results = [result for work in ended if isinstance(work, list) for result in work]
    assert len([work for work in ended if isinstance(work, list)]) >= 16
    assert {result.error.kind for result in results if result.error} <= {"budget"}
    assert local.ledger.open == {}
    assert local.ledger.reserved_tokens == 0
    assert used[0] <= limit + local.ledger.short


def test_a_part_of_a_split_task_stays_within_the_whole() -> None:
    """A budget of its own does not take a part out of its task's."""
    ledger = Ledger(Budget())
    ledger.allot("a", Budget(tokens=2_000))
    ledger.allot("a.s.x", Budget(tokens=50_000))
    assert isinstance(ledger.reserve(Wish("k", 3_000, 500, task="a.s.x")), Deny)
    assert isinstance(ledger.reserve(Wish("l", 500, 500, task="a.s.x")), Grant)
