"""Request -> Plan: one model call that decomposes, its problems sent back at most twice, then a typed failure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Container, Sequence
from functools import partial
from typing import Any, cast

from chargehand.engine.consult import consult
from chargehand.engine.port import Engine
from chargehand.events import PlanDrafted, PlanRejected
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.planner.numbered_plan import number_tasks
from chargehand.planner.planning_result import Planned, Unplanned
from chargehand.planner.worker_list import describe_workers
from chargehand.team import Team
from chargehand.text.json_repair import read_object
from chargehand.text.plan_json import Reading, list_errors, read, with_valid_ids
from chargehand.values.budget import Budget
from chargehand.values.effect import usage_of
from chargehand.values.message import Message, system, user
from chargehand.values.outcome import Fault, Outcome, Usage
from chargehand.values.plan import (
    MOST_MEMBERS,
    FactoryLimits,
    Plan,
    Problem,
    SynthesisSpec,
    Task,
    WorkerSpec,
    errors_in,
)
from chargehand.values.request import Request
from chargehand.workers.worker_prompt import quote_data, task_prompt

REPAIRS = 2
# How many drafts are sent back because they lost a part of the request. Code adds what is still lost then.
ROUNDS_OF_CARE = 1
# How many examples of the team the planner is shown.
MOST_EXAMPLES = 3
_LONGEST_STEP = 70
ADVISED_TASKS = 20
# A task is split into at most this many.
MOST_PARTS = 8
_TASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "worker": {"type": "string"},
        "instruction": {"type": "string"},
        "context": {},
        "success_criterion": {"type": "string"},
        "depends_on": {"type": "array", "items": {"type": "string"}},
        "on_dependency_failure": {"enum": ["skip", "proceed"]},
        "budget": {
            "type": "object",
            "properties": {"tokens": {"type": "integer"}, "steps": {"type": "integer"}},
            "additionalProperties": False,
        },
        "timeout_s": {"type": "number"},
        "best_of": {"type": "integer"},
        "tier": {"enum": ["small", "medium", "large"]},
    },
    "required": ["id", "worker", "instruction", "success_criterion", "depends_on"],
    "additionalProperties": False,
}

PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "tasks": {"type": "array", "items": _TASK_SCHEMA},
        "synthesis": {
            "type": "object",
            "properties": {"mode": {"enum": ["merge", "select", "reduce"]}, "instruction": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    "required": ["goal", "tasks"],
    "additionalProperties": False,
}

# The accepted shape of requested tasks: errors inside a task are reported as problems, as for any plan.
TASKS_ACCEPTED: dict[str, Any] = {
    "type": "object",
    "required": ["tasks"],
    "properties": {"tasks": {"type": "array"}},
}

_WORKERS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "description": {"type": "string"},
            "prompt": {"type": "string"},
            "tools": {"type": "array", "items": {"type": "string"}},
            "tier": {"enum": ["small", "medium", "large"]},
        },
        "required": ["name", "description", "prompt"],
        "additionalProperties": False,
    },
}


def tasks_schema(workers: Collection[str], **more: dict[str, Any]) -> dict[str, Any]:
    """The shape of an answer that is a list of tasks for these workers; `more` are further fields of a task."""
    properties = {**_TASK_SCHEMA["properties"], "worker": {"enum": sorted(workers)}, **more}
    return {
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": {**_TASK_SCHEMA, "properties": properties}}},
        "required": ["tasks"],
        "additionalProperties": False,
    }


_RULES = """You plan the work of a team. You never do the work yourself.

Answer with one JSON object: "goal" (one sentence), "tasks" (a list) and "synthesis".
A task has "id" (t1, t2 and so on), "worker" (a name from the list below), "instruction", "context",
"success_criterion" and "depends_on" (the ids of tasks whose results it needs; often empty).
- A request that asks one thing is one task, for the worker that can do the whole. Otherwise as few tasks as the job
  needs, at most {advised}.
