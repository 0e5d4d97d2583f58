"""The record of a run that stopped, and what is added to it -> the job that continues it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import to_json

from chargehand.engine.engine_session import Prior
from chargehand.engine.judge_orders import missing_limits
from chargehand.errors import InvalidTeam, LimitName, RunNotFound, UsageError
from chargehand.events.body import Data
from chargehand.models import MADE_IN_PYTHON
from chargehand.record.mailbox import UnreadableOrder
from chargehand.record.replay import Replay
from chargehand.record.storage_errors import damage_error
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.make_steps import RunJob
from chargehand.runs.report_from_record import final_report
from chargehand.settings import OF_TEAM, Settings, check_endpoints
from chargehand.steps.run_steps import workers_stop_at
from chargehand.team import Team
from chargehand.team.team_tools import stored_tools
from chargehand.text.plan_json import parse
from chargehand.trace.number_text import money
from chargehand.trace.ways_on import budgets_of, is_too_small, read_kept, read_need, ways_on
from chargehand.values.key import PLAN_QUESTION, TaskPath
from chargehand.values.outcome import Fault, Outcome
from chargehand.values.report import Report
from chargehand.values.request import SINGLE_CALL, Request
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.record.mailbox import Mailbox
    from chargehand.record.run_source import RunSource


class Added(NamedTuple):
    """What is added to the limits of a run, and whether its failed tasks are tried again."""

    tokens: int | None = None
    usd: float | None = None
    deadline: float | None = None
    retry_failed: bool = False

    @property
    def raised(self) -> list[LimitName]:
        """The names of the limits that are added to."""
        limits: dict[LimitName, float | None] = {"tokens": self.tokens, "usd": self.usd, "deadline": self.deadline}
        return [name for name, more in limits.items() if more is not None]

    @property
    def reopens(self) -> bool:
        return bool(self.raised) or self.retry_failed

    def helps(self, fault: Fault) -> bool:
        """Whether what failed so is tried again: the limit that was reached is raised, or no limit was."""
        limit = fault.lacked_limit
        return self.retry_failed if limit is None else getattr(self, limit) is not None


def job_of(
    run: str,
    state: Replay,
    added: Added,
    source: RunSource,
    trust: TrustRegistry,
    settings: Settings,
    team: Team | None,
) -> RunJob:
    """The job as the record has it, topped up. `team` is one made in Python: its tools are not loaded from files."""
    check_begun(run, state)
    written = state.plan or (state.drafted if state.plan_given else None)
    plan = parse(written) if written else None
    stored = state.start["team"]
    tools, warnings = stored_tools(stored, trust) if team is None else (team.tools(), list[str]())
    try:
        whole = Team.from_json(stored, tools)
    except InvalidTeam as error:
        if stored.get("ref") is not None:
            raise
        remedy = f"Run {run} was started with a team made in Python: give Supervisor the same one, with its tools."
        raise InvalidTeam(f"{error}\n{remedy}", error.problems) from None
    then = Settings.model_validate(state.start["settings"])
    check_endpoints(run, then, settings, _models_of(whole), os.environ)
    # Dependents of a task were given the outcome that is about to change.
    reopen = plan.with_dependents(reopened_tasks(state, added)) if plan else ()
    return RunJob(
        run,
        top_up(state, added),
        whole,
        then,
        plan if state.plan_given else None,
        stored.get("ref"),
        prior=_prior(source, state.start.get("rerun_of")),
        reopen=reopen if added.reopens else None,
        warnings=tuple(warnings),
    )


def unused_model(job: RunJob, model: str | None) -> list[str]:
    """A note if the run continues with another model than the caller gave."""
    stored = job.settings.model
    if model in (None, stored) or (model == OF_TEAM and (stored or "").startswith(f"{OF_TEAM}:")):
        return []
    given = "a client made in Python" if model == MADE_IN_PYTHON else model
    kept = "the models of its settings" if stored is None else stored
    another = f"await supervisor.fork({job.run!r}, model='provider:name')"
    return [f"The model given, {given}, is not used: the run continues with {kept}. To use another: {another}."]


def unused_team(job: RunJob, team: Team | str | None) -> list[str]:
    """A note if the run continues with another team than the caller gave: a Team, or the name or folder of one."""
    if team is None or (job.plan is not None and job.plan.team == SINGLE_CALL):
        return []
    if isinstance(team, str):
        is_same = team == job.team_ref
    else:
        same_web = team.with_web() if job.request.web else team
        is_same = to_json(same_web.to_json()) == to_json(job.team.to_json())
    again = f"await supervisor.rerun({job.run!r})"
    said = "The team given is not used: the run continues with the team that it was started with."
    return [] if is_same else [f"{said} To use the other one: {again}."]


def stays_ended(state: Replay, added: Added, orders: Mailbox) -> bool:
    """Whether a run has ended and is not continued: nothing could succeed with what is added, and no order waits."""
    if state.status not in FINISHED or state.report is None:
        return False
    if state.approved is None and PLAN_QUESTION in state.answers:
        return True  # a person rejected its plan
    if _reached_limit(state, added, orders) is not None:
        return True
    return not (state.restarts or orders.pending() or (added.reopens and _can_succeed(state, added)))


class _Reached(NamedTuple):
    """A limit that leaves nothing to try, and what is left of it."""

    limit: LimitName
    left: str


def _reached_limit(state: Replay, added: Added, orders: Mailbox) -> _Reached | None:
    """The limit because of which every call would be refused, even with what is added: results would only get lost."""
    if any(not isinstance(each, UnreadableOrder) and each.order == "top_up" for each in orders.pending()):
        return None
    request = top_up(state, added)
    stop = workers_stop_at(request)
    if stop is not None and state.owned_s >= stop:
        return _Reached("deadline", "no time left for its workers")
    faults = [outcome.error for _, outcome in _tasks_without_result(state) if outcome.error is not None]
    budget, spent = request.budget, state.spending
    limits: list[tuple[LimitName, float | None, float]]
    limits = [("tokens", budget.tokens, spent.tokens), ("usd", budget.usd, spent.usd)]
    for limit, whole, used in limits:
        denied = [fault.message for fault in faults if fault.lacked_limit == limit]
        needs = [need for message in denied if (need := read_need(message)) is not None]
        # The same is kept for the answer again.
        left = (whole or 0.0) - used - max(map(read_kept, denied), default=0.0)
        if whole is not None and needs and left < min(needs):
            show = "{:,.0f} tokens".format if limit == "tokens" else money
            left_words = f"{show(max(left, 0.0))} left for its tasks, where a call needs about {show(min(needs))}"
            return _Reached(limit, left_words)
    return None


def _can_succeed(state: Replay, added: Added) -> bool:
    """Whether anything that failed may succeed with what is added. Else the answer would only get worse.

    Without anything that failed, an answer with gaps is written again.
    """
    if _has_no_valid_plan(state):
        return False
    own = _faults_of_supervisor(state)
    if reopened_tasks(state, added) or any(added.helps(fault) for fault in own):
        return True
    failed = own or any(True for _ in _tasks_without_result(state))
    return added.retry_failed and state.status != "complete" and not failed


def _has_no_valid_plan(state: Replay) -> bool:
    """Whether the planner's answers, which are on the record and stay the same, made no valid plan."""
    error: Data = (state.report or {}).get("error") or {}
    return state.approved is None and error.get("kind") == "contract"


