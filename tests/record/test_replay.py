"""The fold a resumed run goes on from: what is committed, decided, ended, spent, and how long it ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chargehand.events import Event
from chargehand.record.replay import Replay, replay
from chargehand.values.outcome import done, failed, skipped
from tests.counts import examples
from tests.events import make_event
from tests.simulation.play import play
from tests.simulation.world import World


def record(*events: tuple[str, dict[str, Any]], seconds: float = 1.0) -> list[Event]:
    """Events one after the other, some seconds apart."""
    return [make_event(kind, seq=n, at=1000.0 + seconds * n, **data) for n, (kind, data) in enumerate(events, 1)]


def called(key: str) -> tuple[str, dict[str, Any]]:
    return "model_called", {"key": key, "fingerprint": "f"}


def replied(key: str, **result: Any) -> tuple[str, dict[str, Any]]:
    return "model_replied", {"key": key, "fingerprint": "f", "result": result}


def ended(outcome: Any) -> tuple[str, dict[str, Any]]:
    return "task_ended", {"task": outcome.task, "attempt": 1, "outcome": outcome.to_json()}


def start(**data: Any) -> tuple[str, dict[str, Any]]:
    return "run_started", data


def test_effects_are_intents_until_they_return() -> None:
    """Begun is an intent, returned is committed, reused counts as returned."""
    state = replay(
        record(
            start(), called("a"), called("b"), replied("a"), ("reused", {"key": "c", "fingerprint": "f", "result": {}})
        )
    )
    assert set(state.intents) == {"b"}
    assert set(state.committed) == {"a", "c"}


def test_money_in_flight_at_a_crash_counts_in_full_for_good() -> None:
    """Also when the call is made again and settled: the first one may have been billed, in every later session."""
    reserved: tuple[str, dict[str, Any]] = ("budget_reserved", {"key": "a", "tokens": 100, "usd": 0.5})
    settled: tuple[str, dict[str, Any]] = (
        "budget_settled",
        {"key": "a", "tokens": 30, "usd": 0.1, "estimated": False},
    )
    queued = replay(record(start(), dict_copy(reserved)))
    assert queued.in_flight() == [], "set aside and never sent: nothing can have been used"
    crashed = record(start(), dict_copy(reserved), called("a"))
    assert [(each.tokens, each.usd) for each in replay(crashed).in_flight()] == [(100, 0.5)]
    again = replay(
        record(start(), dict_copy(reserved), called("a"), start(), dict_copy(reserved), called("a"), settled)
    )
    assert (again.spending.tokens, again.in_flight()) == (130, [])
    assert again.spending.usd == pytest.approx(0.6)


def test_the_session_after_a_crash_settles_what_was_in_flight_and_it_counts_once() -> None:
    """The line on the record says what is counted already: it is in the usage, estimated, and charged one time."""
    reserved: tuple[str, dict[str, Any]] = ("budget_reserved", {"key": "a", "tokens": 100, "usd": 0.5})
    crashed = record(start(), dict_copy(reserved), called("a"))
    (left,) = replay(crashed).in_flight()
    assert (left.settled.tokens, left.settled.estimated) == (100, True)
    own: tuple[str, dict[str, Any]] = ("budget_settled", {"key": "a", "tokens": 30, "usd": 0.1})
    lives = (start(), dict_copy(reserved), called("a"), start(), ("budget_settled", vars(left.settled)))
    again = replay(record(*lives, dict_copy(reserved), called("a"), own))
    assert again.spending.tokens == 130
    assert [usage.tokens for usage in again.spending.lost] == [100]


def dict_copy(event: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return event[0], dict(event[1])


def test_owned_time_leaves_out_what_lies_between_sessions() -> None:
    """Two sessions of 10 s with an hour between them have run for 20 s."""
    events = [
        make_event("run_started", seq=1, at=1000.0),
        make_event("warning", seq=2, at=1010.0),
        make_event("run_started", seq=3, at=4610.0),
        make_event("warning", seq=4, at=4620.0),
    ]
    assert replay(events).owned_s == pytest.approx(20)
    assert replay(events[:3]).owned_s == pytest.approx(10)


def test_a_clock_set_back_takes_no_time_away() -> None:
    """An event before its session's start counts as at the start."""
    assert replay([make_event("run_started", seq=1, at=1000.0), make_event("warning", seq=2, at=400.0)]).owned_s == 0


def test_a_resumed_session_goes_on_with_the_request_it_topped_up() -> None:
    """What a later start says wins; what it leaves out stays."""
    state = replay(
        record(start(request={"text": "a"}, rerun_of="x"), start(request={"text": "b"}, rerun_of=None, resumed=True))
    )
    assert (state.start["request"], state.start["rerun_of"], state.start["resumed"]) == ({"text": "b"}, "x", True)
    assert state.sessions == 2


def test_reopened_tasks_run_again_with_new_attempts() -> None:
    """Their outcome is gone and their attempts count on; the supervisor's own failed calls may be made again."""
    events = record(
        start(),
        ("attempt_started", {"task": "t1", "attempt": 1}),
        ended(failed("t1", "w", "budget", "no money")),
        ended(skipped("t2", "w", ["t1"])),
        ended(done("t3", "w", summary="s", output=1)),
        replied("@synthesis/1", error={"kind": "budget"}),
        replied("@plan/1", reply={}),
        replied("t1/1/model/1", error={"kind": "budget"}),
        ("decision", {"key": "@reopen/2", "decision": "reopen", "value": {"tasks": ["t1", "t2"]}, "reason": "more"}),
    )
    state = replay(events)
    assert set(state.ended) == {"t3"}
    assert state.reopened == {"t1": 1, "t2": 0}
    assert set(state.committed) == {"@plan/1", "t1/1/model/1"}


def test_questions_answers_decisions_and_the_end_are_kept() -> None:
    """What only a person, a policy or the end could say."""
    state = replay(
        record(
            start(),
            ("plan_drafted", {"source": "given"}),
            ("plan_approved", {"plan": {"goal": "g"}}),
            ("question_asked", {"key": "q", "question": {"id": "1"}}),
            ("question_answered", {"key": "q", "answer": "yes"}),
            ("decision", {"key": "t1/route", "decision": "route", "value": "ann"}),
            ("run_ended", {"status": "partial", "report": {"answer": "a"}}),
        )
    )
    assert (state.plan_given, state.plan) == (True, {"goal": "g"})
    assert (state.questions, state.answers) == ({"q": {"id": "1"}}, {"q": "yes"})
    assert state.decisions == {"t1/route": "ann"}
    assert (state.status, state.report) == ("partial", {"answer": "a"})


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1))
@example(800, 0.0)  # a person's answer is scored within the deadline
def test_a_fold_can_be_interrupted_anywhere(seed: int, share: float) -> None:
    """Folding a record in two parts is folding it whole, for records of simulated runs."""
    events = play(World(f"replay/{seed}"), stops=()).events
    cut = int(len(events) * share)
    assert continued(replay(events[:cut]), events[cut:]) == replay(events)


def continued(state: Replay, events: Iterable[Event]) -> Replay:
    for event in events:
        state.apply(event)
    return state
