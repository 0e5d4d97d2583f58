"""The breaker: a table of what moves it, late results that do not, and any order of events against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from chargehand.limits import Breaker, BreakerChange, Ticket
from tests.counts import examples


def opened(threshold: int = 3, cooldown_s: float = 1.0, longest_s: float = 8.0) -> Breaker:
    breaker = Breaker("worker:writer", threshold, cooldown_s, longest_s)
    for number in range(threshold):
        breaker.record_failure(breaker.begin(0.0), 0.0, f"t{number}", "boom")
    assert breaker.state == "open"
    return breaker


@pytest.mark.parametrize(
    ("results", "state"),
    [
        ("", "closed"),
        ("a b", "closed"),
        ("a b c", "open"),
        ("a a a a", "closed"),
        ("a b a b", "closed"),
        ("a b ok c", "closed"),
        ("a b ok c d e", "open"),
        ("ok ok", "closed"),
    ],
)
def test_three_different_failures_in_a_row_open_it(results: str, state: str) -> None:
    """The same one failing again counts once, and a success begins a new row."""
    breaker = Breaker("worker:writer", threshold=3)
    for result in results.split():
        ticket = breaker.begin(0.0)
        if result == "ok":
            breaker.record_success(ticket)
        else:
            breaker.record_failure(ticket, 0.0, result, "boom")
    assert breaker.state == state


def test_every_change_says_its_name_its_state_and_why() -> None:
    """Open, half open, open for longer, half open, closed: one value each, and nothing for what changes nothing."""
    breaker = Breaker("worker:writer", threshold=2, cooldown_s=1.0)
    assert breaker.record_failure(breaker.begin(0.0), 0.0, "t1", "boom") is None
    changes = [breaker.record_failure(breaker.begin(0.0), 0.0, "t2", "bang")]
    trial = breaker.begin(1.0)
    changes += [trial.change, breaker.record_failure(trial, 1.5, "t3", "still")]
    trial = breaker.begin(3.5)
    changes += [trial.change, breaker.record_success(trial)]
    assert changes == [
        BreakerChange("worker:writer", "open", "for 1 s after 2 errors in a row: bang"),
        BreakerChange("worker:writer", "half_open", "one call is tried after 1 s"),
        BreakerChange("worker:writer", "open", "for 2 s after the failed trial call: still"),
        BreakerChange("worker:writer", "half_open", "one call is tried after 2 s"),
        BreakerChange("worker:writer", "closed", "it works again"),
    ]
    assert breaker.record_success(breaker.begin(4.0)) is None


def test_each_failed_trial_doubles_the_wait_up_to_the_longest() -> None:
    """And after it closed the first wait is the short one again."""
    breaker = opened(cooldown_s=1.0, longest_s=8.0)
    waits: list[float] = []
    now = 0.0
    for _ in range(6):
        at = breaker.retry_at(now)
        assert at is not None
        waits.append(at - now)
        now = at
        breaker.record_failure(breaker.begin(now), now, "t", "boom")
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    now += 8.0
    breaker.record_success(breaker.begin(now))
    for number in range(3):
        breaker.record_failure(breaker.begin(now), now, f"t{number}", "boom")
    assert breaker.retry_at(now) == now + 1.0


def test_only_one_trial_goes_at_a_time() -> None:
    """The next may go when the first is broken off, or has shown no result for the longest wait."""
    breaker = opened(longest_s=8.0)
    assert not breaker.allows(0.9)
    trial = breaker.begin(1.0)
    assert not breaker.allows(1.0)
    assert not breaker.allows(8.9)
    assert breaker.allows(9.0)
    breaker.forget(trial, 2.0)
    assert breaker.allows(2.0)
    second = breaker.begin(2.0)
    assert second.change is None
    assert not breaker.allows(9.9)
    assert breaker.record_success(second) == BreakerChange("worker:writer", "closed", "it works again")


@pytest.mark.parametrize("late", ["succeeded", "failed", "abandoned"])
@pytest.mark.parametrize("during", ["open", "half_open", "closed"])
def test_a_result_from_before_it_opened_moves_nothing(late: str, during: str) -> None:
    """It neither closes an open breaker, nor ends somebody else's trial, nor counts after it closed again."""
    breaker = Breaker("p", threshold=2)
    tickets = [breaker.begin(0.0) for _ in range(4)]
    for number, ticket in enumerate(tickets[:2]):
        breaker.record_failure(ticket, 0.0, str(number), "boom")
    trial = breaker.begin(1.0) if during != "open" else None
    if during == "closed":
        assert trial is not None
        breaker.record_success(trial)
    before = (breaker.state, breaker.retry_at(1.5), breaker.allows(1.5))
    for number, ticket in enumerate(tickets[2:]):
        if late == "succeeded":
            assert breaker.record_success(ticket) is None
        elif late == "failed":
            assert breaker.record_failure(ticket, 1.5, f"late{number}", "boom") is None
        else:
            breaker.forget(ticket, 1.5)
    assert (breaker.state, breaker.retry_at(1.5), breaker.allows(1.5)) == before
    assert breaker.state == during