- A worker sees its task and the results it depends on, and never the request: copy every figure, name, file and
  condition of the request that the task needs into it.
- Tasks that need nothing from each other run at the same time.
- A success criterion can be checked: a number of items, a figure, a form, a source.
- "on_dependency_failure" is "proceed" for a task that is worth doing with a gap, else "skip".
- Where it matters: "budget" with "tokens" or "steps", "timeout_s" for an attempt, "tier" (small for what is simple,
  large for what is hard), "best_of" (2 to {members} tries, the best is taken, at so many times the cost). Without a
  budget a task stops at three times its share of the run's tokens.
- "synthesis" has "mode" (merge complementary results, select the best of several, reduce a great deal of text) and
  "instruction".

Workers
{workers}
{examples}"""


async def make_plan(
    request: Request, team: Team, engine: Engine, planner_model: SupervisorModel, used: list[Usage] | None = None
) -> Planned | Unplanned:
    """A valid plan for the request, or why there is none.

    `used` grows with each call, so a caller that stops it knows what was used.
    """
    messages = [system(_system(team, request)), user(_ask(request))]
    read = partial(_read, request=request, team=team, engine=engine, is_small=planner_model.is_small)
    schema = _schema(team, request)
    schema = number_tasks(schema) if planner_model.makes_grammar else schema
    return await ask_for_plan(messages, schema, read, engine, planner_model, [] if used is None else used)


async def ask_for_plan(
    messages: Sequence[Message],
    schema: dict[str, Any],
    read: Callable[[str, int], tuple[Plan | None, list[Problem]]],
    engine: Engine,
    planner_model: SupervisorModel,
    used: list[Usage],
) -> Planned | Unplanned:
    """The plan that `read` makes of the planner's answer. If it has errors, they are sent back for another round."""
    asked = list(messages)
    problems: list[Problem] = []
    for number in range(1, REPAIRS + 2):
        call = planner_model.make_call("planner", asked, schema)
        result = await engine.perform(f"@plan/{number}", call)
        used.append(usage_of(result, call.model))
        if result.reply is None:
            assert result.error is not None
            # A call that the budget denies is not sent.
            what = "The planner was not asked" if result.error.kind == "budget" else "The planner's model failed"
            fault = Fault(kind=result.error.kind, message=f"{what}: {result.error.message}")
            return Unplanned(fault, (), Usage.total(used))
        draft, problems = read(result.reply.text, number)
        if draft is not None and not errors_in(problems):
            return Planned(draft, Usage.total(used))
        engine.emit(PlanRejected(problems=[p.to_json() for p in problems], round=number))
        asked += [result.reply.as_text(), _corrections(problems)]
    wrong = list_errors(f"The planner gave no valid plan in {REPAIRS + 1} rounds", problems)
    fault = Fault(kind="contract", message=wrong)
    return Unplanned(fault, tuple(problems), Usage.total(used))


def _read(
    text: str, number: int, *, request: Request, team: Team, engine: Engine, is_small: bool
) -> tuple[Plan | None, list[Problem]]:
    """The drafted plan and everything wrong with it; drafts are on the record, good or bad.

    A small model does not find the lost parts of a request when asked again: code puts the request into its tasks.
    """
    data, complaints = read_object(text)
    if data is None:
        problems = [Problem(code="empty_plan", message=f"The answer is not a plan: {c}.") for c in complaints]
        engine.emit(PlanDrafted(plan=None, round=number, problems=[p.to_json() for p in problems], source="planner"))
        return None, problems
    reading, renamed = read_draft(data)
    problems = reading.problems(
        team.assignable,
        max_tasks=request.max_tasks,
        budget_tokens=request.budget.tokens,
        factory=team.factory,
    )
    if reading.misshapen:
        engine.emit(PlanDrafted(plan=data, round=number, problems=[p.to_json() for p in problems], source="planner"))
        return None, problems
    from chargehand.planner.lost_details import losses, with_lost_details, with_request  # not for a given plan

    plan = reading.plan
    if number <= ROUNDS_OF_CARE:
        problems += losses(plan, request, team, with_details=not is_small)
    if not errors_in(problems):
        plan = with_request(plan, request, team) if is_small else with_lost_details(plan, request)
    synthesis = plan.synthesis if plan.synthesis.instruction else team.synthesis
    plan = plan.model_copy(update={"team": team.name, "synthesis": synthesis})
    engine.emit(
        PlanDrafted(
            plan=plan.to_json(),
            round=number,
            problems=[p.to_json() for p in problems],
            renamed=renamed,
            source="planner",
        )
    )
    return plan, problems


