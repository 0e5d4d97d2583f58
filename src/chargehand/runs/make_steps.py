"""A job and its models -> the steps of its run: the roster with its nested teams, and the supervisor's own models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from chargehand import flow
from chargehand.engine.engine_session import Fork, Prior
from chargehand.engine.port import Engine
from chargehand.models.resolve import Models
from chargehand.models.supervisor_models import RoleName, SupervisorModels
from chargehand.runs.roster import factory, roster, supervisor_model
from chargehand.settings import Limits, ModelChoice, Settings
from chargehand.steps.run_steps import RunSteps
from chargehand.synthesizer import OnDraft, Validate
from chargehand.team import Team
from chargehand.tools import BUILTIN, Tool
from chargehand.values.budget import Budget
from chargehand.values.estimate import PastRun
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.values.role import Role
from chargehand.workers import TeamRun

SUPERVISOR_ROLES: tuple[Role, ...] = ("planner", "router", "refiner", "scorer", "judge", "synthesizer", "critic")


class RunJob(NamedTuple):
    """What a session has to do. `plan` is a plan given by the user; the planner is then not asked."""

    run: str
    request: Request
    team: Team
    settings: Settings
    plan: Plan | None = None
    team_ref: str | None = None
    prior: Prior | None = None
    # Tasks to run again, and with them the supervisor's own failed calls; None leaves everything as it ended.
    reopen: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    # Notes of the report about this session alone.
    notes: tuple[str, ...] = ()
    # What a run that begins takes over from the one it was forked from.
    fork: Fork | None = None
    # Judges the answer as data. It is code of the caller, so a resume in another process does without it.
    validate: Validate | None = None


def make_steps(
    job: RunJob,
    models: Models,
    engine: Engine,
    supervisors: SupervisorModels,
    *,
    on_draft: OnDraft | None = None,
    past: Sequence[PastRun] = (),
) -> RunSteps:
    """The work inside the steps of a run."""
    ask = job.request.ask
    nest = partial(_nest, ask=ask, settings=job.settings, models=models)
    return RunSteps(
        job.request,
        job.team,
        roster(job.team, job.settings, ask=ask, nest=nest),
        engine,
        supervisors,
        job.plan,
        job.validate,
        on_draft=on_draft,
        factory=factory(job.team, job.settings, ask=ask),
        past=past,
    )


def tools_of(team: Team) -> dict[str, Tool]:
    """The tools of a team, and those that code calls for them."""
    held = team.tools()
    return {**held, **BUILTIN.called_by_code(held)}


def role_models(settings: Settings, models: Models) -> SupervisorModels:
    """The supervisor's own models."""
    if not settings.has_model:
        return {}
    choices: dict[RoleName, ModelChoice] = {role: settings.model_for(role) for role in SUPERVISOR_ROLES}
    choices["examiner"] = settings.model_for("scorer", "large")
    return {role: supervisor_model(choice, models) for role, choice in choices.items()}


def _nest(team: Team, *, ask: bool, settings: Settings, models: Models) -> TeamRun:
    """How a team in the team is run, with its own models where it names any."""
    own = settings.for_team(team.models, Budget(), Limits())
    workers = roster(team, own, ask=ask, nest=partial(_nest, ask=ask, settings=own, models=models))
    supervisors, makes = role_models(own, models), factory(team, own, ask=ask)

    async def run(request: Request, engine: Engine) -> Report:
        return await run_steps(RunSteps(request, team, workers, engine, supervisors, factory=makes))

    return run


async def run_steps(steps: RunSteps) -> Report:
    """The report of a run, or of a team within it."""
    engine = steps.engine
    engine.serve(steps)
    head = await flow.run(engine)
    assert head.ref is not None
    return engine.outcomes.report_at(head.ref)
