"""A plan -> what running it would take, roughly: calls, tokens and money before any is spent."""

from __future__ import annotations

import json

from chargehand.models import prices
from chargehand.plan import Plan, Task
from chargehand.supervisor import Supervisor
from chargehand.team import Team
from chargehand.trace.figures import money, several

CHARACTERS_PER_TOKEN = 4
# What a worker is told besides its own prompt, what describes one tool, and what a typical answer has, in tokens.
FRAME, TOOL, ANSWER = 400, 150, 700
# A worker with tools typically makes this many calls, one without makes one.
CALLS_WITH_TOOLS = 3


def preview(plan: Plan, door: Supervisor) -> str:
    """One line, honest about being an estimate."""
    settings = door.settings.for_team(door.team.models, door.team.budget, door.team.limits)
    calls, tokens, usd = 0, 0, 0.0
    known = True
    for task in plan.tasks:
        worker = door.team.worker(task.worker)
        number = CALLS_WITH_TOOLS if worker.tool_names else 1
        read = number * _input(task, door.team)
        calls, tokens = calls + number, tokens + read + number * ANSWER
        price = prices.price(*_split(settings.model_for("worker", task.tier or worker.tier, worker.model).model))
        known = known and price is not None
        usd += (read * price.input + number * ANSWER * price.output) / 1e6 if price else 0.0
    if len(plan.tasks) > 1:
        read = FRAME + len(plan.tasks) * ANSWER
        calls, tokens = calls + 1, tokens + read + ANSWER
        price = prices.price(*_split(settings.model_for("synthesizer").model))
        known = known and price is not None
        usd += (read * price.input + ANSWER * price.output) / 1e6 if price else 0.0
    cost = f"about {money(usd)}" if known else "cost unknown"
    limit = f", never more than the budget of {settings.budget.tokens:,} tokens" if settings.budget.tokens else ""
    parallel = f"{several(len(plan.tasks), 'task')}, {plan.strategy}, {plan.depth} deep"
    return f"Running it: {parallel}; an estimated {several(calls, 'call')}, {tokens:,} tokens, {cost}{limit}."


def _input(task: Task, team: Team) -> int:
    worker = team.worker(task.worker)
    context = len(json.dumps(task.context, default=str)) if task.context is not None else 0
    written = len(worker.prompt) + len(task.instruction) + len(task.success_criterion) + context
    told = len(worker.tool_names) * TOOL + len(task.depends_on) * ANSWER
    return FRAME + written // CHARACTERS_PER_TOKEN + told


def _split(model: str) -> tuple[str, str]:
    provider, _, name = model.partition(":")
    return provider, name