_SPLIT = """You split one task that was too much for its worker into two to {most} smaller ones that together do the
same. Answer with one JSON object with the field "tasks", a list of objects, each with "id", "worker" (the
name of one of the workers below), "instruction", "context", "success_criterion" and "depends_on" (a list of ids of the
new tasks whose results it needs). A task stands on its own: its worker sees only what is in it and those results.

Workers
{workers}"""


async def split_task(
    task: Task,
    outcome: Outcome,
    number: int,
    used: list[Usage],
    *,
    request: Request,
    team: Team,
    engine: Engine,
    planner_model: SupervisorModel,
) -> Plan | None:
    """A plan of smaller tasks to take the task's place, validated like any plan; None when there is none.

    Their ids are below the task's (`t3.s.t1`), and those that depend on nothing see what the task would have seen.
    """
    what = {"status": outcome.status, "why": outcome.summary, "result so far": outcome.output}
    messages = [
        system(_SPLIT.format(most=MOST_PARTS, workers=describe_workers(team))),
        user(f"{task_prompt(task, {})}\n\nWhat came of it\n{quote_data(what)}"),
    ]
    schema = tasks_schema(team.names)
    schema = number_tasks(schema, MOST_PARTS) if planner_model.makes_grammar else schema
    key = f"{task.id}/{number}/split"
    asked = await consult(engine, key, "planner", planner_model, messages, schema, used, reads=TASKS_ACCEPTED)
    if asked.data is None:
        return None
    reading, _ = read_draft(asked.data)
    problems = reading.problems(team.names, max_tasks=MOST_PARTS, budget_tokens=request.budget.tokens)
    plan = reading.plan
    engine.emit(
        PlanDrafted(plan=plan.to_json(), round=1, problems=[problem.to_json() for problem in problems], source="split"),
        task=task.id,
        attempt=number,
    )
    if errors_in(problems):
        return None
    return plan.model_copy(update={"tasks": tuple(_part(part, task) for part in plan.tasks)})


def _part(part: Task, whole: Task) -> Task:
    own = tuple(f"{whole.id}.s.{dependency}" for dependency in part.depends_on)
    return part.model_copy(
        update={
            "id": f"{whole.id}.s.{part.id}",
            "depends_on": own or whole.depends_on,
            # The whole task was begun despite gaps in its inputs, so its parts are begun too.
            "on_dependency_failure": part.on_dependency_failure if own else "proceed",
            "timeout_s": part.timeout_s or whole.timeout_s,
        }
    )


def read_draft(data: dict[str, Any]) -> tuple[Reading, dict[str, str]]:
    """What can be read of a model's draft, and the ids that were rewritten in it."""
    reading = read(_known_fields(data))
    plan, renamed = with_valid_ids(reading.plan)
    return reading._replace(plan=plan), renamed


_OF_A_TASK = frozenset(Task.model_fields)


def _known_fields(data: dict[str, Any]) -> dict[str, Any]:
    """The draft without unknown fields: extra fields from a model are not an error."""
    known = {name: value for name, value in data.items() if name in Plan.model_fields}
    tasks = known.get("tasks")
    if isinstance(tasks, list):
        known["tasks"] = [_known_of_a_task(task) for task in cast("list[Any]", tasks)]
    specs = known.get("workers")
    if isinstance(specs, list):
        known["workers"] = [_only(WorkerSpec.model_fields, spec) for spec in cast("list[Any]", specs)]
    elif specs is None:
        known.pop("workers", None)
    known["synthesis"] = _only(SynthesisSpec.model_fields, known.get("synthesis") or {})
    return known


