"""How a task ended: Done | Failed | Escalated | Skipped, one JSON shape, with findings, claims and usage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from chargehand.errors import ErrorKind, LimitName, lacked_limit
from chargehand.values.base import JSON, Field, Value, shorten

Status = Literal["done", "failed", "escalated", "skipped"]
EscalationReason = Literal["out_of_scope", "ambiguous_input", "confidence_too_low", "timeout"]
Severity = Literal["critical", "warning", "info"]
Confidence = Annotated[int, Field(ge=0, le=100)]


class Usage(Value):
    """What was spent; `usd` is None when any price is unknown, never 0."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    calls: int = 0
    seconds: float = 0.0
    waiting_s: float = 0.0
    models: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @staticmethod
    def total(parts: Iterable[Usage]) -> Usage:
        """The sum; unknown money makes the sum unknown."""
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        usd: float | None = 0.0
        read = wrote = cached = calls = 0
        seconds = waiting_s = 0.0
        models: dict[str, None] = {}
        for part in parts:
            usd = None if usd is None or part.usd is None else usd + part.usd
            read += part.input_tokens
            wrote += part.output_tokens
            cached += part.cached_tokens
            calls += part.calls
            seconds += part.seconds
            waiting_s += part.waiting_s
            models.update(dict.fromkeys(part.models))
        return Usage(
            input_tokens=read,
            output_tokens=wrote,
            cached_tokens=cached,
            usd=usd,
            calls=calls,
            seconds=seconds,
            waiting_s=waiting_s,
            models=tuple(models),
        )


class Claim(Value):
    """A statement of a worker with its sources."""

    statement: str
    confidence: Confidence | None = None
    sources: tuple[str, ...] = ()


class Finding(Value):
    """A remark on a place in the material."""

    severity: Severity = "info"
    category: str = ""
    path: str | None = None
    line: int | None = None
    end_line: int | None = None
    # Where on its first and last line it begins and ends, counted from 1; the end is not part of it.
    column: int | None = None
    end_column: int | None = None
    message: str
    suggestion: str | None = None
    # The suggestion as a unified diff of the file.
    patch: str | None = None
    confidence: Confidence | None = None
    sources: tuple[str, ...] = ()


class Fault(Value):
    """Why something failed: a closed kind and a sentence."""

    kind: ErrorKind
    message: str

    @property
    def lacked_limit(self) -> LimitName | None:
        """The limit of the run that was reached, if one was."""
        return lacked_limit(self.kind, self.message)

    @property
    def first_line(self) -> str:
        """The message without what it quotes below its first line, which may be a whole request."""
        return self.message.strip().partition("\n")[0]


class Escalation(Value):
    """Why a worker says that it cannot do its task."""

    reason: EscalationReason
    message: str


class Score(Value):
    """A scorer's judgement of a result: how far it meets its success criterion."""

    score: Confidence
    met: bool
    reason: str = ""


class Contradiction(Value):
    """Claims of several tasks that cannot all be true, and which of them counts."""

    subject: str
    claims: tuple[str, ...] = ()
    cause: str | None = None
    verdict: str | None = None
    reason: str | None = None
    resolved: bool = False


# What a gap means for the answer that a team returns.
IMPACT_OF_TEAM = "What the team gives is not all that was asked of it."


class Gap(Value):
    """Something the answer lacks; `task` is None when no task was to supply it."""

    task: str | None = None
    reason: str
    impact: str = ""


class Evidence(Value):
    """The result of comparing the sources of a model's result with what the model was given and had read."""

    # Sources that the model had not seen; they were removed.
    removed: int = 0
    # Statements whose only source is the model's own knowledge.
    own_knowledge: int = 0

    @staticmethod
    def total(parts: Iterable[Outcome]) -> Evidence | None:
        """The sum of all of them; None when nothing was found."""
        known = [part.evidence for part in parts if part.evidence is not None]
        removed, own = sum(each.removed for each in known), sum(each.own_knowledge for each in known)
        return Evidence(removed=removed, own_knowledge=own) if removed or own else None


class Outcome(Value):
    """What became of a task: its result or why there is none, and what it cost."""

    # Exactly one per task. Made only by the four functions below, so that status and fields agree.

    task: str
    status: Status
    worker: str
    summary: str = ""
    output: JSON = None
    partial: bool = False
    claims: tuple[Claim, ...] = ()
    findings: tuple[Finding, ...] = ()
    confidence: Confidence | None = None
    error: Fault | None = None
    escalation: Escalation | None = None
    because: tuple[str, ...] = ()
    # What is missing or contradictory in the result of a team that did the task; with a gap the outcome is partial.
    gaps: tuple[Gap, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    evidence: Evidence | None = None
    attempts: int = 1
    usage: Usage = Field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        return self.status == "done"

    def __repr__(self) -> str:
        return f"<Outcome {self.task}: {self.status} by {self.worker}; {shorten(self.summary)!r}>"

    def to_json(self) -> dict[str, JSON]:
        """As in the contract: optional fields only when they have content."""
        data = super().to_json()
        for name in ("partial", "error", "escalation", "because", "gaps", "contradictions", "evidence"):
            if not data[name]:
                del data[name]
        return data


def done(
    task: str,
    worker: str,
    *,
    summary: str,
    output: JSON,
    claims: Iterable[Claim] = (),
    findings: Iterable[Finding] = (),
    confidence: int | None = None,
) -> Outcome:
    """The task is finished; code, not the worker, adds the task's id to the sources."""
    return Outcome(
        task=task,
        status="done",
        worker=worker,
        summary=summary,
        output=output,
        claims=tuple(c.model_copy(update={"sources": (task, *c.sources)}) for c in claims),
        findings=tuple(f.model_copy(update={"sources": (task, *f.sources)}) for f in findings),
        confidence=confidence,
    )


def failed(task: str, worker: str, kind: ErrorKind, message: str, *, output: JSON = None) -> Outcome:
    """The task failed; `output` is the partial result, if there is one."""
    return Outcome(
        task=task,
        status="failed",
        worker=worker,
        summary=message,
        output=output,
        partial=output is not None,
        error=Fault(kind=kind, message=message),
    )


def escalated(task: str, worker: str, reason: EscalationReason, message: str, partial: JSON = None) -> Outcome:
    """The worker says that it cannot do the task; its partial result is the output."""
    return Outcome(
        task=task,
        status="escalated",
        worker=worker,
        summary=message,
        output=partial,
        partial=partial is not None,
        escalation=Escalation(reason=reason, message=message),
    )


def skipped(task: str, worker: str, because: Iterable[str]) -> Outcome:
    """Not started, because tasks it depends on are not done."""
    causes = tuple(because)
    return Outcome(
        task=task,
        status="skipped",
        worker=worker,
        summary=f"Not started: it depends on {', '.join(causes)}.",
        because=causes,
        attempts=0,
    )
