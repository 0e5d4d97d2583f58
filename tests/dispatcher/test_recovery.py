"""The ladder as a table: what is decided for every condition, how often it failed, and what is there to help."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from chargehand.dispatcher.recovery import (
    FIRST_BACKOFF_S,
    LADDER,
    LAST_RESORTS,
    LONGEST_BACKOFF_S,
    Ask,
    Decision,
    GiveUp,
    Reassign,
    Refine,
    Retry,
    Situation,
    Split,
    Upgrade,
    condition_of,
    recover,
)
from chargehand.errors import ErrorKind
from chargehand.values.outcome import EscalationReason, done, escalated
from chargehand.values.recovery_policy import MOST_ATTEMPTS, Condition, Policy, Rung
from chargehand.values.step import Head
from tests.counts import examples

CONDITIONS: tuple[Condition, ...] = get_args(Condition)
RUNGS: tuple[Rung, ...] = get_args(Rung)
KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
REASONS: tuple[EscalationReason, ...] = get_args(EscalationReason)
# An error that each condition comes from; the others come from an escalation of the same name.
ERRORS: dict[Condition, ErrorKind] = {
    "transient": "overloaded",
    "failure": "tool",
    "contract": "contract",
    "timeout": "timeout",
    "too_long": "context_too_long",
    "refused": "refused",
    "in_doubt": "in_doubt",
    "final": "budget",
}
HELP: dict[str, Any] = {"fallback": "stand-in", "others": ("stand-in", "next"), "refine": True, "split": True}
HELP["ask"] = True
NOBODY: dict[str, Any] = {"fallback": None, "others": (), "refine": False, "split": False, "ask": False}


def head_of(condition: Condition) -> Head:
    if condition in ERRORS:
        return Head.failed("t", "w", ERRORS[condition], "what went wrong")
    return Head.of(escalated("t", "w", condition, "what went wrong"), "t/1")  # type: ignore[arg-type]


def situation(condition: Condition, attempt: int = 1, **fields: Any) -> Situation:
    given: dict[str, Any] = {"tier": "medium", **HELP, **fields}
    return Situation(outcome=head_of(condition), history=(condition,) * attempt, **given)


def decided(condition: Condition, attempt: int = 1, policy: Policy | None = None, **fields: Any) -> Decision:
    return recover(situation(condition, attempt, **fields), policy or Policy(), 0.5)


def short(decision: Decision) -> str:
    match decision:
        case Reassign(worker=worker):
            return f"reassign {worker}"
        case Upgrade(tier=tier):
            return f"upgrade {tier}"
        case _:
            return decision.kind


def test_every_error_and_every_escalation_has_its_condition() -> None:
    """The table below covers all of them, and no condition comes out of nowhere."""
    found = {condition_of(Head.failed("t", "w", kind, "x")) for kind in KINDS}
    found |= {condition_of(Head.of(escalated("t", "w", reason, "x"), "t/1")) for reason in REASONS}
    assert found == set(CONDITIONS) == set(LADDER)
    assert set(LAST_RESORTS) <= set(CONDITIONS)
    assert condition_of(Head.of(done("t", "w", summary="s", output=1), "t/1")) == "final"


@pytest.mark.parametrize(
    ("condition", "first", "second", "third"),
    [
        ("transient", "reassign stand-in", "give_up", "give_up"),
        ("failure", "retry", "refine", "ask"),
        ("contract", "upgrade large", "refine", "split"),
        ("timeout", "split", "refine", "split"),
        ("too_long", "split", "upgrade large", "split"),
        ("refused", "refine", "reassign stand-in", "ask"),
        ("out_of_scope", "reassign stand-in", "reassign stand-in", "ask"),
        ("ambiguous_input", "ask", "refine", "ask"),
        ("confidence_too_low", "upgrade large", "reassign stand-in", "ask"),
        ("in_doubt", "give_up", "give_up", "give_up"),
        ("final", "give_up", "give_up", "give_up"),
    ],
)
def test_the_ladder_with_every_help(condition: Condition, first: str, second: str, third: str) -> None:
    """One rung per failed attempt; after the third a last resort, or the end."""
    assert [short(decided(condition, attempt)) for attempt in (1, 2, 3)] == [first, second, third]


@pytest.mark.parametrize(
    ("condition", "first", "second"),
    [
        ("transient", "give_up", "give_up"),
        ("failure", "retry", "give_up"),
        ("contract", "upgrade large", "give_up"),
        ("timeout", "give_up", "give_up"),
        ("too_long", "upgrade large", "upgrade large"),
        ("refused", "give_up", "give_up"),
        ("out_of_scope", "give_up", "give_up"),
        ("ambiguous_input", "give_up", "give_up"),
        ("confidence_too_low", "upgrade large", "give_up"),
        ("in_doubt", "give_up", "give_up"),
        ("final", "give_up", "give_up"),
    ],
)
def test_the_ladder_with_nobody_to_help(condition: Condition, first: str, second: str) -> None:
    """A rung that cannot be taken is passed over; the third failure is the end."""
    attempts = [short(decided(condition, attempt, **NOBODY)) for attempt in (1, 2, 3)]
    assert attempts == [first, second, "give_up"]


@pytest.mark.parametrize(
    ("condition", "fields", "expected"),
    [
        ("contract", {"tier": "small"}, "upgrade medium"),
        ("contract", {"tier": "large"}, "refine"),
        ("contract", {"tier": "large", "refine": False}, "split"),
        ("contract", {"tier": "large", "refine": False, "split": False}, "ask"),
        ("timeout", {"split": False}, "refine"),
        ("timeout", {"split": False, "refine": False}, "ask"),
        ("out_of_scope", {"others": ("next",)}, "reassign next"),
        ("out_of_scope", {"others": ()}, "ask"),
        ("ambiguous_input", {"ask": False}, "refine"),
        ("confidence_too_low", {"tier": "large"}, "reassign stand-in"),
        ("transient", {"fallback": None}, "give_up"),
    ],
)
def test_what_is_there_decides_between_rungs(condition: Condition, fields: dict[str, Any], expected: str) -> None:
    """No higher tier, nobody to ask, no model to rewrite: the next rung is taken."""
    assert short(decided(condition, **fields)) == expected


def test_conditions_are_counted_one_by_one() -> None:
    """A second failure of another kind begins its own ladder at the first rung."""
    mixed = Situation(outcome=head_of("contract"), history=("failure", "contract"), tier="small")
    assert short(recover(mixed, Policy(), 0)) == "upgrade medium"


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_without_budget_everything_is_given_up(condition: Condition, attempt: int) -> None:
    """What cannot be paid for is a gap, and the reason says so."""
    decision = decided(condition, attempt, affordable=False)
    assert isinstance(decision, GiveUp)
    assert "budget" in decision.reason
    assert "what went wrong" in decision.reason


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_worker_that_is_out_for_good_is_not_tried_again(condition: Condition, attempt: int) -> None:
    """Only somebody else can help then: no retry, no rewrite, no split, no person per task."""
    assert decided(condition, attempt, in_service=False).kind in ("reassign", "give_up")


def test_backoff_doubles_below_a_ceiling_and_is_spread_by_chance() -> None:
    """Only what passes by itself is waited for; chance 0 is at once and 1 is the whole ceiling."""
    alone, policy = situation("transient", 2, fallback=None), Policy(ladder={"transient": ("retry", "retry")})
    assert recover(alone, policy, 0.0) == Retry(after_s=0.0, reason="what went wrong")
    assert recover(alone, policy, 0.999).after_s == pytest.approx(2 * FIRST_BACKOFF_S * 0.999)  # type: ignore[union-attr]
    assert decided("failure") == Retry(after_s=0.0, reason="what went wrong")
    assert FIRST_BACKOFF_S * 2 ** (MOST_ATTEMPTS - 1) <= LONGEST_BACKOFF_S


DECISIONS = [
    Retry(after_s=0.25, reason="r"),
    Refine(reason="r"),
    Upgrade(tier="large", reason="r"),
    Reassign(worker="w", reason="r"),
    Split(reason="r"),
    Ask(reason="r"),
    GiveUp(reason="r"),
]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.kind)
def test_a_decision_survives_the_record(decision: Decision) -> None:
    """What is read back from JSON is what was decided."""
    adapter: TypeAdapter[Decision] = TypeAdapter(Decision)
    assert adapter.validate_json(adapter.dump_json(decision)) == decision
    assert adapter.validate_python(decision.to_json()) == decision
    assert decision.to_json()["kind"] == decision.kind


def test_a_team_lays_its_own_ladder_over_the_default_one() -> None:
    """The conditions it names are its own; the others stay; an empty ladder gives up at once."""
    policy = Policy(ladder={"failure": ("reassign",), "timeout": ()})
    assert short(decided("failure", policy=policy)) == "reassign stand-in"
    assert short(decided("contract", policy=policy)) == "upgrade large"
    assert short(decided("timeout", policy=policy, split=False, ask=False)) == "give_up"
    assert short(decided("failure", policy=Policy(attempts=1), ask=False)) == "give_up"


@pytest.mark.parametrize("attempts", [0, 4, -1])
def test_a_policy_has_one_to_three_attempts(attempts: int) -> None:
    """More than three is refused where it is written, not found out later."""
    with pytest.raises(ValidationError):
        Policy(attempts=attempts)


policies = st.builds(
    Policy,
    attempts=st.integers(1, MOST_ATTEMPTS),
    ladder=st.dictionaries(st.sampled_from(CONDITIONS), st.lists(st.sampled_from(RUNGS), max_size=9).map(tuple)),
)
WORKERS = ("a", "b", "c", "d")


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(policies, st.lists(st.sampled_from(CONDITIONS), min_size=30, max_size=30), st.data())
def test_any_policy_ends(policy: Policy, troubles: list[Condition], data: st.DataObject) -> None:
    """Whatever fails how and whatever the ladder says: three attempts at most, one split, one ask, no failed worker."""
    worker, failed_workers, tier = "a", list[str](), "small"
    history: list[Condition] = []
    split = data.draw(st.booleans())
    ask = data.draw(st.booleans())
    made: list[str] = []
    while True:
        assert len(made) < 20, made
        if not made or made[-1] not in ("split",):  # after a split that came to nothing it is decided once more
            history.append(troubles[len(history)])
            failed_workers.append(worker)
        assert len(history) <= policy.attempts
        others = tuple(w for w in WORKERS if w not in failed_workers)
        now = Situation(
            outcome=head_of(history[-1]), history=tuple(history), tier=tier, fallback=others[0] if others else None,
            others=others, refine=data.draw(st.booleans()), split=split, ask=ask, affordable=data.draw(st.booleans()),
        )  # fmt: skip
        decision = recover(now, policy, data.draw(st.floats(0, 0.99)))
        made.append(decision.kind)
        assert now.affordable or isinstance(decision, GiveUp)
        match decision:
            case GiveUp():
                break
            case Reassign():
                assert decision.worker not in failed_workers
                worker = decision.worker
            case Upgrade():
                assert decision.tier != tier
                tier = decision.tier
            case Split():
                split = False
            case Ask():
                ask = False
                if len(history) >= policy.attempts:
                    break  # the answer is the result
            case Refine():
                assert now.refine
            case Retry():
                assert 0 <= decision.after_s <= LONGEST_BACKOFF_S
    assert made.count("split") <= 1
    assert made.count("ask") <= 1
