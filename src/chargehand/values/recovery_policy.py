"""A team's own rules for failures: how many attempts, which recovery steps, how much evidence a result needs."""

from __future__ import annotations

from typing import Annotated, Literal

from chargehand.values.base import Field, Value

Condition = Literal[
    "transient",
    "failure",
    "contract",
    "timeout",
    "too_long",
    "refused",
    "out_of_scope",
    "ambiguous_input",
    "confidence_too_low",
    "in_doubt",
    "final",
]
Rung = Literal["retry", "refine", "upgrade", "fallback", "reassign", "split", "ask"]

# How much evidence results need. strict: a result that nothing confirms fails; off: only an empty result fails.
EvidenceRule = Literal["strict", "normal", "off"]

MOST_ATTEMPTS = 3


class Policy(Value):
    """A team's own rules: its steps replace those of the default policy."""

    attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)] = MOST_ATTEMPTS
    ladder: dict[Condition, tuple[Rung, ...]] = Field(default_factory=dict[Condition, tuple[Rung, ...]])
    # Whether a small model scores each result against its criterion.
    score: bool = False
    # After this long without an answer, a second copy of the call is sent; None means never.
    hedge_after_s: Annotated[float, Field(gt=0)] | None = None
    evidence: EvidenceRule = "normal"
