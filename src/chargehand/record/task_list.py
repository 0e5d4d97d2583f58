"""Events -> the tasks of a run and how each ended. Verdicts on orders depend on it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from chargehand.errors import LimitName, lacked_limit
from chargehand.events import (
    EventBody,
    Extended,
    PlanApproved,
    PlanDrafted,
    QuestionAnswered,
    QuestionAsked,
    TaskEnded,
)
from chargehand.values.key import Key, TaskPath, within
from chargehand.values.order import Order, Verdict
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.record.replay import Replay

_MOST_NAMED = 12


class Judgement(NamedTuple):
    """The verdict on an order, and why it is not accepted."""

    verdict: Verdict
    reason: str = ""


ACCEPTED = Judgement("accepted")


class TaskList:
    """The tasks of a run by path, including parts and tasks of nested teams. Only `apply` writes it."""

    def __init__(self, run: str) -> None:
        self._run = run
        # Path -> the status it ended with; None while it has not.
        self._tasks: dict[str, str | None] = {}
        # Path -> the worker that the plan names, and the tasks it depends on.
        self._workers: dict[str, str] = {}
        self._needs: dict[str, list[str]] = {}
        # The tasks that ended because a limit of the run was reached -> the limit.
        self._short: dict[str, LimitName] = {}
        # Key of an open question -> its id.
        self._questions: dict[str, str] = {}
        # The status of a run that has ended, with which it was read.
        self._ended_as = ""

    @staticmethod
    def of(state: Replay) -> TaskList:
        tasks = TaskList(state.run)
        tasks._ended_as = state.status if state.status in FINISHED else ""
        tasks._questions = {key: asked["id"] for key, asked in state.open_questions().items()}
        tasks._add(state.plan or {})
        for whole, plan in state.splits.items():
            tasks._add_parts(whole, plan)
        for scope, approved in state.approved_within.items():
            tasks._add(approved.plan, scope)
        for path, outcome in state.ended.items():
            tasks._end(path, outcome.to_json())
        for restart in state.restarts.values():
            tasks.reopen(restart.task)
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
                self._end(task or outcome["task"], outcome)
            case QuestionAsked(key=key, question=question):
                self._questions[key] = question["id"]
            case QuestionAnswered(key=key):
                self._questions.pop(key, None)
            case _:
                pass

    def __contains__(self, task: str) -> bool:
        return task in self._tasks

    def _end(self, path: str, outcome: Mapping[str, Any]) -> None:
        self._tasks[path] = outcome["status"]
        error: Mapping[str, Any] = outcome.get("error") or {}
        if error and (limit := lacked_limit(error["kind"], error["message"])) is not None:
            self._short[path] = limit

    def short_of(self, limits: Container[str | None]) -> list[str]:
        """The whole tasks that are not done because they, or a task within them, reached one of these limits."""
        short = (path for path in self._tasks if self._short.get(path) in limits)
        wholes = dict.fromkeys(TaskPath.parse(path).whole for path in short)
        return [whole for whole in wholes if self._tasks.get(whole) not in (None, "done")]

    def reopen(self, task: str) -> None:
        """Mark a task, and the tasks that depend on it, as not ended: the task is restarted."""
        again = self.with_dependents([task])
        for path in self._tasks:
            if TaskPath.parse(path).whole in again:
                self._tasks[path] = None
                self._short.pop(path, None)

    def with_dependents(self, tasks: Iterable[str]) -> set[str]:
        """The whole tasks that these are or belong to, and all tasks that depend on them."""
        found = {TaskPath.parse(task).whole for task in tasks}
        while more := [id for id, needs in self._needs.items() if id not in found and found.intersection(needs)]:
            found.update(more)
        return found

    def status_at_end(self, task: str) -> str | None:
        """The final status of a task, or of a task that it is nested in or a part of; None while it may have calls."""
        return next((self._tasks[each] for each in TaskPath.parse(task).wholes if self._tasks.get(each)), None)

    def judge(self, order: Order, stopped: Mapping[str, str], team: Mapping[str, Any]) -> Judgement:
        """The verdict on an order about a task, as far as it depends on the tasks and the team alone."""
        task = order.task
        if order.order not in ("stop", "restart", "tell"):
            return ACCEPTED
        if not self._tasks:
            if self._ended_as:
                why = f"ended ({self._ended_as}) without a plan that is approved, so it has no tasks"
            else:
                why = "has no plan that is approved, so it has no tasks yet"
            return Judgement("refused", f"{self._run} {why}.")
        if task is None:
            return Judgement("refused", f"{order.order} needs a task: name one of {self._names()}.")
        if task not in self._tasks:
            from difflib import get_close_matches

            near = get_close_matches(task, self._tasks, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It has: {self._names()}."
            return Judgement("refused", f"{self._run} has no task {task!r}. {hint}")
        if order.order == "restart":
            return self._judge_restart(task, order, team)
        again = f"Restart {TaskPath.parse(task).whole} to run it again."
        if (status := self.status_at_end(task)) is not None:
            what = "there is nothing to stop" if order.order == "stop" else "its worker makes no more calls"
            return Judgement("too_late", f"{task} has ended ({status}): {what}. {again}")
        if task in stopped:
            return Judgement("too_late", f"{task} is stopped already. {again}")
        return self._judge_words(task, order, team) if order.order == "tell" else ACCEPTED

    def _judge_restart(self, task: str, order: Order, team: Mapping[str, Any]) -> Judgement:
        whole = TaskPath.parse(task).whole
        if task != whole and (order.text or order.model):
            why = f"a new instruction or model is for a whole task. Restart {whole} with it"
            return Judgement("refused", f"{task} is within {whole}, and {why}.")
        worker = self._worker(task, team)
        if order.model is not None and worker.get("kind", "agent") != "agent":
            return Judgement("refused", f"{worker['name']}, which does {task}, has no model of its own: leave it out.")
        return ACCEPTED

    def _judge_words(self, task: str, order: Order, team: Mapping[str, Any]) -> Judgement:
        if not order.text.strip():
            return Judgement("refused", f"There are no words for {task}: give some, such as 'Use euros.'")
        worker = self._worker(task, team)
        kind = worker.get("kind", "agent")
        if kind == "delegate":
            inner = [path for path in self._tasks if TaskPath.parse(path).within.rpartition("/")[0] == task]
            hint = f"name a task of it, such as {inner[-1]}" if inner else "name a task of it once it has a plan"
            return Judgement("refused", f"{task} is done by the team {worker['name']}: {hint}.")
        if kind != "agent":
            asked = [id for key, id in self._questions.items() if Key.parse(key).task == task]
            hint = f"answer its question {asked[0]}" if asked else "stop the task instead"
            return Judgement("refused", f"{worker['name']}, the {kind} that does {task}, does not read words: {hint}.")
        return ACCEPTED

    def _worker(self, task: str, team: Mapping[str, Any]) -> Mapping[str, Any]:
        """The worker that the plan names for a task, from its team; empty for a pool or a worker made by the plan."""
        for outer, _ in reversed(TaskPath.parse(task).around):
            team = self._worker_named(self._workers.get(outer), team).get("team") or {}
        return self._worker_named(self._workers.get(task), team)

    @staticmethod
    def _worker_named(name: str | None, team: Mapping[str, Any]) -> Mapping[str, Any]:
        none: Mapping[str, Any] = {}
        return next((worker for worker in team.get("workers", ()) if worker["name"] == name), none)

    def _names(self) -> str:
        whole = [task for task in self._tasks if "/" not in task and ".s." not in task]
        more = f" and {len(whole) - _MOST_NAMED:,} more" if len(whole) > _MOST_NAMED else ""
        return ", ".join(whole[:_MOST_NAMED]) + more

    def _add(self, plan: Mapping[str, Any], scope: str = "") -> None:
        self._add_paths(plan, lambda id: within(scope, id) if scope else id)

    def _add_parts(self, whole: str, plan: Mapping[str, Any]) -> None:
        self._add_paths(plan, lambda id: f"{whole}.s.{id}")

    def _add_paths(self, plan: Mapping[str, Any], path_of: Callable[[str], str]) -> None:
        for task in plan.get("tasks", ()):
            path = path_of(task["id"])
            self._tasks.setdefault(path, None)
            self._workers[path] = task["worker"]
            self._needs[path] = task.get("depends_on") or []
