"""Outcomes -> the parts of a report: one synthesis call that must cite tasks, or a text made by code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import ValidationError

from chargehand.answer import read_object
from chargehand.brains import Brain
from chargehand.effect import ModelCall
from chargehand.engine import Engine
from chargehand.messages import system, user
from chargehand.outcome import Outcome, Usage
from chargehand.plan import Plan
from chargehand.report import Contradiction, Gap, Provenance
from chargehand.request import Request
from chargehand.schema import violations
from chargehand.synthesizer import plain, prompt
from chargehand.synthesizer.citations import provenance_of, provenance_of_listing
from chargehand.value import JSON
from chargehand.workers.agent import usage_of
from chargehand.workers.answer import read_confidence

ROUNDS = 2
# What is wrong with the answer as data, beyond its schema; None when it is good.
Validate: TypeAlias = Callable[[JSON], str | None]


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The answer and what is known about it."""

    answer: str
    contradictions: tuple[Contradiction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    confidence: int | None = None
    provenance: Provenance = field(default_factory=Provenance)
    data: JSON = None
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


async def synthesize(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    engine: Engine,
    brain: Brain | None,
    seconds: float | None = None,
    validate: Validate | None = None,
) -> Synthesis:
    """One answer from all outcomes, failures included. Without a model, or when it fails, the text is made by code."""
    gaps = plain.gaps(plan, outcomes)
    if not any(outcome.ok or outcome.partial for outcome in outcomes.values()):
        return Synthesis(answer=plain.nothing_done(plan, outcomes), gaps=gaps)
    if len(plan.tasks) == 1 and (only := _only_answer(request, outcomes[plan.tasks[0].id], validate)) is not None:
        return only
    if brain is None:
        return _by_code(request, plan, outcomes, gaps, "No model is configured: the answer lists the results.")
    engine.emit("synthesis_started", mode=plan.synthesis.mode, outcomes=len(outcomes))
    used: list[Usage] = []
    try:
        async with asyncio.timeout(seconds):
            return await _by_model(request, plan, outcomes, engine, brain, gaps, used, validate)
    except TimeoutError:
        engine.emit("draft_discarded", reason="The deadline came before the synthesis was written.")
        note = "The deadline left no time for a synthesis: the answer lists the results."
        return _by_code(request, plan, outcomes, gaps, note, Usage.total(used))


def _only_answer(request: Request, outcome: Outcome, validate: Validate | None) -> Synthesis | None:
    """A one-task plan needs no synthesis, unless a typed answer is wanted that the outcome is not."""
    if request.answer_schema is not None and (not outcome.ok or violations(outcome.output, request.answer_schema)):
        return None
    if validate is not None and validate(outcome.output) is not None:
        return None
    answer = plain.text_of(outcome)
    return Synthesis(
        answer=answer,
        gaps=()
        if outcome.ok
        else (Gap(task=outcome.task, reason=outcome.summary, impact="The answer is a partial result."),),
        confidence=outcome.confidence,
        provenance=Provenance(citations={str(n): (outcome.task,) for n, _ in enumerate(plain.paragraphs(answer), 1)}),
        data=outcome.output if request.answer_schema is not None else None,
    )


def _by_code(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    gaps: tuple[Gap, ...],
    note: str,
    usage: Usage | None = None,
) -> Synthesis:
    answer = plain.listing(plan, outcomes)
    if request.answer_schema is not None:
        gaps = (*gaps, Gap(reason="There is no answer in the form that was asked for.", impact="`data` is missing."))
    return Synthesis(
        answer=answer,
        gaps=gaps,
        confidence=plain.confidence(outcomes),
        provenance=provenance_of_listing(answer, outcomes),
        usage=usage or Usage(),
        notes=(note,),
    )


async def _by_model(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    engine: Engine,
    brain: Brain,
    gaps: tuple[Gap, ...],
    usages: list[Usage],
    validate: Validate | None,
) -> Synthesis:
    """The model's answer; what is wrong with it goes back once, then stands in the report."""
    messages = [system(prompt.RULES), user(prompt.ask(request, plan, outcomes, brain))]
    best: Synthesis | None = None
    why = ""
    for number in range(1, ROUNDS + 1):
        call = ModelCall(
            role="synthesizer",
            model=brain.model,
            messages=tuple(messages),
            output_schema=prompt.schema(request.answer_schema),
            options=brain.options,
            output_cap=brain.output_cap,
        )
        result = await engine.perform(f"@synthesis/{number}", call)
        usages.append(usage_of(result, call.model))
        if result.reply is None or result.reply.stop in ("refused", "length"):
            why = result.error.message if result.error else "the answer was refused or cut off"
            engine.emit("draft_discarded", reason=why)
            break
        data, problems = _read(result.reply.text, request)
        why = "; ".join(problems)
        if data is not None:
            invalid = validate(data["data"]) if validate is not None else None
            best = _draft(data, outcomes, gaps, invalid)
            problems = [*best.provenance.problems, *([] if invalid is None else [invalid])]
            if not problems:
                break
        if number < ROUNDS:
            engine.emit("draft_discarded", reason="; ".join(problems))
            messages += [result.reply.as_message(), user(prompt.again(problems))]
    usage = Usage.total(usages)
    if best is None:
        note = f"There is no synthesis ({why}): the answer lists the results."
        return _by_code(request, plan, outcomes, gaps, note, usage)
    return Synthesis(
        answer=best.answer,
        contradictions=best.contradictions,
        gaps=best.gaps,
        confidence=best.confidence,
        provenance=best.provenance,
        data=best.data,
        usage=usage,
    )


def _read(text: str, request: Request) -> tuple[dict[str, Any] | None, list[str]]:
    """The synthesizer's answer, or None and what to tell it. An odd confidence is mended, a blank answer is none."""
    data, problems = read_object(text)
    if data is None:
        return None, problems
    data = {name: value for name, value in data.items() if name == "data" or value is not None}
    if "confidence" in data:
        data["confidence"] = read_confidence(data["confidence"], "confidence", [])
    if problems := violations(data, prompt.schema(request.answer_schema)):
        return None, problems
    return (data, []) if data["answer"].strip() else (None, ["The answer is empty"])


def _draft(
    data: dict[str, Any], outcomes: Mapping[str, Outcome], gaps: tuple[Gap, ...], invalid: str | None
) -> Synthesis:
    if invalid is not None:
        gaps = (*gaps, Gap(reason=invalid, impact="`data` is as the model gave it."))
    known = {gap.task for gap in gaps}
    stated = [gap for gap in map(_gap, data.get("gaps") or []) if gap is not None]
    return Synthesis(
        answer=data["answer"],
        contradictions=tuple(c for c in map(_contradiction, data.get("contradictions") or []) if c is not None),
        # A gap the model states for a task code has already listed is the same gap.
        gaps=(*gaps, *(gap for gap in stated if gap.task is None or gap.task not in known)),
        confidence=data.get("confidence"),
        provenance=provenance_of(data["answer"], outcomes),
        data=data.get("data"),
    )


def _gap(data: Any) -> Gap | None:
    if isinstance(data, str):
        return Gap(reason=data)
    try:
        return Gap.model_validate({name: data[name] for name in Gap.model_fields if data.get(name) is not None})
    except (ValidationError, AttributeError):
        return Gap(reason=str(data)[:500])


def _contradiction(data: Any) -> Contradiction | None:
    if isinstance(data, str):
        return Contradiction(subject=data)
    try:
        fields = {name: data[name] for name in Contradiction.model_fields if data.get(name) is not None}
        fields["claims"] = tuple(str(claim) for claim in fields.get("claims") or ())
        return Contradiction.model_validate(fields)
    except (ValidationError, AttributeError):
        return Contradiction(subject=str(data)[:500])
