"""JSON data -> a Plan, or everything wrong with the data: its shape and, as far as it can be read, its sense."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from pydantic_core import ValidationError, to_json

from chargehand.errors import InvalidPlan
from chargehand.text.json_schema import MAX_DEPTH, too_deep
from chargehand.values.base import JSON
from chargehand.values.default_limits import DEFAULT_TASKS
from chargehand.values.plan import TASK_ID, FactoryLimits, Plan, Task, errors_in
from chargehand.values.plan.problem import Problem, ProblemCode

# The code for a misshapen field: the nearest one of the closed list. The message gives the details.
_CODES: dict[int | str, ProblemCode] = {
    "id": "invalid_id",
    "worker": "unknown_worker",
    "tier": "unknown_worker",
    "instruction": "missing_instruction",
    "context": "missing_instruction",
    "success_criterion": "missing_criterion",
    "depends_on": "unknown_dependency",
    "on_dependency_failure": "unknown_dependency",
    "budget": "over_budget",
    "timeout_s": "over_budget",
    "best_of": "fan_out",
}
# Words of pydantic about Python types -> words about JSON.
_WORDS = {
    "extra_forbidden": "is not a field of this object",
    "tuple_type": "Input should be a list",
    "model_type": "Input should be an object",
}
_MOST_NAMED = 50
Location = tuple[int | str, ...]


class Reading(NamedTuple):
    """What could be read of a draft. The plan is whole, and fit to run, only when nothing is misshapen."""

    plan: Plan
    misshapen: tuple[Problem, ...] = ()
    # The places that could not be read.
    unread: frozenset[str] = frozenset()

    def problems(
        self,
        workers: Collection[str] | None,
        *,
        max_tasks: int = DEFAULT_TASKS,
        budget_tokens: int | None = None,
        factory: FactoryLimits | None = None,
    ) -> list[Problem]:
        """Everything wrong with it, its shape first."""
        rest = self.plan.problems(
            workers, max_tasks=max_tasks, budget_tokens=budget_tokens, unread=self.unread, factory=factory
        )
        return [*self.misshapen, *rest]


def parse(data: JSON, workers: Collection[str] | None = None, factory: FactoryLimits | None = None) -> Plan:
    """JSON data as a plan; if it does not have the shape of one, an InvalidPlan lists all problems.

    Those of its workers are among them, if the names that it may use are given.
    """
    reading = read(data)
    if reading.misshapen:
        raise plan_error("The plan does not have the shape of a plan", reading.problems(workers, factory=factory))
    return reading.plan


def plan_error(why: str, problems: Sequence[Problem]) -> InvalidPlan:
    """The error for a plan with these problems: a line for each that is an error."""
    return InvalidPlan(list_errors(why, problems), problems)


def list_errors(why: str, problems: Sequence[Problem]) -> str:
    """What is wrong, and a line for each problem that is an error."""
    wrong = errors_in(problems)
    more = [f"and {len(wrong) - _MOST_NAMED:,} more"] if len(wrong) > _MOST_NAMED else []
    lines = [problem.message for problem in wrong[:_MOST_NAMED]] + more
    return "\n  ".join([f"{why}:", *lines])


def read(data: JSON) -> Reading:
    """JSON data as far as it is a plan: misshapen parts are named and left out, the rest is used."""
    wrong: dict[Location, str] = {}
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            wrong.setdefault(each["loc"], _plain(each))
        plan = _readable(data, wrong)
    tasks = list(plan.tasks)
    for number, task in enumerate(tasks):
        if task.context is not None and (why := _unusable(task.context)) is not None:
            wrong["tasks", number, "context"] = why
            tasks[number] = task.model_copy(update={"context": None})
    if not wrong:
        return Reading(plan)
    misshapen = tuple(_problem(location, why, tasks) for location, why in wrong.items())
    unread = frozenset(_place(location[:3]) for location in wrong) if () not in wrong else frozenset({"tasks"})
    return Reading(plan.model_copy(update={"tasks": tuple(tasks)}), misshapen, unread)


def _readable(data: JSON, wrong: Collection[Location]) -> Plan:
    """The plan without its misshapen parts."""
    if () in wrong:
        return Plan()
    top = {location[0] for location in wrong if location[0] != "tasks" or len(location) == 1}
    parts = {name: value for name, value in cast("dict[str, Any]", data).items() if name not in top}
    bad: dict[int | str, list[Location]] = {}
    for location in wrong:
        if location[0] == "tasks" and len(location) > 1:
            bad.setdefault(location[1], []).append(location[2:])
    tasks = [_readable_task(task, bad.get(number, [])) for number, task in enumerate(parts.pop("tasks", None) or ())]
    return Plan.model_validate(parts).model_copy(update={"tasks": tuple(tasks)})


def _readable_task(data: Any, wrong: list[Location]) -> Task:
    if () in wrong or isinstance(data, Task):
        return data if isinstance(data, Task) else Task()
    whole = {location[0] for location in wrong if len(location) == 1 or location[0] != "depends_on"}
    fields = {name: value for name, value in cast("dict[str, Any]", data).items() if name not in whole}
    elements = {location[1] for location in wrong if location[0] == "depends_on" and len(location) > 1}
    if elements and "depends_on" in fields:
        fields["depends_on"] = [each for number, each in enumerate(fields["depends_on"]) if number not in elements]
    return Task.model_validate(fields)


def _problem(location: Location, why: str, tasks: list[Task]) -> Problem:
    code: ProblemCode = "forbidden_tool" if location[:1] == ("workers",) else "empty_plan"
    task: str | None = None
    if location[:1] == ("tasks",) and len(location) > 1:
        code = _CODES.get(location[2], "missing_instruction") if len(location) > 2 else "missing_instruction"
        task = tasks[cast("int", location[1])].id or None
    return Problem(code=code, task=task, message=f"{_place(location)}: {why}")


def with_valid_ids(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """The plan with ids that break the rule rewritten consistently, and what was rewritten."""
    taken = {task.id for task in plan.tasks if TASK_ID.fullmatch(task.id)}
    renamed: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for task in plan.tasks:
        if not task.id or task.id in taken or task.id in renamed:
            continue
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", task.id).strip("_-") or "task"
        stem = (stem if stem[0].isalpha() else f"t{stem}")[:40]
        fresh = stem
        while fresh in taken:
            # Counted per stem: thousands of ids may have the same stem.
            numbers[stem] = numbers.get(stem, 1) + 1
            ending = f"_{numbers[stem]}"
            fresh = stem[: 40 - len(ending)] + ending
        taken.add(fresh)
        renamed[task.id] = fresh
    if not renamed:
        return plan, {}
    tasks = tuple(
        task.model_copy(
            update={
                "id": renamed.get(task.id, task.id),
                "depends_on": tuple(renamed.get(dep, dep) for dep in task.depends_on),
            }
        )
        for task in plan.tasks
    )
    return plan.model_copy(update={"tasks": tasks}), renamed


def _unusable(context: JSON) -> str | None:
    """Why this data cannot be recorded or sent, although it is JSON."""
    if not isinstance(context, str) and too_deep(context):
        return f"is nested more than {MAX_DEPTH} levels deep"
    try:
        to_json(context, inf_nan_mode="null")
    except ValueError:
        return "holds text that is not valid Unicode"
    return None


def _place(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the plan"


def _plain(error: Any) -> str:
    words = _WORDS.get(error["type"]) or str(error["msg"])
    return words + _near_field(error["loc"]) if error["type"] == "extra_forbidden" else words


def _near_field(location: Location) -> str:
    """A field of the plan or of a task that is spelled almost like the unknown one."""
    from difflib import get_close_matches  # few plans are misshapen

    fields = list(Plan.model_fields if len(location) == 1 else Task.model_fields if len(location) == 3 else ())
    near = get_close_matches(str(location[-1]), fields, n=1)
    return f"; did you mean {near[0]}?" if near else ""
