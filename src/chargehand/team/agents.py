"""A team and the settings -> the workers that can be dispatched to, with their models resolved."""

from __future__ import annotations

from typing import Any, assert_never

from chargehand.plan import Tier
from chargehand.settings import DEFAULT_TIER, ModelChoice, Settings
from chargehand.team.roster import Team
from chargehand.team.worker import Worker
from chargehand.workers import Roster, WorkerPort
from chargehand.workers.agent import Agent, AgentTool
from chargehand.workers.analyzer import AnalyzerWorker
from chargehand.workers.human import Human

# How long a call waits for a provider that is down, without and with a fallback to hand the task to.
PATIENCE_S = 120.0
PATIENCE_WITH_FALLBACK_S = 2.0

TIERS: tuple[Tier | None, ...] = (None, "small", "medium", "large")


def roster(team: Team, settings: Settings, *, ask: bool = False) -> Roster:
    """`ask`: a person may be asked about tool calls that need approval. Without a model there are no agents."""
    able = [worker for worker in team.workers if worker.kind != "agent" or worker.model or settings.has_model]
    return {worker.name: _worker(worker, settings, ask) for worker in able}


def _worker(worker: Worker, settings: Settings, ask: bool) -> WorkerPort:
    match worker.kind:
        case "agent":
            return _agent(worker, settings, ask)
        case "analyzer":
            check = worker.check.name if worker.check else None
            return AnalyzerWorker(worker.name, worker.analyzers, worker.output_schema, check=check)
        case "delegate":
            raise NotImplementedError
        case "human":
            check = worker.check.name if worker.check else None
            return Human(worker.name, worker.prompt, worker.output_schema, check=check)
        case _:
            assert_never(worker.kind)


def _agent(worker: Worker, settings: Settings, ask: bool) -> Agent:
    choices: dict[Tier | None, ModelChoice] = {
        tier: settings.model_for("worker", tier or worker.tier, worker.model) for tier in TIERS
    }
    return Agent(
        name=worker.name,
        description=worker.description,
        prompt=worker.prompt,
        models={tier: choice.model for tier, choice in choices.items()},
        tier=worker.tier or DEFAULT_TIER["worker"],
        check=worker.check.name if worker.check else None,
        tools={tool.name: AgentTool(tool.spec, tool.effect, tool.approve, tool.code) for tool in worker.offered},
        max_steps=worker.max_steps,
        output_schema=worker.output_schema,
        options=options_of(choices[None], worker.temperature),
        ask=ask,
        patience_s=PATIENCE_WITH_FALLBACK_S if worker.fallback else PATIENCE_S,
    )


def options_of(choice: ModelChoice, temperature: float | None = None) -> dict[str, Any]:
    """The sampling options somebody set; none is sent otherwise."""
    warmth = choice.temperature if temperature is None else temperature
    return {**choice.options, **({} if warmth is None else {"temperature": warmth})}
