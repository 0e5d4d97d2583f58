"""Heads of outcomes -> whether more tasks might give what is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from chargehand.errors import ErrorKind
from chargehand.values.outcome import Outcome
from chargehand.values.step import Head

# More tasks do not help against these.
_HOPELESS: frozenset[ErrorKind] = frozenset({"auth", "budget", "deadline", "cancelled", "in_doubt", "connection"})
# A done task that is less sure than this is thin: it may be done in another way.
THIN = 40


def worth_extending(heads: Mapping[str, Head], filled: Collection[str]) -> bool:
    """Whether a task is open or thin that could be done in another way, or that only waited for a gap now filled."""
    return any(
        head.status == "escalated"
        or is_thin(head)
        or (head.error is not None and head.error not in _HOPELESS)
        or any(cause in filled for cause in head.because)
        for id, head in heads.items()
        if id not in filled
    )


def is_thin(result: Head | Outcome) -> bool:
    """Whether it is done, but its worker says that it is not sure of the result."""
    return result.ok and result.confidence is not None and result.confidence < THIN
