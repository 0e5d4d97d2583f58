"""The state of a run and the tasks to repeat -> the state in which they run again, and all else stays done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from chargehand.events.body import Data
from chargehand.record.recorded_state import RecordedState
from chargehand.text.plan_json import parse
from chargehand.values.key import TaskPath, within
from chargehand.values.order import Restart

# Calls whose answers are kept when tasks are reopened.
_PLANNING = ("plan", "route", "extend")


def reopen_tasks(state: RecordedState, tasks: Iterable[str], restarts: Iterable[str] = ()) -> None:
    """Let tasks run again and continue their attempt counts; of a split task, only the parts that are not done.

    A team continues its attempt with the tasks that are not done, unless a person restarted its task or a
    dependency of the task changes. The supervisor's own failed calls are made again as well, and the answer is
    judged and written again. `restarts` are the orders that this carries out.
    """
    again, restarts = tuple(tasks), tuple(restarts)
    ordered = {state.restarts[key].task for key in restarts if key in state.restarts}
    _reopen_in_plan(state, "", state.plan, again, whole=_carry_out(state, restarts), ordered=ordered)
    state.marks = Counter({mark: times for mark, times in state.marks.items() if mark[0] == "extension"})


def _reopen_in_plan(
    state: RecordedState,
    scope: str,
    plan: Data | None,
    tasks: Collection[str],
    *,
    whole: Collection[str] = (),
    ordered: Collection[str] = (),
) -> None:
    """Reopen tasks of the run's own plan, or of that of the team that does the attempt `scope`."""
    rests_on = {task.id: task.depends_on for task in parse(plan).tasks} if plan else {}
    for id in tasks:
        path = within(scope, id) if scope else id
        state.close_questions(path)
        changes = id in ordered or any(each in tasks for each in rests_on.get(id, ()))
        if changes or path in state.splits or not _continue_team(state, path):
            _reopen_task(state, path, [] if id in whole else _parts_again(state, path))
    _reopen_supervisor(state, scope)


def _reopen_task(state: RecordedState, task: str, parts: Iterable[str]) -> None:
    state.ended.pop(task, None)
    state.begun.pop(task, None)
    for id in tuple(parts) or (task, *(part for part in state.attempts if part.startswith(f"{task}.s."))):
        state.ended.pop(id, None)
        state.begun.pop(id, None)
        state.reopened[id] = state.attempts.get(id, 0)


def _continue_team(state: RecordedState, task: str) -> bool:
    """Let the team that made the last attempt at a task continue it; False without a team or open tasks."""
    scope = _last_attempt(state, task)
    lacking = _lacking(state, scope)
    if not lacking:
        return False
    plan = state.approved_within[scope].plan
    # Tasks that were added are not in the plan.
    again = dict.fromkeys((*parse(plan).with_dependents(lacking), *lacking))
    state.ended.pop(task, None)
    state.attempted.pop(scope, None)
    for key in (task, scope):
        state.begun.pop(key, None)
    # Its time begins again.
    state.decisions.pop(f"{scope}/@start", None)
    _reopen_in_plan(state, scope, plan, again)
    return True


def _last_attempt(state: RecordedState, task: str) -> str:
    return f"{task}/{state.attempts.get(task, 0)}"


def _lacking(state: RecordedState, scope: str) -> list[str]:
    """The tasks of an attempt's team that are not done, or that were done by a team with gaps."""
    if scope not in state.approved_within:
        return []
    return [
        path.removeprefix(f"{scope}/").removeprefix(".")
        for path, outcome in state.ended.items()
        if TaskPath.parse(path).within == scope
        and ".s." not in path.removeprefix(scope)
        and (not outcome.ok or (outcome.partial and _lacking(state, _last_attempt(state, path))))
    ]


def _reopen_supervisor(state: RecordedState, scope: str) -> None:
    """Let the answer of the run, or of the team that does an attempt, be judged and written again."""
    own = f"{scope}/@" if scope else "@"
    extending = f"{own}extend/"
    planning = tuple(f"{own}{each}" for each in _PLANNING)
    for key, value in list(state.decisions.items()):
        is_worker_out = key.startswith(f"{own}worker/") and key.endswith("/out")
        if key.startswith(own) and (key.endswith("/deadline") or value is False or is_worker_out):
            # What failed is tried again because something changed: also a worker that was taken out.
            del state.decisions[key]
        elif key.startswith(extending) and key.endswith("/gaps"):
            # Tasks that were added for a draft exist before the answer that is written now.
            state.decisions[f"{key.removesuffix('gaps')}whether"] = state.decisions.pop(key)
    for key, returned in list(state.committed.items()):
        if key.startswith(own) and (not key.startswith(planning) or returned.result.get("error")):
            state.unused.append(returned)
            del state.committed[key]


def _carry_out(state: RecordedState, restarts: Iterable[str]) -> set[str]:
    """The tasks with a new instruction or model: whatever was planned in their place is not used again."""
    changed: set[str] = set()
    for key in restarts:
        if (restart := state.restarts.pop(key, None)) is None:
            continue
        before = state.restarted.get(restart.task, restart)
        instruction, model = restart.instruction or before.instruction, restart.model or before.model
        state.restarted[restart.task] = Restart(restart.task, instruction, model)
        if restart.instruction or restart.model:
            changed.add(restart.task)
    return changed


def _parts_again(state: RecordedState, task: str) -> list[str]:
    """The parts of a split task that are not done, and those that depend on them; none when all are done."""
    found: list[str] = []
    for part in parse(state.splits[task]).in_order() if task in state.splits else ():
        id = f"{task}.s.{part.id}"
        rests_on = {f"{task}.s.{dependency}" for dependency in part.depends_on}
        if id in state.ended and (not state.ended[id].ok or rests_on.intersection(found)):
            found.append(id)
    return found
