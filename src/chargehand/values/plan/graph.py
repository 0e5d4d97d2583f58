"""Task and Plan: the graph a supervisor makes, all its problems at once, its strategy and its critical path.

tasks  a   b<-a   c<-a   d<-b,c        strategy hybrid, depth 3, widest level 2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from chargehand.values.base import JSON, Value
from chargehand.values.budget import Budget
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan.problem import Problem, ProblemCode

Tier = Literal["small", "medium", "large"]
Strategy = Literal["single", "sequential", "parallel", "hybrid"]

TASK_ID = lazy_regex(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
WORKER_NAME = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TIERS: tuple[Tier, ...] = get_args(Tier)
# Among the names of workers: a task without one is good, a router gives it one.
UNASSIGNED = ""
# Words that point outside of the task: its worker sees nothing there.
# In a text in small letters.
_POINTS_ELSEWHERE = lazy_regex(
    r"\b(as (above|before|discussed|mentioned)|see above|the above|same as (t\d+|before|above)|etc\.?|and so on|"
    r"do (it|this|that)|whatever)\b"
)
_MOST_CYCLES_NAMED = 20
# How often an attempt is made side by side at the most.
MOST_MEMBERS = 5


def _none_is_empty(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_none_is_empty)]


class Task(Value):
    """One self-contained piece of work for one worker. Missing words are empty here and problems in `problems`."""

    id: Text = ""
    worker: Text = ""
    instruction: Text = ""
    context: JSON = None
    success_criterion: Text = ""
    depends_on: tuple[str, ...] = ()
    on_dependency_failure: Literal["skip", "proceed"] = "skip"
    budget: Budget | None = None
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    tier: Tier | None = None
    best_of: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | None = None

    def to_json(self) -> dict[str, JSON]:
        return _without_defaults(super().to_json())


def _without_defaults(task: dict[str, JSON]) -> dict[str, JSON]:
    """A task as in the contract: the optional fields only where they say something."""
    for name in ("budget", "timeout_s", "tier", "best_of"):
        if task[name] is None:
            del task[name]
    if task["on_dependency_failure"] == "skip":
        del task["on_dependency_failure"]
    return task


class SynthesisSpec(Value):
    """How the outcomes become one answer."""

    mode: Literal["merge", "select", "reduce"] = "merge"
    instruction: Text = ""


class WorkerSpec(Value):
    """A worker the plan itself defines; only for teams with a factory."""

    name: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    tier: Tier | None = None


class FactoryLimits(Value):
    """What workers that a plan defines may have: never another tool, never another tier."""

    tools: tuple[str, ...] = ()
    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)] = TIERS


class Plan(Value):
    goal: Text = ""
    tasks: tuple[Task, ...] = ()
    synthesis: SynthesisSpec = Field(default_factory=SynthesisSpec)
    team: str | None = None
    workers: tuple[WorkerSpec, ...] = ()

    def to_json(self) -> dict[str, JSON]:
        data = super().to_json()
        data["tasks"] = [_without_defaults(task) for task in data["tasks"]]
        for name in ("team", "workers"):
            if not data[name]:
                del data[name]
        return data

    def with_tasks(self, tasks: Iterable[Task]) -> Plan:
        """The plan with these added at its end."""
        return self.model_copy(update={"tasks": (*self.tasks, *tasks)})

    @property
    def strategy(self) -> Strategy:
        """single, a pure chain, no edges at all, or a mixture."""
        if len(self.tasks) <= 1:
            return "single"
        if not any(task.depends_on for task in self.tasks):
            return "parallel"
        return "sequential" if self.depth == len(self.tasks) else "hybrid"

    @property
    def depth(self) -> int:
        """The number of tasks on the longest chain."""
        return int(self.critical_path(dict.fromkeys((task.id for task in self.tasks), 1.0))[0])

    def critical_path(self, seconds: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
        """The longest chain by `seconds` per task: its length and its tasks. For a valid plan."""
        ends: dict[str, tuple[float, str | None]] = {}
        for task in self.in_order():
            longest = max(((ends[dep][0], dep) for dep in task.depends_on if dep in ends), default=(0.0, None))
            ends[task.id] = (longest[0] + seconds.get(task.id, 0.0), longest[1])
        if not ends:
            return 0.0, ()
        at: str | None = max(ends, key=lambda id: ends[id][0])
        total, path = ends[at][0], list[str]()
        while at is not None:
            path.append(at)
            at = ends[at][1]
        return total, tuple(reversed(path))

    def in_order(self) -> list[Task]:
        """The tasks so that each comes after those it depends on; plan order otherwise. Cycles are left out."""
        waiting = {task.id: len(set(task.depends_on)) for task in self.tasks}
        dependents = self.dependents()
        by_id = {task.id: task for task in self.tasks}
        ready = [task.id for task in self.tasks if not waiting[task.id]]
        order: list[Task] = []
        for id in ready:  # grows while it is walked
            order.append(by_id[id])
            for dependent in dependents.get(id, ()):
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    ready.append(dependent)
        return order

    def dependents(self) -> dict[str, list[str]]:
        """Task id -> the ids of tasks that directly depend on it, in plan order."""
        found: dict[str, list[str]] = {}
        for task in self.tasks:
            for dependency in dict.fromkeys(task.depends_on):
                found.setdefault(dependency, []).append(task.id)
        return found

    def sinks(self) -> tuple[str, ...]:
        """The tasks nothing depends on."""
        has_dependents = self.dependents()
        return tuple(task.id for task in self.tasks if task.id not in has_dependents)

    def advice(self) -> tuple[str, ...]:
        """When a team is more than the job needs, said plainly."""
        if self.strategy == "single":
            return ("One task: a single agent would do; synthesis is skipped.",)
        if self.strategy == "sequential":
            return (
                f"A pure chain of {len(self.tasks)} tasks: nothing runs in parallel, "
                "one agent with the same tools would likely be as fast and cheaper.",
            )
        return ()

    def problems(
        self,
        workers: Collection[str] | None,
        *,
        max_tasks: int = 1000,
        budget_tokens: int | None = None,
        unread: Collection[str] = (),
        factory: FactoryLimits | None = None,
    ) -> list[Problem]:
        """Everything wrong with the plan, found without spending anything.

        Without `workers` every worker is good; with UNASSIGNED among them a task may have none. Without `factory` the
        plan may define no workers. `unread` are the places of a draft, such as `tasks[0].id`, that could
        not be read: that they are empty here is not a problem of its own.
        """
        return [
            *self._size_problems(max_tasks, budget_tokens, unread),
            *self._task_problems(workers, unread),
            *self._edge_problems(),
            *self._worker_spec_problems(workers, factory),
        ]

    def _size_problems(self, max_tasks: int, budget_tokens: int | None, unread: Collection[str]) -> list[Problem]:
        found: list[Problem] = []
        if not self.tasks and "tasks" not in unread:
            found.append(Problem(code="empty_plan", message="The plan has no tasks: give it at least one."))
        if len(self.tasks) > max_tasks:
            found.append(
                Problem(
                    code="fan_out",
                    message=f"The plan has {len(self.tasks):,} tasks and at most {max_tasks:,} are allowed: "
                    "merge tasks or raise --max-tasks.",
                )
            )
        asked = sum(task.budget.tokens or 0 for task in self.tasks if task.budget)
        if budget_tokens is not None and asked > budget_tokens:
            found.append(
                Problem(
                    code="over_budget",
                    message=f"The tasks' budgets add up to {asked:,} tokens and the run has {budget_tokens:,}: "
                    "lower them or raise --tokens.",
                )
            )
        return found

    def _task_problems(self, workers: Collection[str] | None, unread: Collection[str]) -> list[Problem]:
        found: list[Problem] = []
        seen: set[str] = set()
        good = None if workers is None else {*workers, *(spec.name for spec in self.workers)}
        known = ", ".join(sorted(name for name in good or () if name)) or "none"
        for number, task in enumerate(self.tasks, 1):
            place = f"tasks[{number - 1}]"
            if place in unread:
                continue

            def add(
                code: ProblemCode, message: str, severity: Literal["error", "warning"] = "error", task: Task = task
            ) -> None:
                found.append(Problem(code=code, severity=severity, task=task.id or None, message=message))

            name = task.id or f"number {number}"
            if not TASK_ID.fullmatch(task.id) and f"{place}.id" not in unread:
                add("invalid_id", f"Task {name!r}: an id is a letter, then up to 39 letters, digits, '_' or '-'.")
            if task.id and task.id in seen:
                add("duplicate_id", f"Task {name!r} appears twice: ids must differ.")
            seen.add(task.id)
            if good is not None and task.worker not in good and f"{place}.worker" not in unread:
                add("unknown_worker", f"Task {name!r} names the worker {task.worker!r}; this team has: {known}.")
            if not task.instruction.strip():
                if f"{place}.instruction" not in unread:
                    add("missing_instruction", f"Task {name!r} has no instruction: say what is to be done.")
            elif len(task.instruction.split()) < 3 or _POINTS_ELSEWHERE.search(task.instruction.lower()):
                add(
                    "vague_instruction",
                    f"Task {name!r}: {task.instruction.strip()[:60]!r} may not stand on its own; "
                    "its worker sees only this task and the results it depends on.",
                    "warning",
                )
            if not task.success_criterion.strip() and f"{place}.success_criterion" not in unread:
                add("missing_criterion", f"Task {name!r} has no success criterion: say how to tell that it is done.")
        return found

    def _edge_problems(self) -> list[Problem]:
        ids = {task.id for task in self.tasks}
        found: list[Problem] = []
        for number, task in enumerate(self.tasks, 1):
            name = task.id or f"number {number}"
            for dependency in dict.fromkeys(task.depends_on):
                if dependency == task.id:
                    found.append(
                        Problem(
                            code="self_dependency", task=task.id or None, message=f"Task {name!r} depends on itself."
                        )
                    )
                elif dependency not in ids:
                    found.append(
                        Problem(
                            code="unknown_dependency",
                            task=task.id or None,
                            message=f"Task {name!r} depends on {dependency!r}, which is not in the plan.",
                        )
                    )
        for cycle in self._cycles():
            path = " -> ".join([*cycle, cycle[0]])
            found.append(Problem(code="cycle", task=cycle[0], message=f"Tasks wait for each other: {path}."))
        return found

    def _cycles(self) -> list[list[str]]:
        """Cycles of two or more tasks, each by its path; one per back edge of a depth-first walk."""
        edges: dict[str, list[str]] = {}
        for task in self.tasks:  # a name used twice has the edges of both
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

    def _worker_spec_problems(self, workers: Collection[str] | None, factory: FactoryLimits | None) -> list[Problem]:
        found: list[Problem] = []

        def add(code: ProblemCode, spec: WorkerSpec, what: str) -> None:
            found.append(Problem(code=code, message=f"The plan defines the worker {spec.name!r}{what}"))

        seen: set[str] = set()
        for spec in self.workers:
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
