"""The record of a run that has not ended -> the tasks that have not ended either, with status and cost so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from chargehand.record.run_source import RunSource
    from chargehand.trace import TaskState


class OpenTask(NamedTuple):
    """A task of the plan that has not ended."""

    id: str
    worker: str
    status: str
    tries: int
    # None before its first attempt.
    seconds: float | None
    tokens: int
    # What it waits for, or what it was asked.
    doing: str


class OpenTasks(NamedTuple):
    """The open tasks of a run in the order of the plan, and what the calls took that belong to no row of the table."""

    tasks: tuple[OpenTask, ...]
    rest_s: float


def read_open_tasks(source: RunSource, report: dict[str, Any], now: float) -> OpenTasks:
    """`report` is the report of the run so far. Before a plan is approved it has no tasks."""
    from chargehand.trace import fold

    view = fold(source.events(report["run"]))
    is_running = report["status"] == "running"
    # Of a run that no process has, calls in flight count until the last event.
    until = view.counted_until(now) if is_running else view.last_event
    ended = {outcome["task"] for outcome in report["outcomes"]}
    planned = [each["id"] for each in (report["plan"] or {"tasks": ()})["tasks"]]
    tasks = [view.tasks[id] for id in planned if id in view.tasks and id not in ended]
    rest = sum(call.seconds for call in view.calls)
    is_over = True if source.owner(report["run"]) is None else None
    return OpenTasks(
        tuple(
            OpenTask(
                task.id,
                task.worker,
                view.status_of(task, is_over=is_over),
                task.tries,
                None if task.started is None else task.worked_seconds(until),
                task.tokens,
                _doing(task),
            )
            for task in tasks
        ),
        rest,
    )


def _doing(task: TaskState) -> str:
    if task.status == "waiting" and task.depends_on:
        return f"after {', '.join(task.depends_on)}"
    return task.instruction
