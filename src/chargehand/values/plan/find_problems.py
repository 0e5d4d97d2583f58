"""Tasks and workers of a plan -> everything wrong with them, found without spending anything."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan.problem import Problem, ProblemCode
from chargehand.values.plan.task import TASK_ID, WORKER_NAME, FactoryLimits, Task, WorkerSpec

# Words, in a lower-case text, that refer to something outside the task, which the worker does not see.
_POINTS_ELSEWHERE = lazy_regex(
    r"\b(as (above|before|discussed|mentioned)|see above|the above|same as (t\d+|before|above)|etc\.?|and so on|"
    r"do (it|this|that)|whatever)\b"
)
_MOST_CYCLES_NAMED = 20


def size_problems(
    tasks: Sequence[Task], max_tasks: int, budget_tokens: int | None, unread: Collection[str]
) -> list[Problem]:
    found: list[Problem] = []
    if not tasks and "tasks" not in unread:
        found.append(Problem(code="empty_plan", message="The plan has no tasks: give it at least one."))
    if len(tasks) > max_tasks:
        found.append(
            Problem(
                code="fan_out",
                message=f"The plan has {len(tasks):,} tasks and at most {max_tasks:,} are allowed: "
                "merge tasks or raise max_tasks.",
            )
        )
    asked = sum(task.budget.tokens or 0 for task in tasks if task.budget)
    if budget_tokens is not None and asked > budget_tokens:
        found.append(
            Problem(
                code="over_budget",
                message=f"The tasks' budgets add up to {asked:,} tokens and the run has {budget_tokens:,}: "
                "lower them or raise the tokens of the run.",
            )
        )
    return found


def task_problems(
    tasks: Sequence[Task], specs: Sequence[WorkerSpec], workers: Collection[str] | None, unread: Collection[str]
) -> list[Problem]:
    found: list[Problem] = []
    seen: set[str] = set()
    good = None if workers is None else {*workers, *(spec.name for spec in specs)}
    known = ", ".join(sorted(name for name in good or () if name)) or "none"
    for number, task in enumerate(tasks, 1):
        place = f"tasks[{number - 1}]"
        if place in unread:
            continue

        def add(
            code: ProblemCode, message: str, severity: Literal["error", "warning"] = "error", task: Task = task
        ) -> None:
            found.append(Problem(code=code, severity=severity, task=task.id or None, message=message))

        name = repr(task.id) if task.id else f"number {number}"
        if not TASK_ID.fullmatch(task.id) and f"{place}.id" not in unread:
            add("invalid_id", f"Task {name}: an id is a letter, then up to 39 letters, digits, '_' or '-'.")
        if task.id and task.id in seen:
            add("duplicate_id", f"Task {name} appears twice: ids must differ.")
        seen.add(task.id)
        if good is not None and task.worker not in good and f"{place}.worker" not in unread:
            add("unknown_worker", f"Task {name} names the worker {task.worker!r}; this team has: {known}.")
        if not task.instruction.strip():
            if f"{place}.instruction" not in unread:
                add("missing_instruction", f"Task {name} has no instruction: say what is to be done.")
        elif len(task.instruction.split()) < 3 or _POINTS_ELSEWHERE.search(task.instruction.lower()):
            add(
                "vague_instruction",
                f"Task {name}: {task.instruction.strip()[:60]!r} may not stand on its own; "
                "its worker sees only this task and the results it depends on.",
                "warning",
            )
        if not task.success_criterion.strip() and f"{place}.success_criterion" not in unread:
            add("missing_criterion", f"Task {name} has no success criterion: say how to tell that it is done.")
    return found


def edge_problems(tasks: Sequence[Task]) -> list[Problem]:
    ids = {task.id for task in tasks}
    found: list[Problem] = []
    for number, task in enumerate(tasks, 1):
        name = repr(task.id) if task.id else f"number {number}"
        for dependency in dict.fromkeys(task.depends_on):
            if dependency == task.id:
                found.append(
                    Problem(code="self_dependency", task=task.id or None, message=f"Task {name} depends on itself.")
                )
            elif dependency not in ids:
                found.append(
                    Problem(
                        code="unknown_dependency",
                        task=task.id or None,
                        message=f"Task {name} depends on {dependency!r}, which is not in the plan.",
                    )
                )
    for cycle in _cycles(tasks):
        path = " -> ".join([*cycle, cycle[0]])
        found.append(Problem(code="cycle", task=cycle[0], message=f"Tasks wait for each other: {path}."))
    return found


def _cycles(tasks: Sequence[Task]) -> list[list[str]]:
    """Cycles of two or more tasks, each by its path; one per back edge of a depth-first walk."""
    edges: dict[str, list[str]] = {}
    for task in tasks:  # a name that is used twice has the edges of both tasks
        edges.setdefault(task.id, []).extend(d for d in dict.fromkeys(task.depends_on) if d != task.id)
    state: dict[str, Literal["open", "closed"]] = {}
    cycles: list[list[str]] = []
    for root, first in edges.items():
        if root in state:
            continue
        path, walks = [root], [iter(first)]
        state[root] = "open"
        while walks:
            for dependency in walks[-1]:
                if dependency not in edges:
                    continue
                if dependency not in state:
                    state[dependency] = "open"
                    path.append(dependency)
                    walks.append(iter(edges[dependency]))
                    break
                if state[dependency] == "open":
                    cycles.append(path[path.index(dependency) :])
                    if len(cycles) == _MOST_CYCLES_NAMED:
                        return cycles
            else:
                state[path.pop()] = "closed"
                walks.pop()
    return cycles


def worker_problems(
    specs: Sequence[WorkerSpec], workers: Collection[str] | None, factory: FactoryLimits | None
) -> list[Problem]:
    found: list[Problem] = []

    def add(code: ProblemCode, spec: WorkerSpec, what: str) -> None:
        found.append(Problem(code=code, message=f"The plan defines the worker {spec.name!r}{what}"))

    seen: set[str] = set()
    for spec in specs:
        if factory is None:
            add("forbidden_tool", spec, ", but its team allows none made by a plan.")
            continue
        if not WORKER_NAME.fullmatch(spec.name):
            add("unknown_worker", spec, ": a name has letters, digits, '-', '_' and '.', at most 64.")
        if spec.name in seen or spec.name in (workers or ()):
            add("unknown_worker", spec, ", and there is one of that name: rename it.")
        seen.add(spec.name)
        if not spec.description.strip() and not spec.prompt.strip():
            add("missing_instruction", spec, " without a description or a prompt: say what it is for.")
        for tool in dict.fromkeys(name for name in spec.tools if name not in factory.tools):
            allowed = ", ".join(factory.tools) or "none"
            add("forbidden_tool", spec, f" with the tool {tool!r}; the team's factory allows: {allowed}.")
        if spec.tier is not None and spec.tier not in factory.tiers:
            allowed = ", ".join(factory.tiers)
            add("forbidden_tool", spec, f" of the tier {spec.tier!r}; the team's factory allows: {allowed}.")
    return found