def _faults_of_supervisor(state: Replay) -> list[Fault]:
    """Why calls of the supervisor itself failed, and that the deadline left it no time."""
    own = [returned.result.get("error") for key, returned in state.committed.items() if key.startswith("@")]
    late = any(key.startswith("@") and key.endswith("/deadline") for key in state.decisions)
    faults = [Fault.model_validate(error) for error in own if error]
    return [*faults, *([Fault(kind="deadline", message="")] if late else [])]


def report_ended(state: Replay, added: Added, orders: Mailbox, say: Callable[[str], None] | None) -> Report:
    """The final report of a run that is not continued, because it has ended.

    `say` gets a sentence that says so; without it, the sentence is a note if something was to be tried.
    """
    report = final_report(state)
    if say is not None:
        say(_describe_ended(state, added, orders, _AT_TERMINAL))
    elif added.reopens or orders.pending():
        note = _describe_ended(state, added, orders, _IN_PYTHON)
        report = report.model_copy(update={"notes": (*report.notes, note)})
    return report


class _Words(NamedTuple):
    """How a caller names a limit that is added, and the restart of a task."""

    limit: str
    restart: str


def reason_to_stay_ended(state: Replay, added: Added, orders: Mailbox) -> str | None:
    """Why a resume over HTTP would try nothing; None if it would try something."""
    return _describe_ended(state, added, orders, _OVER_HTTP) if stays_ended(state, added, orders) else None


_AT_TERMINAL = _Words("--{}", "chargehand steer {} {} --restart")
_IN_PYTHON = _Words("{}=", "supervisor.steer('{}', '{}', restart=True)")
_OVER_HTTP = _Words("`{}`", "POST /api/v1/runs/{}/tasks/{}/restart")


