"""The result of one case with one candidate in one repeat: checks, figures and cost."""

from __future__ import annotations

from typing import Literal

from chargehand.errors import ErrorKind
from chargehand.evaluation.case import Kind
from chargehand.values.base import Field, Value
from chargehand.values.outcome import Fault, Usage

# Faults unrelated to the quality of an answer: the case was not tried, and is tried again next time.
UNTRIED: frozenset[ErrorKind] = frozenset(
    {"rate_limited", "overloaded", "connection", "auth", "bad_request", "cancelled", "internal"}
)


class Check(Value):
    """One expectation, and whether it was met. A check by code gives the same result every time."""

    name: str
    passed: bool
    # "judge", after the option `--judge`, is the scorer.
    by: Literal["code", "judge"] = "code"
    # 1 or 0 for a check by code; otherwise the score from the scorer.
    score: float = Field(ge=0, le=1)
    # The actual value, or the reason from the scorer.
    said: str = ""


class _Trial(Value):
    """What a trial of a case gave."""

    checks: tuple[Check, ...] = ()
    metrics: dict[str, float] = Field(default_factory=dict)
    # Routing: the worker that was expected and the one that was chosen.
    expected: str | None = None
    chosen: str | None = None
    # The beginning of the answer.
    answer: str = ""
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    # The recorded run, for `chargehand show`.
    run: str | None = None
    # Why the case could not be tried.
    error: Fault | None = None

    @property
    def is_scored(self) -> bool:
        """Whether passing depends on a scorer."""
        return any(check.by == "judge" for check in self.checks)

    @property
    def failed_by_code(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.by == "code" and not check.passed)


class Result(_Trial):
    # Case, candidate and repeat: a result with the same key is the same measurement. Only the store has it.
    key: str = ""
    case: str
    kind: Kind
    file: str
    line: int
    candidate: str
    repeat: int
    passed: bool = False
    score: float = Field(default=0.0, ge=0, le=1)


class Tried(_Trial):
    """A trial before it becomes a result with a key."""

    # None: the mean of the checks.
    score: float | None = None

    @property
    def passed(self) -> bool:
        return self.error is None and bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def mark(self) -> float:
        if self.error is not None:
            return 0.0
        if self.score is not None or not self.checks:
            return self.score or 0.0
        return sum(check.score for check in self.checks) / len(self.checks)
