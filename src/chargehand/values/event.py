"""The closed, versioned set of things that happen in a run. The journal holds them in order; all else is a fold."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

VERSION = 1

EventKind = Literal[
    "run_started",
    "plan_drafted",
    "plan_rejected",
    "plan_approved",
    "task_ready",
    "attempt_started",
    "model_called",
    "model_replied",
    "tool_called",
    "tool_returned",
    "tool_refused",
    "decision",
    "attempt_ended",
    "task_ended",
    "question_asked",
    "question_answered",
    "synthesis_started",
    "draft_discarded",
    "contradiction_found",
    "critique",
    "gap_found",
    "extension",
    "budget_reserved",
    "budget_settled",
    "breaker_changed",
    "reused",
    "warning",
    "run_ended",
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)

# What each kind carries besides run, seq, at, kind (and task and attempt where it belongs to a task).
FIELDS: dict[EventKind, tuple[str, ...]] = {
    "run_started": ("version", "chargehand", "epoch", "resumed", "request", "team", "settings", "rerun_of"),
    "plan_drafted": ("plan", "round", "problems", "renamed", "source", "within"),
    "plan_rejected": ("problems", "round", "within"),
    "plan_approved": ("plan", "strategy", "notes", "given", "usage", "ceiling", "within"),
    "task_ready": ("worker",),
    "attempt_started": ("worker", "tier", "model"),
    "model_called": (
        "key",
        "fingerprint",
        "role",
        "worker",
        "model",
        "messages",
        "tools",
        "output_schema",
        "options",
        "max_output",
        "send",
        "tool_choice",
    ),
    "model_replied": ("key", "fingerprint", "result"),
    "tool_called": ("key", "fingerprint", "worker", "tool", "arguments", "effect", "send"),
    "tool_returned": ("key", "fingerprint", "result"),
    "tool_refused": ("worker", "tool", "reason"),
    "decision": ("key", "decision", "value", "reason", "within"),
    "attempt_ended": ("status", "error", "outcome"),
    "task_ended": ("outcome",),
    "question_asked": ("key", "question"),
    "question_answered": ("key", "answer", "by", "parked_s"),
    "synthesis_started": ("mode", "outcomes", "within"),
    "draft_discarded": ("reason", "within"),
    "contradiction_found": ("contradiction", "within"),
    "critique": ("verdict", "problems", "within"),
    "gap_found": ("gap", "within"),
    "extension": ("tasks", "round", "fills", "within"),
    "budget_reserved": ("key", "tokens", "usd"),
    "budget_settled": ("key", "tokens", "usd", "estimated", "lost"),
    "breaker_changed": ("name", "state", "reason", "within"),
    "reused": ("key", "fingerprint", "result", "source"),
    "warning": ("message", "within"),
    "run_ended": ("status", "report", "by"),
}


class Event(NamedTuple):
    """One thing that happened. `seq` counts from 1 without holes; `at` is seconds since 1970."""

    run: str
    seq: int
    at: float
    kind: EventKind
    task: str | None
    attempt: int | None
    data: dict[str, Any]

    @property
    def outside(self) -> bool:
        """Put there by a command while nobody ran the run, as `answer` does: its time is not the run's own."""
        return self.data.get("by") == "command"

    def to_json(self) -> dict[str, Any]:
        head: dict[str, Any] = {"v": VERSION, "run": self.run, "seq": self.seq, "at": self.at, "kind": self.kind}
        if self.task is not None:
            head["task"] = self.task
        if self.attempt is not None:
            head["attempt"] = self.attempt
        return head | self.data
