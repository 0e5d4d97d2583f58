"""A team and the settings -> the workers that can be dispatched to, with their models resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, assert_never, cast

from chargehand.models.call_options import Effort
from chargehand.models.resolve import Models, known_window
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.settings import DEFAULT_TIER, ModelChoice, Settings
from chargehand.team.team import Team
from chargehand.team.worker import Worker
from chargehand.tools import Tool
from chargehand.values.plain_class import with_changes
from chargehand.values.plan import Tier
from chargehand.workers import Roster, TeamRun, WorkerPort
from chargehand.workers.agent import Agent
from chargehand.workers.factory import WorkerFactory
from chargehand.workers.refuse_or_call_tool import AgentTool
from chargehand.workers.worker_prompt import material_room

# How long a call waits for a provider that is down, without and with a fallback to hand the task to.
PATIENCE_S = 120.0
PATIENCE_WITH_FALLBACK_S = 2.0

TIERS: tuple[Tier | None, ...] = (None, "small", "medium", "large")

# How a delegate's team is run.
Nest: TypeAlias = Callable[[Team], TeamRun]


def roster(team: Team, settings: Settings, *, ask: bool = False, nest: Nest | None = None) -> Roster:
    """`ask`: a person may be asked about tool calls that need approval. Without a model there are no agents.

    `nest` runs a delegate's team; without it there are no delegates.
    """
    able = [worker for worker in team.workers if worker.kind != "agent" or worker.model or settings.has_model]
    able = [worker for worker in able if worker.kind != "delegate" or nest is not None]
    made = {worker.name: _worker(worker, settings, ask, nest) for worker in able}
    for worker in able:
        agent, other = made[worker.name], made.get(worker.fallback or "")
        if isinstance(agent, Agent) and other is not None and not _needs_provider_of(agent, other):
            made[worker.name] = with_changes(agent, yields=True)
    return made


def _needs_provider_of(agent: Agent, other: WorkerPort) -> bool:
    """Whether the other worker needs the same provider as the agent; a team is assumed to need it."""
    if isinstance(other, Agent):
        return other.models[None].partition(":")[0] == agent.models[None].partition(":")[0]
    return not other.waits_for_person


def factory(team: Team, settings: Settings, *, ask: bool = False) -> WorkerFactory | None:
    """Makes the workers that a plan defines; None where the team has no factory, or there is no model for them."""
    if team.factory is None or not settings.has_model:
        return None
    blank = _agent(Worker("blank", "A template"), settings, ask)
    known = [cast("Tool", each) for each in team.factory_tools or () if isinstance(each, Tool)]
    allowed = {tool.name: _tool(tool) if tool.offered else None for tool in known}
    return WorkerFactory(allowed, team.factory.tiers, blank)


def _worker(worker: Worker, settings: Settings, ask: bool, nest: Nest | None) -> WorkerPort:
    # Most teams have agents only: the other kinds are loaded where a team has them.
    match worker.kind:
        case "agent":
            return _agent(worker, settings, ask)
        case "analyzer":
            from chargehand.workers.analyzer import AnalyzerWorker

            check = worker.check.name if worker.check else None
            return AnalyzerWorker(worker.name, worker.analyzers, worker.output_schema, check=check)
        case "delegate":
            from chargehand.workers.delegate import Delegate

            assert isinstance(worker.team, Team)
            assert nest is not None
            check = worker.check.name if worker.check else None
            return Delegate(
                worker.name,
                worker.team.name,
                nest(worker.team),
                worker.prompt,
                worker.team.budget,
                worker.output_schema,
                disclaimers=worker.team.disclaimers,
                max_tasks=worker.team.limits.max_tasks,
                deadline_s=worker.team.limits.deadline_s,
                check=check,
            )
        case "human":
            from chargehand.workers.human import Human

            check = worker.check.name if worker.check else None
            return Human(worker.name, worker.prompt, worker.output_schema, check=check)
        case "command":
            from chargehand.workers.command import CommandWorker

            assert worker.program is not None
            check = worker.check.name if worker.check else None
            return CommandWorker(worker.name, worker.program, worker.prompt, worker.output_schema, check=check, ask=ask)
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
        small_prompt=worker.small_prompt,
        models={tier: choice.model for tier, choice in choices.items()},
        tier=worker.tier or DEFAULT_TIER["worker"],
        check=worker.check.name if worker.check else None,
        tools={tool.name: _tool(tool) for tool in worker.offered},
        max_steps=worker.max_steps,
        output_schema=worker.output_schema,
        options=options_of(choices[None], worker.temperature, worker.effort),
        ask=ask,
        patience_s=PATIENCE_WITH_FALLBACK_S if worker.fallback else PATIENCE_S,
        most_material=material_room(known_window(choices[None].model, settings.providers)),
    )


def _tool(tool: Tool) -> AgentTool:
    return AgentTool(tool.spec, tool.effect, tool.approve, tool.code)


def supervisor_model(choice: ModelChoice, models: Models) -> SupervisorModel:
    """The chosen model as a role of the supervisor uses it."""
    return SupervisorModel(
        model=choice.model,
        options=options_of(choice),
        window=models.window(choice.model),
        makes_grammar=models.makes_grammar(choice.model),
    )


def options_of(choice: ModelChoice, temperature: float | None = None, effort: Effort | None = None) -> dict[str, Any]:
    """The options that are set; a worker's own win. `effort` is ours: each wire format translates it."""
    given = {
        "temperature": choice.temperature if temperature is None else temperature,
        "effort": effort or choice.effort,
    }
    return {**choice.options, **{name: value for name, value in given.items() if value is not None}}