def _describe_ended(state: Replay, added: Added, orders: Mailbox, words: _Words) -> str:
    """A sentence that says that nothing was tried and, where something lacks, what would help."""
    nothing = "Nothing was added or tried" if added.raised else "Nothing was tried"
    ended = f"{nothing}: {state.run} has already ended ({state.status})"
    wanted = added.reopens or bool(orders.pending()) or bool(state.restarts)
    if wanted and (reached := _reached_limit(state, added, orders)) is not None:
        has = "would have" if added.raised else "has"
        enough = ways_on(state.report or {}).limits.get(reached.limit)
        advice = "" if enough is None else f" {enough:,g} is probably enough."
        return f"{ended} and {has} {reached.left}: add more with {words.limit.format(reached.limit)}.{advice}"
    if added.reopens and _has_no_valid_plan(state):
        return f"{ended}, and the planner's answers, which are on the record, made no valid plan: start another run."
    lacks: dict[LimitName, list[str]] = {}
    stopped: list[str] = []
    own: list[str] = []
    is_short = _short_budgets(state)
    for path, outcome in _tasks_without_result(state) if added.reopens else ():
        task = TaskPath.parse(path).whole
        if _is_stopped(state, path):
            stopped.append(task)
        elif outcome.error is not None and is_short(task, outcome.error):
            own.append(task)
        elif outcome.error is not None and (limit := outcome.error.lacked_limit) is not None:
            lacks.setdefault(limit, []).append(task)
    for fault in _faults_of_supervisor(state) if added.reopens and not lacks else ():
        if (limit := fault.lacked_limit) is not None:
            lacks[limit] = ["the answer"]
    reasons = [
        f"add {_NOUNS[limit]} for {_join(tasks)} with {words.limit.format(limit)}" for limit, tasks in lacks.items()
    ]
    if own:
        reasons.append(f"the plan gives {_join(own)} too small a budget: fork the run with a plan that gives more")
    if stopped:
        again = words.restart.format(state.run, stopped[0])
        reasons.append(f"a person stopped {_join(stopped)}, and only a restart takes that back: {again}")
    return f"{ended}; {'; '.join(reasons)}" if reasons else f"{ended}."


_NOUNS: dict[LimitName, str] = {"tokens": "tokens", "usd": "money", "deadline": "time"}


def _join(names: list[str]) -> str:
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} and {last}" if first else last


def check_limits(state: Replay, added: Added) -> None:
    """Raise UsageError if a limit is added to that the run does not have."""
    request: Data = state.start.get("request") or {}
    budget: Data = request.get("budget") or {}
    has = {"tokens": budget.get("tokens"), "usd": budget.get("usd"), "deadline": request.get("deadline_s")}
    if state.start and (missing := missing_limits(added.raised, has)):
        raise UsageError(missing)


def check_begun(run: str, state: Replay) -> None:
    """Raise UsageError for a run that was stopped before its first event, RecordDamaged for one that lost it."""
    if not state.seq:
        message = f"The record of {run} holds no request: it stopped before it began. Start it again."
        raise UsageError(message, command="`chargehand run` starts it.")
    if not state.start:
        raise damage_error(f"of run {run}", "it does not say what was asked")


def _models_of(team: Team) -> list[str]:
    """The models that workers and inner teams name for themselves; the team's own models are in the settings."""
    named = [worker.model for worker in team.workers if worker.model]
    for inner in team.nested:
        roles = [role.model for role in inner.models.roles.values() if role.model]
        named += [*inner.models.tiers.values(), *roles, *_models_of(inner)]
    return named


def top_up(state: Replay, added: Added) -> Request:
    """The request with what is added to its limits."""
    request = Request.model_validate(state.start["request"])
    budget = request.budget
    if added.tokens is not None:
        budget = budget.model_copy(update={"tokens": (budget.tokens or 0) + added.tokens})
    if added.usd is not None:
        budget = budget.model_copy(update={"usd": (budget.usd or 0.0) + added.usd})
    if added.deadline is not None:
        request = request.model_copy(update={"deadline_s": state.owned_s + added.deadline})
    return request.model_copy(update={"budget": budget})


def reopened_tasks(state: Replay, added: Added) -> set[str]:
    """The tasks that ended for lack of what is added now, and those that failed otherwise where that is wanted.

    For a nested task, the team tries again what it lacks; for a part of a split task, the whole task runs again. A task
    that a person stopped runs again only if it is restarted, and one with too small a budget in the plan not at all.
    """
    is_short = _short_budgets(state)
    return {
        task
        for path, outcome in _tasks_without_result(state)
        if not _is_stopped(state, path)
        and not is_short(task := TaskPath.parse(path).whole, outcome.error)
        and (added.retry_failed if outcome.error is None else added.helps(outcome.error))
    }


def _short_budgets(state: Replay) -> Callable[[str, Fault | None], bool]:
    """Whether a task failed so because the plan gives it too small a budget."""
    budgets = budgets_of(state.plan or {})
    return lambda task, fault: fault is not None and is_too_small(budgets.get(task), fault.kind, fault.message)


def _tasks_without_result(state: Replay) -> Iterator[tuple[str, Outcome]]:
    """The tasks that failed or were escalated, by path.

    A replaced task counts as done. A task that a later attempt did, or that its team did without, counts as done too.
    """
    for path, outcome in state.ended.items():
        task = TaskPath.parse(path).whole
        whole = state.ended.get(task)
        is_done = whole is not None and whole.ok and not whole.partial
        if outcome.status in ("failed", "escalated") and not is_done and not state.is_replaced(task):
            yield path, outcome


def _is_stopped(state: Replay, path: str) -> bool:
    return any(each in state.stopped for each in TaskPath.parse(path).wholes)


def _prior(source: RunSource, run: str | None) -> Prior | None:
    """The run that a rerun repeats, if it still exists."""
    if run is None:
        return None
    try:
        return Prior(run, source.state(run))
    except RunNotFound:
        return None  # removed since: its results are made again
