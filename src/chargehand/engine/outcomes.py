"""Outcomes by ref, in memory: what the steps of this session came to, and what earlier sessions ended with."""

from __future__ import annotations

from typing import Any

from chargehand.values.head import Head
from chargehand.values.outcome import Outcome


class KeptOutcomes:
    """One per session. An outcome never changes once it is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, Outcome] = {}

    def keep(self, ref: str, outcome: Outcome) -> Head:
        self._kept[ref] = outcome
        return Head.of(outcome, ref)

    def at(self, ref: str) -> Outcome:
        return self._kept[ref]

    def end(self, ref: str, head: Head) -> Outcome:
        """The outcome that a head stands for, kept under the ref of its task."""
        outcome = head.outcome() if head.ref is None else self._kept[head.ref]
        changes: dict[str, Any] = {}
        if head.attempts != outcome.attempts:
            changes["attempts"] = head.attempts
        if head.usage != outcome.usage:
            changes["usage"] = head.usage
        if head.output_of is not None:
            changes |= {"output": self._kept[head.output_of].output, "partial": True}
        self._kept[ref] = outcome = outcome.model_copy(update=changes) if changes else outcome
        return outcome
