"""The answer and what it rests on: findings, contradictions, gaps, confidence, provenance, cost and timing."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from chargehand.values.base import JSON, Field, Value
from chargehand.values.outcome import Confidence, Contradiction, Fault, Finding, Gap, Outcome, Usage
from chargehand.values.plan import Plan, Strategy
from chargehand.values.status_words import EXIT_CODES, FINISHED, RunStatus

# Tasks that a note names.
_MOST_NAMED = 10


def evidence_notes(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Sentences about the checked sources of the results; none when there is nothing to report."""
    done = [(outcome.task, outcome.evidence) for outcome in outcomes if outcome.ok and outcome.evidence is not None]
    notes: list[str] = []
    if false := {task: each.removed for task, each in done if each.removed}:
        count = sum(false.values())
        what = "1 source was" if count == 1 else f"{count:,} sources were"
        notes.append(
            f"{what} removed in {_name_tasks(false)}: workers named what they were not given and had not read. "
            "The record has them."
        )
    if own := {task: each.own_knowledge for task, each in done if each.own_knowledge}:
        count = sum(own.values())
        what = "1 statement comes" if count == 1 else f"{count:,} statements come"
        notes.append(f"{what} from the model's own knowledge, without material or tools, in {_name_tasks(own)}.")
    return tuple(notes)


def _name_tasks(tasks: Collection[str]) -> str:
    more = len(tasks) - _MOST_NAMED
    return ", ".join(list(tasks)[:_MOST_NAMED]) + (f" and {more:,} more tasks" if more > 0 else "")


class LeftOut(Value):
    """A done task whose result the answer does not use, and why."""

    task: str
    reason: str


class Provenance(Value):
    """Which tasks each paragraph of the answer cites, what is wrong with that, and which results it does not use.

    A done task is cited, used through one that is, in `left_out` with the reason, or in `unused`.
    """

    citations: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    problems: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def cited(self) -> frozenset[str]:
        return frozenset(task for tasks in self.citations.values() for task in tasks)

    @property
    def accounts_for_all(self) -> bool:
        """Whether the answer cites what it rests on, and every result is used or left out for a reason."""
        return bool(self.citations) and not self.unused


class Timing(Value):
    wall_s: float = 0.0
    sequential_s: float = 0.0
    critical_path_s: float = 0.0
    speedup: float = 1.0
    waiting_s: float = 0.0


class Report(Value):
    run: str
    request: str
    status: RunStatus
    answer: str
    findings: tuple[Finding, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    confidence: Confidence | None = None
    provenance: Provenance = Field(default_factory=Provenance)
    outcomes: tuple[Outcome, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    timing: Timing = Field(default_factory=Timing)
    strategy: Strategy = "single"
    plan: Plan | None = None
    # Sentences worth reading beside the answer: a pure chain, an oversized team, an estimated usage.
    notes: tuple[str, ...] = ()
    # Why the run as a whole failed.
    error: Fault | None = None
    # No worker could be reached: the answer is the team's `when_nothing`.
    when_nothing: bool = False
    # The answer as data, when the request gave a schema for it.
    data: JSON = None

    @property
    def has_answer(self) -> bool:
        """Whether there is anything a reader would take for the answer."""
        done = any(outcome.ok or outcome.partial for outcome in self.outcomes)
        return self.when_nothing or (self.status in FINISHED and done)

    @property
    def exit_code(self) -> int:
        """2 for a wrong key, as for a missing one: the caller has to correct it."""
        return 2 if self.error is not None and self.error.kind == "auth" else EXIT_CODES[self.status]

    def to_json(self) -> dict[str, JSON]:
        data = self.model_dump(mode="json", exclude={"outcomes", "plan"})
        data["outcomes"] = [outcome.to_json() for outcome in self.outcomes]
        data["plan"] = self.plan.to_json() if self.plan else None
        for name in ("data", "error"):
            if data[name] is None:
                del data[name]
        if not self.when_nothing:
            del data["when_nothing"]
        return data
