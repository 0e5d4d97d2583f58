"""Events -> which tasks a run has and how each ended: what a verdict on an order depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from chargehand.values.event import EventBody, Extended, PlanApproved, PlanDrafted, TaskEnded
from chargehand.values.key import TaskPath, within
from chargehand.values.order import Order, Verdict

if TYPE_CHECKING:
    from chargehand.record.replay import Replay

_MOST_NAMED = 12


class Judgement(NamedTuple):
    """The verdict on an order, and why it is not accepted."""

    verdict: Verdict
    reason: str = ""


ACCEPTED = Judgement("accepted")


class TaskList:
    """The tasks of a run by path, parts and those of nested teams included. Only `apply` writes it."""

    def __init__(self) -> None:
        # Path -> the status it ended with; None while it has not.
        self._tasks: dict[str, str | None] = {}

    @staticmethod
    def of(state: Replay) -> TaskList:
        tasks = TaskList()
        tasks._add(state.plan or {})
        for whole, plan in state.splits.items():
            tasks._add_parts(whole, plan)
        for scope, approved in state.approved_within.items():
            tasks._add(approved.plan, scope)
        for path, outcome in state.ended.items():
            tasks._tasks[path] = outcome.status
        return tasks

    def apply(self, body: EventBody, task: str | None) -> None:
        match body:
            case PlanApproved(plan=plan, within=scope):
                self._add(plan, scope or "")
            case Extended(tasks=tasks, within=scope):
                self._add({"tasks": tasks}, scope or "")
            case PlanDrafted(plan=dict(plan), source="split") if task is not None:
                self._add_parts(task, plan)
            case TaskEnded(outcome=outcome):
                self._tasks[task or outcome["task"]] = outcome["status"]
            case _:
                pass

    def __contains__(self, task: str) -> bool:
        return task in self._tasks

    def ended(self, task: str) -> str | None:
        """The status a task ended with, or the task that it is nested in or a part of; None while it may have calls."""
        return next((self._tasks[each] for each in TaskPath.parse(task).wholes if self._tasks.get(each)), None)

    def judge(self, order: Order, stopped: Mapping[str, str]) -> Judgement:
        """The verdict on an order about a task, as far as it depends on the tasks alone."""
        task = order.task
        if order.order != "stop":
            return ACCEPTED
        if task is None:
            return Judgement("refused", f"{order.order} needs a task: name one of {self._names()}.")
        if task not in self._tasks:
            near = get_close_matches(task, self._tasks, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It has: {self._names()}."
            return Judgement("refused", f"The run has no task {task!r}. {hint}")
        if (status := self.ended(task)) is not None:
            return Judgement("too_late", f"{task} has ended ({status}): there is nothing to stop.")
        if task in stopped:
            return Judgement("too_late", f"{task} is stopped already.")
        return ACCEPTED

    def _names(self) -> str:
        whole = [task for task in self._tasks if "/" not in task and ".s." not in task]
        more = f" and {len(whole) - _MOST_NAMED:,} more" if len(whole) > _MOST_NAMED else ""
        return ", ".join(whole[:_MOST_NAMED]) + more if whole else "no tasks yet"

    def _add(self, plan: Mapping[str, Any], scope: str = "") -> None:
        self._add_paths(within(scope, task["id"]) if scope else task["id"] for task in plan.get("tasks", ()))

    def _add_parts(self, whole: str, plan: Mapping[str, Any]) -> None:
        self._add_paths(f"{whole}.s.{task['id']}" for task in plan.get("tasks", ()))

    def _add_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._tasks.setdefault(path, None)
