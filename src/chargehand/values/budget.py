"""Limits as a value, and the ceiling of a task that states none."""

from __future__ import annotations

from math import inf

from chargehand.values.base import Field, Value

# A call with less room than this for its answer is not worth making.
SMALLEST_OUTPUT = 256
# A reservation gives a call's answer at least this many tokens while more than that is left.
SMALLEST_SHARE = 1_024
# The largest part of a budget that is held back for writing the answer.
LARGEST_HOLD = 0.2
# A task of a model-made plan that states no token budget may use this many times its share of the run's budget.
SHARES_A_TASK = 3
# Its ceiling is at least this, if the run has so many tokens: enough for one call.
SMALLEST_CEILING = 4 * SMALLEST_SHARE


class Budget(Value):
    """At most this much; None means no limit."""

    tokens: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)

    def within(self, other: Budget) -> Budget:
        """The tighter of both, limit by limit."""
        tighter = {name: most for name, most in other if most is not None and most < (getattr(self, name) or inf)}
        return self.model_copy(update=tighter)


def ceiling(limit: int, synthesis: int, tasks: int) -> int:
    """The tokens that a task without a budget may use, so that no task uses up the whole budget of the run."""
    whole = limit - min(synthesis, int(LARGEST_HOLD * limit))
    return min(whole, max(SHARES_A_TASK * whole // max(tasks, 1), SMALLEST_CEILING))
