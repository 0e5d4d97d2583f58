"""A program as a worker: it reads the task as JSON; what it prints, or changes in its checkout, is the outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from chargehand.engine.people import doubt, question_about_doubt
from chargehand.engine.port import Engine
from chargehand.events import Warned
from chargehand.text.json_repair import read_json
from chargehand.values.base import JSON
from chargehand.values.effect import ProgramResult, ProgramRun, usage_of_program
from chargehand.values.outcome import EscalationReason, Outcome, Usage, done, escalated, failed
from chargehand.values.plan import Task, Tier
from chargehand.values.program import Program
from chargehand.workers import Assignment, RunTerms
from chargehand.workers.check_result import asks_for_findings
from chargehand.workers.worker_answer import Answer, Unusable, read_answer
from chargehand.workers.worker_prompt import task_prompt

_LONGEST_SUMMARY = 300
_NOTE = "Work in the current folder. End with a short account of what you did and what you did not."


@dataclass(frozen=True)
class CommandWorker:
    """Starts its program once for each attempt, or once for each task where its effect is `once`. Uses no model."""

    name: str
    program: Program
    # What a preset reads before its task.
    prompt: str = ""
    output_schema: dict[str, Any] | None = None
    # There is no larger model to exchange it for.
    tier: Tier = "large"
    check: str | None = None
    waits_for_person: bool = False
    # Whether a person may be asked if an interrupted run of the program has happened.
    ask: bool = False
    material: tuple[str, ...] = ()

    @property
    def repeatable(self) -> bool:
        return self.program.effect != "once"

    def bind(self, terms: RunTerms) -> CommandWorker:
        return replace(self, material=tuple(each.name for each in terms.request.material))

    def model_for(self, tier: Tier | None) -> None:
        return None

    def with_model(self, model: str) -> CommandWorker:
        return self

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        effect = ProgramRun(worker=self.name, program=self.program, given=self._program_input(assignment))
        once = self.program.effect == "once"
        # The key has no attempt and no instruction: the program is never started twice for this task.
        key = f"{assignment.task.id}/once/{self.name}" if once else assignment.key("tool", 1)
        result = await self._perform(key, effect, assignment, engine)
        assignment.used.append(usage_of_program(result))
        outcome = self._outcome(result, assignment, engine)
        return outcome.model_copy(update={"usage": Usage.total(assignment.used)})

    async def _perform(self, key: str, effect: ProgramRun, assignment: Assignment, engine: Engine) -> ProgramResult:
        """The result; when it is in doubt, what a person says about it, if one may be asked."""
        result = await engine.perform(key, effect)
        if result.error is None or result.error.kind != "in_doubt" or not self.ask:
            return result
        command: dict[str, JSON] = {"command": list(self.program.command)}
        question = question_about_doubt(assignment.task, self.name, self.program.command[0], command)
        found = doubt(await assignment.ask(engine, f"{key}/doubt", question))
        if found is None or found.verdict == "give_up":
            return result
        if found.verdict == "send":
            return await self._perform(f"{key}/again", effect, assignment, engine)
        return ProgramResult(text=found.result or "It has happened; what it printed is not known.")

    def _program_input(self, assignment: Assignment) -> str:
        task = assignment.task
        if self.program.preset is not None:
            own = f"{self.prompt.strip()}\n\n" if self.prompt.strip() else ""
            return f"{own}{task_prompt(task, assignment.inputs)}\n\n{_NOTE}"
        data = {"task": _task(task), "inputs": _inputs(assignment.inputs), "material": list(self.material)}
        return json.dumps(data, ensure_ascii=False)

    def _outcome(self, result: ProgramResult, assignment: Assignment, engine: Engine) -> Outcome:
        task = assignment.task
        made = result.diff or result.text.strip() or None
        if result.error is not None:
            return failed(task.id, self.name, result.error.kind, result.error.message, output=made)
        if result.unverified is not None:
            verify = " ".join(self.program.verify)
            message = f"The result did not pass `{verify}`: {result.unverified}"
            return failed(task.id, self.name, "criterion_not_met", message, output=made)
        if (escalation := _escalation(result.text)) is not None:
            return escalated(task.id, self.name, *escalation)
        answer = self._answer(result, task)
        if isinstance(answer, Unusable):
            kind = "criterion_not_met" if answer.empty else "contract"
            message = f"{self.name} printed no result: {'; '.join(answer.problems)}"
            return failed(task.id, self.name, kind, message, output=made)
        if answer.corrected:
            message = f"The answer of {self.name} to {task.id} was corrected: {'; '.join(answer.corrected[:10])}."
            engine.emit(Warned(message=message[:2_000]), task=task.id, attempt=assignment.attempt)
        return done(
            task.id,
            self.name,
            summary=answer.summary,
            output=answer.output,
            claims=answer.claims,
            findings=answer.findings,
            confidence=answer.confidence,
        )

    def _answer(self, result: ProgramResult, task: Task) -> Answer | Unusable:
        """What it printed; where it changed files, the changes are the output."""
        if not result.diff:
            wants = asks_for_findings(task.instruction, task.success_criterion) and "{" in result.text
            return read_answer(result.text, self.output_schema, wants_findings=wants)
        said = read_answer(result.text, None) if result.text.strip() else None
        if isinstance(said, Answer):
            return said._replace(output=result.diff, is_text=False)
        changed = [line[6:] for line in result.diff.splitlines() if line.startswith("+++ b/")]
        return Answer(summary=f"Changed {', '.join(changed) or 'files'}"[:_LONGEST_SUMMARY], output=result.diff)


def _task(task: Task) -> dict[str, JSON]:
    wanted = ("id", "instruction", "context", "success_criterion")
    return {name: value for name, value in task.to_json().items() if name in wanted}


def _inputs(inputs: Mapping[str, Outcome]) -> dict[str, JSON]:
    shown = ("status", "worker", "summary", "output", "claims", "findings", "confidence", "error")
    return {
        id: {name: value for name, value in outcome.to_json().items() if name in shown}
        for id, outcome in inputs.items()
    }


def _escalation(text: str) -> tuple[Any, str, JSON] | None:
    """The reason, message and partial result of a program that hands its task back: `{"escalate": {...}}` alone."""
    if not text.lstrip().startswith("{"):
        return None
    data, _ = read_json(text)
    called: Any = cast("dict[str, Any]", data).get("escalate") if isinstance(data, dict) else None
    if not isinstance(called, dict):
        return None
    given = cast("dict[str, Any]", called)
    reason = given.get("reason")
    known = reason if reason in get_args(EscalationReason) else "ambiguous_input"
    return known, str(given.get("message") or "No reason given."), given.get("partial")
