"""What to do about a task that is not done: outcome and history -> a decision. Retry, refine, upgrade ... or give up.

Pure: the dispatcher records the decision by key, then acts on it. The ladder is data. Each condition has the
rungs to try, one per failed attempt; a rung that cannot be taken (no higher tier, no other worker, nobody to ask) is
skipped, and when none is left the task is given up with its gap:

    out_of_scope    reassign reassign        1st failure: the fallback, or the next worker in roster order
    contract        upgrade refine           1st: a better model; 2nd: the instruction rewritten from the error
    timeout         split refine             1st: smaller tasks in its place; 2nd: the instruction made shorter
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from chargehand.values.base import JSON, Value
from chargehand.values.plan import Tier
from chargehand.values.recovery_policy import Condition, Policy, Rung
from chargehand.values.step import Head

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 60.0
TIERS: tuple[Tier, ...] = ("small", "medium", "large")

LADDER: dict[Condition, tuple[Rung, ...]] = {
    # The call itself was already retried as often as that helps: only another worker can help now.
    "transient": ("fallback",),
    "failure": ("retry", "refine"),
    "contract": ("upgrade", "refine"),
    "timeout": ("split", "refine"),
    "too_long": ("split", "upgrade"),
    "refused": ("refine", "reassign"),
    "out_of_scope": ("reassign", "reassign"),
    "ambiguous_input": ("ask", "refine"),
    "confidence_too_low": ("upgrade", "reassign"),
    # A person was already asked about it in the attempt itself, if one could be asked.
    "in_doubt": (),
    "final": (),
}
# Rungs that are still worth one try when the attempts are used up.
LAST_RESORTS: dict[Condition, tuple[Rung, ...]] = {
    "contract": ("split", "ask"),
    "timeout": ("split", "ask"),
    "too_long": ("split", "ask"),
    "failure": ("ask",),
    "refused": ("ask",),
    "out_of_scope": ("ask",),
    "ambiguous_input": ("ask",),
    "confidence_too_low": ("ask",),
}


class Retry(Value):
    """The same again, after a pause."""

    kind: Literal["retry"] = "retry"
    after_s: float = 0.0
    reason: str = ""


class Refine(Value):
    """The supervisor's model rewrites the instruction from the error."""

    kind: Literal["refine"] = "refine"
    reason: str = ""


class Upgrade(Value):
    kind: Literal["upgrade"] = "upgrade"
    tier: Tier
    reason: str = ""


class Reassign(Value):
    kind: Literal["reassign"] = "reassign"
    worker: str
    # The workers that a router may choose from instead: none where the team has named substitutes.
    among: tuple[str, ...] = ()
    reason: str = ""


class Split(Value):
    """Smaller tasks in its place, planned like any plan."""

    kind: Literal["split"] = "split"
    reason: str = ""


class Ask(Value):
    """A person is asked; the answer becomes part of the task."""

    kind: Literal["ask"] = "ask"
    reason: str = ""


class GiveUp(Value):
    """The task ends as it is and is a gap in the answer."""

    kind: Literal["give_up"] = "give_up"
    reason: str = ""


Decision: TypeAlias = Retry | Refine | Upgrade | Reassign | Split | Ask | GiveUp
_DECISIONS: dict[str, type[Decision]] = {
    "retry": Retry,
    "refine": Refine,
    "upgrade": Upgrade,
    "reassign": Reassign,
    "split": Split,
    "ask": Ask,
    "give_up": GiveUp,
}


def read_decision(data: Mapping[str, JSON]) -> Decision:
    """The decision that was recorded."""
    return _DECISIONS[data["kind"]].model_validate(data)


class Situation(Value):
    """Everything that a decision may depend on."""

    outcome: Head
    # Conditions of the attempts so far, this one last.
    history: tuple[Condition, ...]
    tier: Tier
    # The worker's own fallback, unless it failed this task.
    fallback: str | None = None
    # Workers that could take over, best first: never one that failed this task.
    others: tuple[str, ...] = ()
    # Whether a model can rewrite it, a model can split it, and a person can be asked; each only once for a task.
    refine: bool = True
    split: bool = False
    ask: bool = False
    # Whether the budget has room for another attempt, in tokens, money and time.
    affordable: bool = True
    # False once its worker is out for the rest of the run: only another one can help.
    in_service: bool = True


def condition_of(outcome: Head) -> Condition:
    """The condition that selects the rungs of the ladder."""
    if outcome.escalation is not None:
        return outcome.escalation
    if outcome.error is None:
        return "final"
    match outcome.error:
        case "rate_limited" | "overloaded" | "connection":
            return "transient"
        case "contract" | "criterion_not_met":
            return "contract"
        case "timeout":
            return "timeout"
        case "context_too_long":
            return "too_long"
        case "refused":
            return "refused"
        case "in_doubt":
            return "in_doubt"
        case "tool" | "internal" | "bad_request" | "analyzer":
            return "failure"
        case "auth" | "budget" | "deadline" | "cancelled":
            return "final"


def recover(situation: Situation, policy: Policy, chance: float) -> Decision:
    """The first rung left for this condition that can be taken. `chance` in [0, 1) spreads the backoff."""
    condition = condition_of(situation.outcome)
    why = situation.outcome.why
    if not situation.affordable:
        return GiveUp(reason=f"the budget has no room for another attempt after: {why}")
    tried = len(situation.history)
    rungs = {**LADDER, **policy.ladder}[condition]
    left = rungs[situation.history.count(condition) - 1 :]
    if not situation.in_service:
        left = ("fallback", "reassign") if "reassign" in rungs else ("fallback",)
    if tried < policy.attempts:
        for rung in left:
            if (decision := _take_rung(rung, situation, chance, why)) is not None:
                return decision
    for rung in LAST_RESORTS.get(condition, ()) if situation.in_service else ():
        if (decision := _take_rung(rung, situation, chance, why)) is not None:
            return decision
    return GiveUp(reason=why)


def _take_rung(rung: Rung, situation: Situation, chance: float, why: str) -> Decision | None:
    """The rung as a decision, or None where it cannot be taken."""
    match rung:
        case "retry":
            transient = condition_of(situation.outcome) == "transient"
            ceiling = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (len(situation.history) - 1))
            return Retry(after_s=chance * ceiling if transient else 0.0, reason=why)
        case "refine":
            return Refine(reason=why) if situation.refine else None
        case "upgrade":
            higher = TIERS[TIERS.index(situation.tier) + 1 :]
            return Upgrade(tier=higher[0], reason=why) if higher else None
        case "fallback":
            return Reassign(worker=situation.fallback, reason=why) if situation.fallback else None
        case "reassign":
            free = situation.fallback is None and len(situation.others) > 1
            among = situation.others if free else ()
            return Reassign(worker=situation.others[0], among=among, reason=why) if situation.others else None
        case "split":
            return Split(reason=why) if situation.split else None
        case "ask":
            return Ask(reason=why) if situation.ask else None
