"""Events -> what a run must not do again: committed effects, decisions, answers, ended tasks, money spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chargehand.event import Event
from chargehand.outcome import Outcome
from chargehand.value import JSON

Data = dict[str, Any]


@dataclass(slots=True)
class Replay:
    """A fold over one run's events. The engine reads it; only `apply` writes it."""

    run: str = ""
    seq: int = 0
    # The request, team and settings the run goes on with.
    start: Data = field(default_factory=dict[str, Any])
    sessions: int = 0
    plan: Data | None = None
    # The plan came from the user: the planner is never asked.
    plan_given: bool = False
    # key -> {fingerprint, result}: effects that returned.
    committed: dict[str, Data] = field(default_factory=dict[str, Data])
    # key -> the *_called event's data: effects begun and not returned when the record stops.
    intents: dict[str, Data] = field(default_factory=dict[str, Data])
    decisions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    questions: dict[str, Data] = field(default_factory=dict[str, Data])
    answers: dict[str, JSON] = field(default_factory=dict[str, JSON])
    ended: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task -> attempts begun; where a reopened task counts on from.
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    reopened: dict[str, int] = field(default_factory=dict[str, int])
    spent_tokens: int = 0
    spent_usd: float = 0.0
    # key -> (tokens, usd) set aside and never settled, and the keys of calls sent, both in the last session only.
    reserved: dict[str, tuple[int, float | None]] = field(default_factory=dict[str, tuple[int, float | None]])
    sent: set[str] = field(default_factory=set[str])
    # Seconds some process owned and ran this run.
    owned_s: float = 0.0
    status: str = "running"
    report: Data | None = None
    _session_began: float = 0.0
    _owned_before: float = 0.0

    def apply(self, event: Event) -> None:
        data = event.data
        self.run, self.seq = event.run, event.seq
        match event.kind:
            case "run_started":
                # A resumed session says what it changes: a topped-up budget, a later deadline.
                self.start = {**self.start, **{name: value for name, value in data.items() if value is not None}}
                self.sessions += 1
                self._write_off()
                self._session_began, self._owned_before = event.at, self.owned_s
                self.status, self.report = "running", None
            case "plan_drafted":
                self.plan_given = data.get("source") == "given"
            case "plan_approved":
                self.plan = data["plan"]
            case "model_called" | "tool_called":
                self.intents[data["key"]] = data
                self.sent.add(data["key"])
            case "model_replied" | "tool_returned" | "reused":
                self.intents.pop(data["key"], None)
                self.committed[data["key"]] = data
            case "decision":
                self._decide(data)
            case "attempt_started":
                if event.task is not None and event.attempt is not None:
                    self.attempts[event.task] = event.attempt
            case "task_ended":
                outcome = Outcome.model_validate(data["outcome"])
                self.ended[outcome.task] = outcome
            case "question_asked":
                self.questions[data["key"]] = data["question"]
            case "question_answered":
                self.answers[data["key"]] = data["answer"]
            case "budget_reserved":
                self.reserved[data["key"]] = (data["tokens"], data["usd"])
            case "budget_settled":
                self.reserved.pop(data["key"], None)
                self.spent_tokens += data["tokens"]
                self.spent_usd += data["usd"] or 0.0
            case "run_ended":
                self.status, self.report = data["status"], data.get("report")
            case _:
                pass
        self.owned_s = self._owned_before + max(0.0, event.at - self._session_began)

    def in_flight(self) -> list[tuple[int, float | None]]:
        """What was set aside for calls under way when the session died, (tokens, usd): it may have been used.

        A call that still waited for its slot was never sent and has used nothing.
        """
        return [cost for key, cost in self.reserved.items() if key in self.sent]

    def _write_off(self) -> None:
        """A new session counts what the one before left in flight as spent."""
        for tokens, usd in self.in_flight():
            self.spent_tokens += tokens
            self.spent_usd += usd or 0.0
        self.reserved.clear()
        self.sent.clear()

    def _decide(self, data: Data) -> None:
        if data["decision"] == "reopen":
            self.reopen(data["value"]["tasks"])
        self.decisions[data["key"]] = data["value"]

    def reopen(self, tasks: Iterable[str]) -> None:
        """Let tasks run again, attempts counting on, and let the supervisor's own failed calls be made again."""
        for task in tasks:
            self.ended.pop(task, None)
            self.reopened[task] = self.attempts.get(task, 0)
        for key in [k for k, v in self.committed.items() if k.startswith("@") and v["result"].get("error")]:
            del self.committed[key]


def replay(events: Iterable[Event]) -> Replay:
    state = Replay()
    for event in events:
        state.apply(event)
    return state
