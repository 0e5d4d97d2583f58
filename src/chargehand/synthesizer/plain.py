"""Outcomes -> readable text, gaps and confidence by code alone: what a report says when no model writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from chargehand.outcome import Outcome
from chargehand.plan import Plan
from chargehand.report import Gap

MOST_CHARACTERS_PER_TASK = 4_000


def paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def text_of(outcome: Outcome) -> str:
    """An outcome as an answer: its output if that is text, else its summary and the output as JSON."""
    if isinstance(outcome.output, str) and outcome.output.strip():
        return outcome.output
    if outcome.output in (None, "", {}, []):
        return outcome.summary
    return f"{outcome.summary}\n\n```json\n{json.dumps(outcome.output, indent=2, ensure_ascii=False)}\n```"


def listing(plan: Plan, outcomes: Mapping[str, Outcome]) -> str:
    """Every result under its own heading, sinks first: they are what the other tasks were for."""
    sinks = set(plan.sinks())
    tasks = sorted(plan.tasks, key=lambda task: task.id not in sinks)
    parts = [f"# {plan.goal}"] if plan.goal else []
    for task in tasks:
        outcome = outcomes[task.id]
        if not (outcome.ok or outcome.partial):
            continue
        text = text_of(outcome)
        if len(text) > MOST_CHARACTERS_PER_TASK:
            more = len(text) - MOST_CHARACTERS_PER_TASK
            text = f"{text[:MOST_CHARACTERS_PER_TASK]} … ({more:,} characters more in the record)"
        head = task.instruction.strip().splitlines()[0][:100] if task.instruction.strip() else task.id
        parts.append(f"## {head}{'' if outcome.ok else ' (partial)'}\n\n{text} [{task.id}]")
    missing = gaps(plan, outcomes)
    if missing:
        parts.append("## Missing\n\n" + "\n".join(f"- {gap.reason} {gap.impact} [{gap.task}]" for gap in missing))
    return "\n\n".join(parts)


def nothing_done(plan: Plan, outcomes: Mapping[str, Outcome]) -> str:
    """Why there is no answer: the one reason all tasks share in the same sentence, else a line for each reason."""
    tasks: dict[str, list[str]] = {}
    for id, outcome in outcomes.items():
        if outcome.status != "skipped":
            tasks.setdefault(outcome.summary, []).append(id)
    if len(tasks) == 1:
        return f"No task was done, so there is no answer: {next(iter(tasks))}"
    lines = [f"- {', '.join(ids)}: {reason}" for reason, ids in tasks.items()]
    return f"No task was done, so there is no answer to: {plan.goal}\n\n" + "\n".join(lines[:20])


def gaps(plan: Plan, outcomes: Mapping[str, Outcome]) -> tuple[Gap, ...]:
    """One gap for every task that is not done, with what it held up."""
    dependents = plan.dependents()
    found: list[Gap] = []
    for task in plan.tasks:
        outcome = outcomes[task.id]
        if outcome.ok:
            continue
        held_up = [id for id in dependents.get(task.id, ()) if outcomes[id].status == "skipped"]
        went_on = [id for id in dependents.get(task.id, ()) if outcomes[id].status != "skipped"]
        impact = [f"Not met: {task.success_criterion.strip().rstrip('.')}."]
        if held_up:
            impact.append(f"Skipped because of it: {', '.join(held_up)}.")
        if went_on:
            impact.append(f"Done without it: {', '.join(went_on)}.")
        if outcome.partial:
            impact.append("A partial result was used.")
        found.append(Gap(task=task.id, reason=f"{outcome.status}: {outcome.summary}", impact=" ".join(impact)))
    return tuple(found)


def confidence(outcomes: Mapping[str, Outcome]) -> int | None:
    """The mean of what the done tasks state, scaled by the share that is done; None when none states any."""
    stated = [o.confidence for o in outcomes.values() if o.ok and o.confidence is not None]
    if not stated:
        return None
    done = sum(o.ok for o in outcomes.values())
    return round(sum(stated) / len(stated) * done / len(outcomes))