def test_open_for_good_is_never_tried_again() -> None:
    """Whatever comes back later."""
    breaker = Breaker("p")
    ticket = breaker.begin(0.0)
    assert breaker.open_for_good("the key was refused") == BreakerChange("p", "open", "the key was refused")
    assert breaker.open_for_good("again") is None
    assert breaker.record_success(ticket) is None
    assert not breaker.allows(1e9)
    assert breaker.retry_at(1e9) is None


class AnyOrder(RuleBasedStateMachine):
    """Calls begin and end in any order while time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker("p", threshold=3, cooldown_s=1.0, longest_s=8.0)
        self.out: list[tuple[Ticket, str]] = []  # each with the state it began in
        self.changes: list[str] = ["closed"]
        self.row: set[str] = set()
        self.epoch_of: dict[int, int] = {}

    def note(self, change: BreakerChange | None) -> None:
        if change is not None:
            self.changes.append(change.state)
            self.row.clear()

    @rule(seconds=st.floats(0, 10))
    def time_goes_on(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.breaker.allows(self.now))
    @rule()
    def begin(self) -> None:
        ticket = self.breaker.begin(self.now)
        self.note(ticket.change)
        self.epoch_of[id(ticket)] = len(self.changes)
        self.out.append((ticket, self.breaker.state))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), what=st.sampled_from("abcd"), result=st.sampled_from(["ok", "failed", "failed", "gone"]))
    def end(self, data: st.DataObject, what: str, result: str) -> None:
        ticket, began = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        late = self.epoch_of[id(ticket)] != len(self.changes)
        before = self.breaker.state
        match result:
            case "ok":
                change = self.breaker.record_success(ticket)
                expected = "closed" if began == "half_open" else None
                self.row -= self.row if not late else set()
            case "failed":
                self.row |= set() if late else {what}
                change = self.breaker.record_failure(ticket, self.now, what, "boom")
                expected = "open" if began == "half_open" or len(self.row) >= 3 else None
            case _:
                self.breaker.forget(ticket, self.now)
                change, expected = None, None
        assert (change.state if change else None) == (None if late else expected)
        if late:
            assert self.breaker.state == before
        self.note(change)

    @invariant()
    def it_is_what_the_last_change_said(self) -> None:
        assert self.breaker.state == self.changes[-1]
        if self.breaker.state == "closed":
            assert self.breaker.allows(self.now)

    @invariant()
    def it_can_always_be_tried_again(self) -> None:
        at = self.breaker.retry_at(self.now)
        assert at is not None
        assert at <= self.now + 8.0

    @invariant()
    def it_only_closes_through_a_trial(self) -> None:
        pairs = set(zip(self.changes, self.changes[1:], strict=False))
        assert pairs <= {("closed", "open"), ("open", "half_open"), ("half_open", "open"), ("half_open", "closed")}


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
