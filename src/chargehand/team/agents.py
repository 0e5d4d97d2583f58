"""A team and the settings -> the workers that can be dispatched to, with their models resolved."""

from __future__ import annotations

from typing import Any

from chargehand.plan import Tier
from chargehand.settings import ModelChoice, Settings
from chargehand.team.roster import Team
from chargehand.team.worker import Worker
from chargehand.workers import Roster
from chargehand.workers.agent import Agent, AgentTool

TIERS: tuple[Tier | None, ...] = (None, "small", "medium", "large")


def roster(team: Team, settings: Settings) -> Roster:
    return {worker.name: _agent(worker, settings) for worker in team.workers}


def _agent(worker: Worker, settings: Settings) -> Agent:
    choices: dict[Tier | None, ModelChoice] = {
        tier: settings.model_for("worker", tier or worker.tier, worker.model) for tier in TIERS
    }
    return Agent(
        name=worker.name,
        description=worker.description,
        prompt=worker.prompt,
        models={tier: choice.model for tier, choice in choices.items()},
        tools={tool.name: AgentTool(tool.spec, tool.effect) for tool in worker.tools},
        max_steps=worker.max_steps,
        output_schema=worker.output_schema,
        options=options_of(choices[None], worker.temperature),
    )


def options_of(choice: ModelChoice, temperature: float | None = None) -> dict[str, Any]:
    """The sampling options somebody set; none is sent otherwise."""
    warmth = choice.temperature if temperature is None else temperature
    return {**choice.options, **({} if warmth is None else {"temperature": warmth})}
