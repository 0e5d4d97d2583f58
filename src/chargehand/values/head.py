"""Steps and their heads: what is handed into a step of a run, and what of its result may leave it.

A step (an attempt, a rewrite, a split ...) is the unit of work that an engine may carry out anywhere. Texts stay inside
of steps: what goes in are ids, numbers and refs, and what comes out is a head, which names its body by a ref.

    t3/2        the outcome of attempt 2 of task t3
    t3          the outcome the task ended with
    t3/1/refine the words of the task as they were rewritten after attempt 1
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import Field

from chargehand.errors import ErrorKind
from chargehand.values.base import Value
from chargehand.values.outcome import Confidence, Escalation, EscalationReason, Fault, Outcome, Status, Usage
from chargehand.values.plan import Task, Tier

StepKind = Literal["attempt", "refine", "reroute", "split", "join", "ask", "ask_result"]


class Head(Value):
    """What may be known of a step's result outside of it: everything but its texts."""

    task: str
    worker: str
    status: Status
    # Where the outcome is; None when the head is all there is of it.
    ref: str | None = None
    # Why it is not done: the words, or a mark which the engine replaces with the words when it writes an event. It may
    # become part of a sentence, and nothing may depend on it.
    why: str = ""
    error: ErrorKind | None = None
    escalation: EscalationReason | None = None
    confidence: Confidence | None = None
    partial: bool = False
    because: tuple[str, ...] = ()
    attempts: int = 1
    usage: Usage = Field(default_factory=Usage)
    # The outcome whose output it has as a partial result, where that is not its own.
    output_of: str | None = None
    # The words that the task has from here on.
    words: str | None = None
    # The smaller tasks that take the task's place, without their words.
    parts: tuple[Task, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "done"

    @staticmethod
    def of(outcome: Outcome, ref: str) -> Head:
        """The head of an outcome that is kept under `ref`."""
        return Head(
            task=outcome.task,
            worker=outcome.worker,
            status=outcome.status,
            ref=ref,
            why="" if outcome.ok else outcome.summary,
            error=outcome.error.kind if outcome.error else None,
            escalation=outcome.escalation.reason if outcome.escalation else None,
            confidence=outcome.confidence,
            partial=outcome.partial,
            because=outcome.because,
            attempts=outcome.attempts,
            usage=outcome.usage,
        )

    @staticmethod
    def failed(task: str, worker: str, kind: ErrorKind, why: str) -> Head:
        """A failure outside of any step: the head is all there is of it."""
        return Head(task=task, worker=worker, status="failed", why=why, error=kind)

    @staticmethod
    def skipped(task: str, worker: str, because: tuple[str, ...]) -> Head:
        """Not started, because tasks it depends on are not done."""
        why = f"Not started: it depends on {', '.join(because)}."
        return Head(task=task, worker=worker, status="skipped", why=why, because=because, attempts=0)

    def outcome(self) -> Outcome:
        """The outcome of a head that is all there is of it."""
        return Outcome(
            task=self.task,
            status=self.status,
            worker=self.worker,
            summary=self.why,
            error=Fault(kind=self.error, message=self.why) if self.error else None,
            escalation=Escalation(reason=self.escalation, message=self.why) if self.escalation else None,
            because=self.because,
            attempts=self.attempts,
            usage=self.usage,
        )


@dataclass(frozen=True, slots=True)
class StepRefs:
    """What is handed into a step: plain JSON values, no texts but names."""

    task: str
    # Which attempt it is, or which one it follows.
    attempt: int
    worker: str
    tier: Tier | None = None
    # The words of the task, where they are not those of the plan any more.
    words: str | None = None
    # The tasks whose outcomes it sees.
    inputs: tuple[str, ...] = ()
    # When the run's workers stop, and when the task's own time is over, each on its clock.
    stop_at: float | None = None
    ends_at: float | None = None
    # The outcome that a recovery is about.
    outcome: str | None = None
    # Workers to choose from.
    among: tuple[str, ...] = ()
    # The smaller tasks that took the task's place.
    parts: tuple[str, ...] = ()
    # Why no worker may begin: the attempt fails with it.
    refused: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
