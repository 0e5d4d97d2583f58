"""Plan: the graph of tasks that a supervisor makes, with its order, its strategy and its critical path.

tasks  a   b<-a   c<-a   d<-b,c        strategy hybrid, depth 3, widest level 2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from chargehand.values.base import JSON, Field, Value, shorten
from chargehand.values.default_limits import DEFAULT_TASKS
from chargehand.values.plan.find_problems import edge_problems, size_problems, task_problems, worker_problems
from chargehand.values.plan.problem import Problem
from chargehand.values.plan.task import FactoryLimits, SynthesisSpec, Task, Text, WorkerSpec, without_defaults

Strategy = Literal["single", "sequential", "parallel", "hybrid"]
# Tasks that its representation names.
_MOST_SHOWN = 10


class Plan(Value):
    """The tasks of a request, which of them depend on which, and how their results become an answer."""

    goal: Text = ""
    tasks: tuple[Task, ...] = ()
    synthesis: SynthesisSpec = Field(default_factory=SynthesisSpec)
    team: str | None = None
    workers: tuple[WorkerSpec, ...] = ()

    def __repr__(self) -> str:
        ids = [task.id for task in self.tasks[:_MOST_SHOWN]] + ["..."] * (len(self.tasks) > _MOST_SHOWN)
        count = "1 task" if len(self.tasks) == 1 else f"{len(self.tasks):,} tasks"
        return f"<Plan {shorten(self.goal)!r}: {count}, {self.strategy}: {', '.join(ids)}>"

    def to_json(self) -> dict[str, JSON]:
        data = super().to_json()
        data["tasks"] = [without_defaults(task) for task in data["tasks"]]
        for name in ("team", "workers"):
            if not data[name]:
                del data[name]
        return data

    def with_tasks(self, tasks: Iterable[Task]) -> Plan:
        """The plan with these tasks added at its end."""
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
        """The tasks, each after those it depends on, otherwise in plan order. Cycles are left out."""
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

    def with_dependents(self, tasks: Collection[str]) -> tuple[str, ...]:
        """The tasks and all tasks that depend on them, directly or not, in plan order."""
        found = set(tasks)
        for task in self.in_order():
            if found.intersection(task.depends_on):
                found.add(task.id)
        return tuple(task.id for task in self.tasks if task.id in found)

    def sinks(self) -> tuple[str, ...]:
        """The tasks nothing depends on."""
        has_dependents = self.dependents()
        return tuple(task.id for task in self.tasks if task.id not in has_dependents)

    def advice(self) -> tuple[str, ...]:
        """A sentence for a plan that one agent could do as well."""
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
        max_tasks: int = DEFAULT_TASKS,
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
            *size_problems(self.tasks, max_tasks, budget_tokens, unread),
            *task_problems(self.tasks, self.workers, workers, unread),
            *edge_problems(self.tasks),
            *worker_problems(self.workers, workers, factory),
        ]
