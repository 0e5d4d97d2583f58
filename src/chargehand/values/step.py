"""Steps and their heads: the input of a step of a run, and the part of its result that may leave it.

A step (the plan, an attempt, a rewrite, the answer ...) is the unit of work that an engine may carry out anywhere.
Texts stay inside steps: the input is ids, numbers and refs, and the output is a head, which names its body by a ref.

    t3/2        the outcome of attempt 2 of task t3
    t3          the outcome the task ended with
    t3/1/refine the words of the task as they were rewritten after attempt 1
    @synthesis  the report, or a draft of the answer that lacks something
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from chargehand.errors import ErrorKind
from chargehand.values.base import Field, Value
from chargehand.values.outcome import Confidence, Escalation, EscalationReason, Fault, Outcome, Status, Usage
from chargehand.values.plan import Task, Tier
from chargehand.values.recovery_policy import Policy
from chargehand.values.status_words import RunStatus

StepKind = Literal[
    "plan", "attempt", "refine", "reroute", "split", "join", "ask", "ask_result", "extend", "write", "finish"
]


class WorkerHead(Value):
    """What the dispatcher has to know about a worker."""

    tier: Tier
    waits_for_person: bool


class PlanHead(Value):
    """What the order of a run depends on, apart from tasks: facts of the plan, the team, the request and the models."""

    # The tokens that a task without a token budget may use; None without a limit.
    ceiling: int | None
    # When workers stop, to leave time for writing the answer.
    stop_at: float | None
    workers: dict[str, WorkerHead]
    fallbacks: dict[str, str]
    pools: dict[str, tuple[str, ...]]
    max_concurrent: int
    # Whether a person may be asked.
    ask: bool
    policy: Policy
    # Which rungs of recovery the supervisor can take.
    rungs: dict[str, bool]
    # How many times tasks may be added, and how many tasks there may be then.
    extensions: int
    max_tasks: int
    # The tokens that writing the answer takes, without reading the results; 0 when code writes it.
    synthesis_tokens: int


class Head(Value):
    """What may be known about a step's result outside the step: everything except its texts."""

    status: Status
    # Empty for a step of the run as a whole.
    task: str = ""
    worker: str = ""
    # Where the outcome is; None when there is only the head.
    ref: str | None = None
    # Why it is not done: the words, or a mark that the engine replaces with the words when it writes an event. It may
    # become part of a sentence. No code may depend on it.
    why: str = ""
    error: ErrorKind | None = None
    escalation: EscalationReason | None = None
    confidence: Confidence | None = None
    partial: bool = False
    because: tuple[str, ...] = ()
    attempts: int = 1
    usage: Usage = Field(default_factory=Usage)
    # The outcome whose output is its partial result, if that is another outcome.
    output_of: str | None = None
    # The words of the task from now on.
    words: str | None = None
    # Tasks without their words: those of the plan, those added to it, or the smaller ones that take the task's place.
    parts: tuple[Task, ...] = ()
    # A plan that may run.
    plan: PlanHead | None = None
    # For each gap, the added tasks that must be done to fill it.
    fills: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    # Whether it is a draft of the answer that lacks something, and the tokens of the results it was written from.
    lacks: bool = False
    tokens_read: int = 0
    # The status of the report that is kept under `ref`.
    report: RunStatus | None = None

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
        """A failure outside of any step: there is only the head."""
        return Head(task=task, worker=worker, status="failed", why=why, error=kind)

    @staticmethod
    def skipped(task: str, worker: str, because: tuple[str, ...]) -> Head:
        """Not started, because tasks it depends on are not done."""
        why = f"Not started: it depends on {', '.join(because)}."
        return Head(task=task, worker=worker, status="skipped", why=why, because=because, attempts=0)

    def outcome(self) -> Outcome:
        """The outcome of a head that has no stored outcome."""
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


class StepRefs(NamedTuple):
    """The input of a step: plain JSON values, and no texts except names."""

    # Empty for a step of the run as a whole.
    task: str = ""
    # Which attempt it is, or which one it follows.
    attempt: int = 0
    worker: str = ""
    tier: Tier | None = None
    # The words of the task, if they are no longer those of the plan.
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
    # Why no worker may begin: the attempt fails with this reason.
    refused: str | None = None
    # The tasks that other tasks have replaced.
    filled: tuple[str, ...] = ()
    # The draft of the answer that lacks something.
    draft: str | None = None
    # The round in which tasks are added, or were last added.
    round: int = 0
    # Whether the answer may come back as a draft that lacks something: tasks may still be added for it.
    may_lack: bool = False

    def to_json(self) -> dict[str, Any]:
        return self._asdict()
