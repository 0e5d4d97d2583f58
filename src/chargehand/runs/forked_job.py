"""The record of a run and the changes -> the job of a new run that begins at the first difference."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chargehand.engine.engine_session import Fork
from chargehand.errors import UsageError
from chargehand.events import Reused, ToolCalled
from chargehand.record.copied_events import Kept, copy_events, root_task, round_of
from chargehand.record.private_files import private_folder
from chargehand.record.replay import Replay
from chargehand.record.storage_errors import storage
from chargehand.runs.make_steps import RunJob
from chargehand.settings import Settings, found_from
from chargehand.text.plan_json import parse
from chargehand.values.plan import Plan

if TYPE_CHECKING:
    from chargehand.record.home import Home
    from chargehand.record.run_source import RunSource

_MOST_NAMED = 20


class Different(NamedTuple):
    """What a fork does differently: it repeats a task and its dependents, or it has another model or another plan."""

    at: str | None = None
    model: str | None = None
    plan: Plan | None = None

    def check(self) -> None:
        """Raise UsageError when it would be the same run again."""
        if self == (None, None, None):
            raise UsageError(
                "Nothing would differ: name the task to do again with all that depend on it (`at`), another `model` or "
                "another `plan`."
            )


def fork_job(source: RunSource, job: RunJob, state: Replay, different: Different, now: Settings) -> RunJob:
    """`job` is the job that would continue the run itself. It has everything except the differences."""
    kept = choose_kept(state, different)
    settings = job.settings
    if different.model is not None:
        # A provider of the new model may have been set up since.
        providers = {**now.providers, **settings.providers}
        model = found_from(different.model, Path.cwd())
        settings = settings.model_copy(update={"model": model, "providers": providers})
    events = tuple(copy_events(source.events(state.run), state, kept))
    return job._replace(
        settings=settings,
        plan=different.plan or job.plan,
        prior=None,
        reopen=None,
        fork=Fork(state.run, different.at, events),
    )


def choose_kept(state: Replay, different: Different) -> Kept:
    """The tasks that stay as they are: they do not differ, and they depend on no task that does."""
    before = parse(state.plan) if state.plan else Plan()
    plan = different.plan or before
    at = {different.at} if different.at is not None else set[str]()
    if unknown := at - {task.id for task in plan.tasks}:
        raise UsageError(_unknown_task(state.run, unknown.pop(), plan))
    if different.plan is not None:
        new = at | _tasks_changed(before, different.plan)
    else:
        new = at or {task.id for task in plan.tasks}
    again = {*plan.with_dependents(new), *(id for id in state.reopened if id not in state.ended)}
    # Added tasks depend on the outcomes of the earlier tasks: if one of these is done again, tasks are added again.
    rounds = 0 if different.plan is not None else min((round_of(id) for id in again), default=0)
    tasks = frozenset(task.id for task in plan.tasks if task.id not in again and round_of(task.id) <= rounds)
    return Kept(tasks, different.plan is None and state.approved is not None, rounds)


def _tasks_changed(before: Plan, plan: Plan) -> set[str]:
    """The tasks of a plan that are new, or are not as they were."""
    tasks, workers = {task.id: task for task in before.tasks}, {each.name: each for each in before.workers}
    made = {each.name for each in plan.workers if workers.get(each.name) != each}
    return {task.id for task in plan.tasks if tasks.get(task.id) != task or task.worker in made}


def _unknown_task(run: str, task: str, plan: Plan) -> str:
    ids = [each.id for each in plan.tasks]
    if not ids:
        why = f"{run} has no plan that is approved, so there is no task {task} to begin at"
        return f"{why}. Fork it with another model or plan, or approve its plan if it waits for that."
    if (root := root_task(task)) in ids:
        return f"{task} is within the task {root}, and a fork begins with a whole task: begin at {root}."
    more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
    return f"The plan has no task {task!r}. Its tasks are {', '.join(ids[:_MOST_NAMED])}{more}."


def copy_documents(home: Home, job: RunJob) -> None:
    """Put the documents that kept tasks wrote into the folder of the fork, where their results say they are."""
    fork = job.fork
    assert fork is not None
    reused = {copied.body.key for copied in fork.events if isinstance(copied.body, Reused)}
    wanted = {
        event.body.arguments.get("name")
        for event in home.events(fork.run)
        if isinstance(event.body, ToolCalled) and event.body.tool == "write_document" and event.body.key in reused
    }
    found = [path for path in home.documents(fork.run) if path.name in wanted] if wanted else []
    if not found:
        return
    folder = home.folder(job.run) / "documents"
    with storage(folder):
        private_folder(folder)
        for path in found:
            shutil.copy2(path, folder / path.name)