def _known_of_a_task(data: Any) -> Any:
    task = _only(_OF_A_TASK, data)
    if isinstance(task, dict) and "budget" in task:
        task["budget"] = _only(Budget.model_fields, task["budget"])
    return cast("Any", task)


def _only(fields: Container[str], data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    items = cast("dict[str, Any]", data)
    return {name: value for name, value in items.items() if name in fields and value is not None}


def _corrections(problems: list[Problem]) -> Message:
    listing = "\n".join(f"- {problem.message}" for problem in problems[:50])
    return user(f"This cannot be run:\n{listing}\nAnswer with the whole of your answer again, corrected.")


def _system(team: Team, request: Request) -> str:
    examples = "".join(_outline(example.request, example.plan) for example in team.examples[:MOST_EXAMPLES])
    made = "" if team.factory is None else _factory_rules(team.factory)
    workers = describe_workers(team, _able_workers(team, request)) + made
    return _RULES.format(advised=ADVISED_TASKS, members=MOST_MEMBERS, workers=workers, examples=examples)


def _outline(request: str, plan: Plan) -> str:
    """An example as a list of workers and steps: it shows how to divide, and cannot be sent back as a plan."""
    number = {task.id: place for place, task in enumerate(plan.tasks, 1)}
    steps = [
        f"{number[task.id]} {task.worker}"
        + (f" after {' and '.join(str(number[id]) for id in task.depends_on)}" if task.depends_on else "")
        + f": {textwrap.shorten(task.instruction, _LONGEST_STEP, placeholder='')}"
        for task in plan.tasks
    ]
    return (
        f"\nHow another request was cut: {textwrap.shorten(request, 200, placeholder='')}\n" + "\n".join(steps) + "\n"
    )


def _able_workers(team: Team, request: Request) -> tuple[str, ...]:
    """The workers that can do something for this request: without material, none that only reads files. () is all."""
    if request.material or request.web:
        return ()
    able = tuple(worker.name for worker in team.workers if not worker.only_reads_files)
    return () if not able or len(able) == len(team.workers) else able


def _schema(team: Team, request: Request) -> dict[str, Any]:
    """The plan's shape with the names of the workers in it."""
    names = sorted(team.assignable)
    if team.factory is not None:
        return {**PLAN_SCHEMA, "properties": {**PLAN_SCHEMA["properties"], "workers": _WORKERS_SCHEMA}}
    offered = _able_workers(team, request)
    tasks = PLAN_SCHEMA["properties"]["tasks"]
    items = tasks["items"]
    worker = {"enum": [name for name in names if not offered or name in offered]}
    named = {**tasks, "items": {**items, "properties": {**items["properties"], "worker": worker}}}
    return {**PLAN_SCHEMA, "properties": {**PLAN_SCHEMA["properties"], "tasks": named}}


def _factory_rules(factory: FactoryLimits) -> str:
    tools = ", ".join(factory.tools) or "none"
    return f"""

Where none of these fits, the plan may define workers of its own and give them tasks. They are in the field "workers", a
list of objects, each with "name", "description", "prompt" (what the worker is told), "tools" (a list) and "tier".
Tools they may have: {tools}. Tiers: {", ".join(factory.tiers)}."""


def _ask(request: Request) -> str:
    parts = [f"Request\n{request.text}"]
    if request.material:
        names = "\n".join(f"- {material.name}" for material in request.material)
        parts.append(f"Material the workers' file tools can read\n{names}")
    if request.earlier is not None:
        earlier = request.earlier
        data = {"request": earlier.request, "answer": earlier.answer, "outcomes": list(earlier.outcomes)}
        parts.append(
            "This follows up on an earlier run. Plan only what is new, and copy what a task needs from here into its "
            f"context.\n{quote_data(data)}"
        )
    return "\n\n".join(parts)
