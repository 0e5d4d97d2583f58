"""A person as a worker: the task is put to them as a question, and what they answer is its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from chargehand.engine.people import as_text, describe_task, escalation, readable
from chargehand.engine.port import Engine
from chargehand.values.effect import Question
from chargehand.values.outcome import EscalationReason, Outcome, Usage, done, escalated, failed
from chargehand.values.plan import Tier
from chargehand.workers import Assignment, RunTerms

_LONGEST_SUMMARY = 300
_REASONS: dict[str, EscalationReason] = {reason: reason for reason in get_args(EscalationReason)}


@dataclass(frozen=True)
class Human:
    """Somebody who answers, now or days later. Uses no model and holds no slot while waiting."""

    name: str
    # What the person reads with every task.
    prompt: str = ""
    output_schema: dict[str, Any] | None = None
    # The highest there is: a person is never exchanged for a larger model.
    tier: Tier = "large"
    check: str | None = None
    # A person is not asked the same question several times.
    repeatable: bool = False
    waits_for_person: bool = True

    def bind(self, terms: RunTerms) -> Human:
        return self

    def model_for(self, tier: Tier | None) -> None:
        return None

    def with_model(self, model: str) -> Human:
        return self

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        task = assignment.task
        question = Question(id=task.id, kind="task", prompt=self._prompt(assignment), answer_schema=self.output_schema)
        answer = await assignment.ask(engine, assignment.key("ask"), question)
        return outcome_of(task.id, self.name, answer).model_copy(update={"usage": Usage.total(assignment.used)})

    def _prompt(self, assignment: Assignment) -> str:
        parts = [part for part in (self.prompt.strip(), describe_task(assignment.task)) if part]
        for id in dict.fromkeys(assignment.task.depends_on):
            outcome = assignment.inputs[id]
            if outcome.ok:
                parts.append(f"Result of {id}, by {outcome.worker}: {outcome.summary}\n{readable(outcome.output)}")
            else:
                parts.append(f"Result of {id}: missing ({outcome.status}: {outcome.summary})")
        return "\n\n".join(parts)


def outcome_of(task: str, name: str, answer: Any) -> Outcome:
    """What a person answered as the outcome of a task: a result, an escalation, or nothing usable."""
    if (reason := escalation(answer)) is not None:
        named, _, rest = reason.partition(":")
        known = _REASONS.get(named.strip().lower())
        message = reason if known is None else rest.strip()
        return escalated(task, name, known or "out_of_scope", message or f"{name} handed the task back.")
    if answer in (None, "", {}, []):
        return failed(task, name, "contract", f"{name} gave an empty answer.")
    text = as_text(answer)
    summary = text if len(text) <= _LONGEST_SUMMARY else f"{text[: _LONGEST_SUMMARY - 1]}…"
    return done(task, name, summary=summary, output=answer)
