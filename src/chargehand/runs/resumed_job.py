"""The record of a run that stopped, and what is added to it -> the job that continues it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import to_json

from chargehand.engine.engine_session import Prior
from chargehand.errors import InvalidTeam, RunNotFound, UsageError
from chargehand.models import MADE_IN_PYTHON
from chargehand.record.replay import Replay
from chargehand.record.storage_errors import damage_error
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.make_steps import RunJob
from chargehand.settings import OF_TEAM, Settings, check_endpoints
from chargehand.team import Team
from chargehand.team.team_tools import stored_tools
from chargehand.text.plan_json import parse
from chargehand.values.key import PLAN_QUESTION, TaskPath
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
    def topped_up(self) -> bool:
        return self.tokens is not None or self.usd is not None or self.deadline is not None

    @property
    def reopens(self) -> bool:
        return self.topped_up or self.retry_failed


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
    """Whether a run has ended and is not continued: nothing is added or it lacks nothing, and no order waits."""
    if state.status not in FINISHED or state.report is None or state.restarts:
        return False
    if state.approved is None and PLAN_QUESTION in state.answers:
        return True  # a person rejected its plan
    lacks_nothing = state.status == "complete" and not reopened_tasks(state, added)
    return (lacks_nothing or not added.reopens) and not orders.pending()


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
        budget = budget.model_copy(update={"tokens": (budget.tokens or state.spending.tokens) + added.tokens})
    if added.usd is not None:
        budget = budget.model_copy(update={"usd": (budget.usd or state.spending.usd) + added.usd})
    if added.deadline is not None:
        request = request.model_copy(update={"deadline_s": state.owned_s + added.deadline})
    return request.model_copy(update={"budget": budget})


def reopened_tasks(state: Replay, added: Added) -> set[str]:
    """The tasks that ended for lack of what is added now, and those that failed where that is wanted.

    For a nested task, the team tries again what it lacks; for a part of a split task, the whole task runs again. A
    replaced task counts as done. A task that a later attempt did, or that its team did without, counts as done too.
    """
    found: set[str] = set()
    for path, outcome in state.ended.items():
        task = TaskPath.parse(path).whole
        whole = state.ended.get(task)
        if state.is_replaced(task) or (whole is not None and whole.ok and not whole.partial):
            continue
        short = outcome.error is not None and outcome.error.kind in ("budget", "deadline")
        if (added.retry_failed and outcome.status in ("failed", "escalated")) or (short and added.topped_up):
            found.add(task)
    return found


def _prior(source: RunSource, run: str | None) -> Prior | None:
    """The run that a rerun repeats, if it still exists."""
    if run is None:
        return None
    try:
        return Prior(run, source.state(run))
    except RunNotFound:
        return None  # removed since: its results are made again
