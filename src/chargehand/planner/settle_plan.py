"""Request -> the plan that runs: from the record, given, routed or planned, and approved where that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chargehand.engine.deadline import in_time
from chargehand.engine.people import edited_plan, question_about_plan, verdict
from chargehand.engine.port import Engine
from chargehand.engine.run_parallel import run_parallel
from chargehand.events import PlanApproved, PlanDrafted, Warned
from chargehand.models.supervisor_models import SupervisorModel, SupervisorModels
from chargehand.planner.planning_result import Planned, Unplanned
from chargehand.planner.preview import ceiling_of, preview
from chargehand.team import Team
from chargehand.text.plan_json import parse
from chargehand.trace.number_text import duration
from chargehand.values.estimate import PastRun
from chargehand.values.key import PLAN_QUESTION
from chargehand.values.outcome import Fault, Usage
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Request
from chargehand.workers import Roster
from chargehand.workers.worker_prompt import task_prompt

if TYPE_CHECKING:
    from chargehand.workers.factory import WorkerFactory

# The share of the time left that adding tasks to a given plan may take: the rest is for the plan.
ADDING_SHARE = 0.2
# A person approves what a task says, so its line is long; a terminal breaks it between words.
APPROVAL_COLUMNS = 400


class Agreed(NamedTuple):
    """The plan that runs, whether it was planned here and so may be extended, and what making it used."""

    plan: Plan
    planned: bool
    usage: Usage
    # The tokens that a task without a token budget may use; None without a limit.
    ceiling: int | None = None


class Rejected(NamedTuple):
    """A person rejected the plan."""

    plan: Plan
    reason: str
    usage: Usage


async def agree(
    request: Request,
    team: Team,
    roster: Roster,
    engine: Engine,
    role_models: SupervisorModels,
    plan: Plan | None,
    factory: WorkerFactory | None,
    past: Sequence[PastRun] = (),
) -> Agreed | Unplanned | Rejected:
    """A plan given here is taken as it is: tasks may be added to it, and those without a worker are given one.

    `past` are runs of the same team and models, from which a person who is asked gets an estimate.
    """
    given, routed = plan is not None, team.mode == "route"
    if (recorded := engine.record.plan()) is not None:
        usage = Usage.model_validate(recorded.usage or {})
        ceiling = _recorded_ceiling(recorded.ceiling, request)
        return Agreed(parse(recorded.plan), not recorded.given and not routed, usage, ceiling)
    used: list[Usage] = []
    if plan is None:
        drafted = await _draft(request, team, engine, role_models, used)
        if isinstance(drafted, Unplanned):
            return drafted
        plan = drafted
    else:
        engine.emit(PlanDrafted(plan=plan.to_json(), round=0, problems=[], source="given"))
        plan = await _add_to(plan, request, team, engine, role_models.get("planner"), used)
    assign = partial(_assign_workers, plan, team, engine, role_models.get("router"), used)
    assigned = await in_time(engine, "@route", time_left(request, engine), assign)
    if assigned is None:
        return _too_late(request, used)
    plan, planned = assigned, not given and not routed
    if request.approve:
        workers = {**roster, **factory.make_agents(plan.workers)} if factory else roster
        approved = await _approve(
            plan, request, team.with_workers(plan.workers), workers, engine, role_models, planned=planned, past=past
        )
        if isinstance(approved, str):
            return Rejected(plan, approved, Usage.total(used))
        plan = approved
    usage = Usage.total(used)
    ceiling = ceiling_of(plan, request, role_models.get("synthesizer")) if planned else None
    engine.emit(
        PlanApproved(
            plan=plan.to_json(),
            strategy=plan.strategy,
            notes=list(team.advice(plan, parallel_inside=True)),
            given=given,
            usage=usage.to_json(),
            ceiling=None if ceiling is None else {"tokens": ceiling, "of": request.budget.tokens},
        )
    )
    return Agreed(plan, planned, usage, ceiling)


def time_left(request: Request, engine: Engine) -> float | None:
    """Seconds until the deadline; None without one."""
    return None if request.deadline_s is None else max(request.deadline_s - engine.clock.now(), 0.0)


def _recorded_ceiling(recorded: dict[str, int] | None, request: Request) -> int | None:
    """The ceiling the run began with, and what was added to its budget since: any task may use that."""
    if recorded is None:
        return None
    return recorded["tokens"] + (request.budget.tokens or recorded["of"]) - recorded["of"]


async def plan_or_route(
    request: Request, team: Team, engine: Engine, role_models: SupervisorModels, used: list[Usage]
) -> Planned | Unplanned:
    """A new plan: from the planner or, where the team routes its requests, for the chosen worker."""
    if team.mode == "plan":
        from chargehand.planner.draft import make_plan  # a given plan does without

        return await make_plan(request, team, engine, role_models["planner"], used)
    from chargehand.planner.route import route, routed_plan

    chosen = await route(request.text, team, engine, role_models.get("router"), "@route", used, request.asked)
    plan = routed_plan(chosen, request, team)
    engine.emit(PlanDrafted(plan=plan.to_json(), round=1, problems=[], source="router"))
    return Planned(plan, Usage.total(used))


async def _draft(
    request: Request, team: Team, engine: Engine, role_models: SupervisorModels, used: list[Usage]
) -> Plan | Unplanned:
    """The plan that the planner or the router makes of the request in time."""
    work = partial(plan_or_route, request, team, engine, role_models, used)
    made = await in_time(engine, "@plan", time_left(request, engine), work)
    if made is None:
        return _too_late(request, used)
    return made if isinstance(made, Unplanned) else made.plan


async def _add_to(
    plan: Plan, request: Request, team: Team, engine: Engine, model: SupervisorModel | None, used: list[Usage]
) -> Plan:
    """The given plan with the tasks a planner adds, where it may. If adding fails, the plan runs without them."""
    if model is None or request.subject is None:
        return plan
    from chargehand.planner.add_to_given_plan import add_tasks  # few plans are given with a subject

    left = time_left(request, engine)
    add = partial(add_tasks, plan, request.subject, request, team, engine, model, used)
    made = await in_time(engine, "@plan", None if left is None else left * ADDING_SHARE, add)
    if isinstance(made, Planned):
        return made.plan
    why = "There was not enough time for it." if made is None else made.fault.first_line
    engine.emit(Warned(message=f"No tasks were added to the plan, which runs as it was. {why}"))
    return plan


def _too_late(request: Request, used: list[Usage]) -> Unplanned:
    message = f"The deadline came before there was a plan, after {duration(request.deadline_s or 0.0)}."
    return Unplanned(Fault(kind="deadline", message=message), (), Usage.total(used))


async def _assign_workers(
    plan: Plan, team: Team, engine: Engine, model: SupervisorModel | None, used: list[Usage]
) -> Plan:
    """The plan with a worker for each task that came without one."""
    if all(task.worker for task in plan.tasks):
        return plan
    from chargehand.planner.route import route

    whole_team = team.with_workers(plan.workers)
    found: dict[str, str] = {}

    async def assign(task: Task) -> None:
        about, key = task_prompt(task, {}), f"@route/{task.id}"
        chosen = await route(about, whole_team, engine, model, key, used, task.instruction)
        found[task.id] = chosen.primary

    await run_parallel(assign(task) for task in plan.tasks if not task.worker)
    tasks = [task if task.worker else task.model_copy(update={"worker": found[task.id]}) for task in plan.tasks]
    return plan.model_copy(update={"tasks": tuple(tasks)})


async def _approve(
    plan: Plan,
    request: Request,
    team: Team,
    roster: Roster,
    engine: Engine,
    role_models: SupervisorModels,
    *,
    planned: bool,
    past: Sequence[PastRun],
) -> Plan | str:
    """The plan a person lets run, perhaps edited, or why it was rejected."""
    from chargehand.trace import to_text  # few plans are approved by a person

    writer = role_models["synthesizer"]
    ceiling = ceiling_of(plan, request, writer) if planned else None
    judge = role_models["judge"].model if "judge" in role_models else None
    estimate = preview(plan, team, roster, writer.model, request, ceiling, judge, past)
    text = f"{to_text(plan, APPROVAL_COLUMNS).rstrip()}\n\n{estimate}"
    answer = await engine.ask(PLAN_QUESTION, question_about_plan(text))
    said = verdict(answer)
    if said is None:
        return edited_plan(answer, plan)
    return plan if said.approved else said.reason
