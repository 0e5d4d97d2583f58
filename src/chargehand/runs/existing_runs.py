"""Runs on record: reported, answered, cancelled, resumed and run again; and what starting a run also needs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import ValidationError

from chargehand.engine.engine_session import Listener, Prior
from chargehand.engine.people import Person
from chargehand.errors import InvalidPlan, NoOpenQuestion, RunOwned, UsageError
from chargehand.events import Event, RunEnded, ToolCalled
from chargehand.models import ModelClient
from chargehand.models.resolve import Models
from chargehand.record.home import Home
from chargehand.record.replay import Replay, replay
from chargehand.record.sqlite_journal import SqliteJournal
from chargehand.record.storage_errors import reading
from chargehand.runs.answer_question import check_answer, record_answer
from chargehand.runs.event_loop import less_collecting
from chargehand.runs.make_steps import RunJob
from chargehand.runs.prepared_team import PreparedTeam, team_reference
from chargehand.runs.record_in_thread import open_record, remote_record
from chargehand.runs.report_from_record import final_report, open_questions, report_so_far, unfinished_report
from chargehand.runs.resumed_job import Added, check_begun, job_of
from chargehand.runs.send_order import VERDICT_WAIT_S, SentOrder, send_order
from chargehand.runs.session import Session, check_models
from chargehand.settings import Settings, as_before, found_from
from chargehand.synthesizer import OnDraft
from chargehand.team import Team, load
from chargehand.text.plan_json import parse
from chargehand.tools import BUILTIN
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import Question
from chargehand.values.order import OrderKind, new_order
from chargehand.values.plan import Plan, errors_in
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.values.status_words import FINISHED, RunStatus

if TYPE_CHECKING:
    from chargehand.runs.temporal.all_runs import NotedRun
    from chargehand.values.run_diff import RunDiff

# How long `cancel` waits for the owner to have stopped.
CANCEL_WAIT_S = 3.0
# How long it, and the sender of an order, waits for workers on other machines, one of which may just have died.
REMOTE_WAIT_S = 20.0
OnSession = Callable[[Session], None]
# Opens the record of a run that is about to begin or to continue, perhaps when it is its turn.
OpenRecord = Callable[[], AbstractAsyncContextManager[SqliteJournal]]


class RunLife(PreparedTeam):
    """The home runs are recorded in, the team and the models they continue with."""

    def __init__(
        self,
        team: Team | str | Path | None = None,
        *,
        model: str | ModelClient | None = None,
        home: str | Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(team, model=model, home=home, settings=settings)
        self._in_use: dict[str, tuple[Models, int]] = {}
        # Where to say what a run on other machines waits for.
        self.say: Callable[[str], None] | None = None

    def for_team(self, team: str | None, model: str | None = None) -> Self:
        """The same for another team or model, where one is given: settings, home and clients are shared."""
        other = copy(self)
        if team is not None:
            other._given, other.team_ref, other.is_default_team = team, team_reference(team), False
        if model is not None:
            other.settings = self.settings.model_copy(update={"model": found_from(model, Path.cwd())})
        return other

    # -- continuing ---------------------------------------------------------------------------------------------------

    async def resume(
        self,
        run: str,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        retry_failed: bool = False,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report:
        """Continue a run that stopped, with the team and settings it started with. What is committed is not repeated.

        `tokens`, `usd` and `deadline` are added to what it had, and reopen what ended for lack of them. A paused run is
        continued. With `stay` a run that is paused waits in this process; else it returns with status `paused`.
        """
        positive(tokens=tokens, usd=usd, deadline=deadline)
        run = self.source.find(run)
        added = Added(tokens, usd, deadline, retry_failed)
        if not isinstance(source := self.source, Home) and source.settings_of(run) is not None:
            from chargehand.runs.temporal.start_or_resume import resume_run  # few runs are there

            async with (record or partial(open_record, partial(remote_record, run)))():
                return await resume_run(source, run, added, on_event, self.say)
        state = self.home.state(run)
        if self._stays_ended(state, added):
            return final_report(state)
        if self.home.owner(run) is None:
            check_begun(run, state)
        async with (record or partial(open_record, partial(self.home.open, run)))() as journal:
            state = replay(journal.events(), run)
            if self._stays_ended(state, added):
                return final_report(state)
            made = self._given if isinstance(self._given, Team) else None
            with reading(f"of run {run}"):
                job = job_of(run, state, added, self.home, self._trust, self.settings, made)
            async with self._checked_models(job.settings, job.team, job.request.budget, job.plan) as models:
                self.home.clear_cancel(run)
                self.home.note(run, status="running")
                if state.paused:
                    self.home.orders(run).send(new_order("continue", by="resume"))
                return await self._work(job, models, journal, state, person, on_event, on_draft, on_session, stay)

    def _stays_ended(self, state: Replay, added: Added) -> bool:
        """Whether a run has ended, and nothing is added to it or ordered of it."""
        ended = state.status in FINISHED and state.report is not None
        return ended and not added.reopens and not state.restarts and not self.home.orders(state.run).pending()

    async def rerun(
        self,
        run: str,
        *,
        plan: Plan | Mapping[str, JSON] | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report:
        """A new run of the same request from the files as they are now; what has not changed is not done again.

        The model that was forced for the first run is used again, unless this supervisor was given one.
        """
        run = self.source.find(run)
        state = self.source.state(run)
        noted = self._find_note(run)
        check_begun(run, state)
        given = plan if plan is None or isinstance(plan, Plan) else parse(plan)
        with reading(f"of run {run}"):
            # What was added to a plan is in it.
            asked = Request.model_validate(state.start["request"]).model_copy(update={"subject": None})
            before = Settings.model_validate(state.start["settings"])
            team_ref: str | None = state.start["team"].get("ref") if noted is None else noted.team_ref
            if given is None and state.plan_given:
                given = parse(state.plan or state.drafted)
        if self.team_ref is not None:
            self.team_ref = team_ref or self.team_ref
            self._given = load(self.team_ref, self._trust, self.settings.mcp)
        team, notes = team_for(self.team, asked)
        if given is not None:
            check_plan(given, team, asked)
        settings, changed = as_before(run, before, self.team_settings())
        if noted is not None:
            from chargehand.runs.temporal.start_or_resume import EarlierRun, run_job  # few runs are there

            settings = settings.model_copy(update={"engine": "temporal", "temporal": noted.settings})
            there = noted.material_here(asked.material)
            # Files that are not here any more are taken as they were then.
            earlier = EarlierRun(run, []) if there is None else None
            asked = asked.model_copy(update={"material": there or asked.material})
            job = RunJob("", asked, team, settings, given, self.team_ref, prior=Prior(run, state))
            job = job._replace(warnings=(*self.warnings, *changed, *notes))
            async with (record or partial(open_record, partial(remote_record, "")))() as journal:
                return await run_job(self.home, job._replace(run=journal.run), on_event, self.say, earlier)
        async with (
            self._checked_models(settings, team, asked.budget, given) as models,
            (record or partial(open_record, self.home.create))() as journal,
        ):
            job = RunJob(
                journal.run,
                asked,
                team,
                settings,
                given,
                self.team_ref,
                prior=Prior(run, state),
                warnings=(*self.warnings, *changed, *notes),
            )
            return await self._work(job, models, journal, None, person, on_event, on_draft, on_session, stay)

    async def fork(
        self,
        run: str,
        *,
        at: str | None = None,
        model: str | None = None,
        plan: Plan | Mapping[str, JSON] | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report:
        """A new run that parts from this one: with the task `at` and all that rests on it done again, or another plan.

        All other tasks are taken over as they are, at no cost. With `model` alone every task is done again, by the same
        plan. Team, request and settings are those stored with the run.
        """
        from chargehand.runs.forked_job import Different, copy_documents, fork_job  # no other run needs it

        different = Different(at, model, plan if plan is None or isinstance(plan, Plan) else parse(plan))
        different.check()
        run = self.source.find(run)
        state = self.source.state(run)
        noted = self._find_note(run)
        made = self._given if isinstance(self._given, Team) else None
        with reading(f"of run {run}"):
            job = job_of(run, state, Added(), self.source, self._trust, self.settings, made)
            job = fork_job(self.source, job, state, different, self.settings)
        if different.plan is not None:
            check_plan(different.plan, job.team, job.request)
        if noted is not None:
            from chargehand.runs.temporal.start_or_resume import EarlierRun, run_job  # few runs are there

            called = [event.body for event in self.source.events(run) if isinstance(event.body, ToolCalled)]
            settings = job.settings.model_copy(update={"engine": "temporal", "temporal": noted.settings})
            async with (record or partial(open_record, partial(remote_record, "")))() as journal:
                job = job._replace(run=journal.run, settings=settings, team_ref=noted.team_ref)
                return await run_job(self.home, job, on_event, self.say, EarlierRun(run, called))
        async with (
            self._checked_models(job.settings, job.team, job.request.budget, job.plan) as models,
            (record or partial(open_record, self.home.create))() as journal,
        ):
            job = job._replace(run=journal.run)
            copy_documents(self.home, job)
            return await self._work(job, models, journal, None, person, on_event, on_draft, on_session, stay)

    async def cancel(self, run: str) -> tuple[RunStatus, bool]:
        """Stop a run, whoever has it: its status now, and whether this stopped it. Resumable."""
        run = self.source.find(run)
        if self.source.owner(run) is not None:
            self.source.request_cancel(run)
            return await self._stopped_by_owner(run)
        if not self.home.has(run):
            return self.report(run).status, False
        if not self.home.state(run).seq:
            return "interrupted", False  # stopped before anything of it was recorded
        with closing(self.home.open(run)) as journal:
            state = replay(journal.events(), run)
            if state.report is not None and (state.status in FINISHED or state.status == "cancelled"):
                return final_report(state).status, False
            with reading(f"of run {run}"):
                report = unfinished_report(state, "cancelled")
            ended = RunEnded(status=report.status, report=report.to_json(), by="command")
            await journal.append([Event(run, state.seq + 1, time.time(), None, None, ended)], {})
        self.home.clear_cancel(run)
        self.home.note(run, status="cancelled", ended=time.time())
        return "cancelled", True

    async def _stopped_by_owner(self, run: str) -> tuple[RunStatus, bool]:
        """The owner looks for the request twice a second, and may end by itself before."""
        wait_s = CANCEL_WAIT_S if self.home.has(run) else REMOTE_WAIT_S
        for _ in range(int(wait_s / 0.05)):
            if self.source.owner(run) is None:
                break
            await asyncio.sleep(0.05)
        else:
            return "running", False
        status = self.report(run).status
        if status == "cancelled":
            return status, True
        self.home.clear_cancel(run)
        # It died, or ended before it saw the request.
        return (status, False) if status in FINISHED else await self.cancel(run)

    async def steer(
        self,
        run: str,
        task: str,
        text: str = "",
        *,
        stop: bool = False,
        restart: bool = False,
        model: str | None = None,
        instruction: str | None = None,
        by: str = "python",
    ) -> SentOrder:
        """Order something of a task of a run, whichever process runs it.

        `text` comes as the words of a person before the next model call of the task's worker. With `stop` the task has
        failed for good, and `text` is the reason. With `restart` the task, also one that was stopped or has ended, and
        all that rests on it run again, if wanted with another model or instruction; `resume` continues a run that no
        process owns.
        """
        if stop + restart > 1 or ((model or instruction) and not restart) or (restart and text):
            raise UsageError("Give one of: words for the worker; stop; restart, with a model or an instruction.")
        if restart:
            return await self._order("restart", run, by, task=task, text=instruction or "", model=model)
        if not stop and not text.strip():
            raise UsageError(f"There is nothing to order of {task}: give words for its worker, or stop or restart it.")
        return await self._order("stop" if stop else "tell", run, by, task=task, text=text)

    async def pause(self, run: str, *, by: str = "python") -> SentOrder:
        """Let a run begin nothing new. Calls in flight are finished; `resume` continues it."""
        return await self._order("pause", run, by)

    async def top_up(
        self,
        run: str,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        by: str = "python",
    ) -> SentOrder:
        """Add to the limits of a run that another process runs: calls that wait continue at once.

        What had ended for lack of them runs again. `deadline` is in seconds from now. Without an owner, `resume` adds.
        """
        positive(tokens=tokens, usd=usd, deadline=deadline)
        return await self._order("top_up", run, by, tokens=tokens, usd=usd, deadline=deadline)

    async def unpause(self, run: str, *, by: str = "python") -> SentOrder:
        """Continue a paused run in the process that owns it; without one, `resume` continues it."""
        return await self._order("continue", run, by)

    async def _order(self, kind: OrderKind, run: str, by: str, **fields: object) -> SentOrder:
        name = self.source.find(run)
        try:
            order = new_order(kind, by=by, **fields)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
            raise UsageError(f"The order to {name} was not sent. Correct it: {wrong}.") from None
        # Words wait for a call, here and elsewhere; all else only for another machine.
        wait_s = VERDICT_WAIT_S if kind == "tell" or self.home.has(name) else REMOTE_WAIT_S
        return await send_order(self.source, name, order, wait_s)

    def report(self, run: str) -> Report:
        """What the record says now: the final report, or how far it has come."""
        run = self.source.find(run)
        return report_so_far(self.source, self.source.state(run))

    def diff(self, a: str, b: str) -> RunDiff:
        """What differs between two runs, each as far as it has come: plans, tasks, cost, time and answers."""
        from chargehand.runs.compare_runs import compare_reports  # no run needs it

        return compare_reports(self.report(a), self.report(b))

    def questions(self, run: str) -> tuple[Question, ...]:
        """What the run asks a person and has no answer to, in the order it was asked; none once it has ended."""
        return open_questions(self.source.state(self.source.find(run)))

    async def answer(self, run: str, question: str, words: str, *, by: str = "python") -> tuple[Question, ...]:
        """Put a person's answer on the record; `resume` continues a run that no process runs, another continues itself.

        Gives what is still open. An answer that cannot be used is refused and changes nothing: InvalidAnswer. The first
        one counts; another is refused with it: NoOpenQuestion.
        """
        run = self.source.find(run)
        if not self.home.has(run):
            return await self._answer_as_order(run, question, words, by, RunOwned(f"{run} is on Temporal."))
        try:
            journal = self.home.open(run)
        except RunOwned as owned:
            return await self._answer_as_order(run, question, words, by, owned)
        with closing(journal):
            return await record_answer(run, journal, question, words)

    async def _answer_as_order(
        self, run: str, question: str, words: str, by: str, owned: RunOwned
    ) -> tuple[Question, ...]:
        """Have the owner of the run take the answer."""
        check_answer(run, self.source.state(run), question, words)
        sent = await self._order("answer", run, by, question=question, text=words)
        if sent.verdict == "accepted":
            return self.questions(run)
        if sent.verdict is not None:
            raise NoOpenQuestion(sent.reason)
        if self.source.owner(run) is not None:
            raise RunOwned(f"{owned} It has not taken the answer yet: it will, or the next resume. See: show {run}")
        return await self.answer(run, question, words, by=by)  # it parked, or died, before it saw the answer

    # -- parts -------------------------------------------------------------------------------------------------------

    def open_remote(self, run: str, earlier: str | None = None) -> SqliteJournal:
        """The record of a run that is about to begin on Temporal, where `earlier` is: from here on it is found."""
        from chargehand.runs.temporal.all_runs import note_run  # few runs are there

        noted = None if earlier is None else self._find_note(earlier)
        note_run(self.home, run, self.settings.temporal if noted is None else noted.settings)
        return remote_record(run)

    def _find_note(self, run: str) -> NotedRun | None:
        """What the home knows of a run on Temporal; None for another."""
        source = self.source
        return None if isinstance(source, Home) else source.find_note(run)

    async def _work(
        self,
        job: RunJob,
        models: Models,
        journal: Any,
        earlier: Replay | None,
        person: Person | None,
        on_event: Listener | None,
        on_draft: OnDraft | None,
        on_session: OnSession | None,
        stay: bool = False,
    ) -> Report:
        session = Session(
            job,
            journal,
            models,
            home=self.home,
            earlier=earlier,
            listeners=() if on_event is None else (on_event,),
            on_draft=on_draft,
            person=person,
            stays=stay,
            otel=self.settings.otel,
        )
        if on_session is not None:
            on_session(session)
        with less_collecting():
            return await session.work()

    @asynccontextmanager
    async def _checked_models(
        self, settings: Settings, team: Team, budget: Budget, plan: Plan | None
    ) -> AsyncGenerator[Models]:
        """The clients, if every model that may be called can be; entered before anything is recorded."""
        async with self._models(settings) as models:
            check_models(models, settings, team, budget, plan)
            yield models

    def _new_models(self, settings: Settings) -> Models:
        return Models(settings.providers, os.environ, self._clients, wide=settings.max_concurrent_set)

    def shared_models(self, settings: Settings) -> AbstractAsyncContextManager[Models]:
        """The clients, for as long as they are used."""
        return self._models(settings)

    @asynccontextmanager
    async def _models(self, settings: Settings) -> AsyncGenerator[Models]:
        """The clients, shared by all runs under way in this loop and closed with the last of them."""
        name = settings.model_dump_json(include={"providers", "max_concurrent_set"})
        models, users = self._in_use.get(name) or (self._new_models(settings), 0)
        self._in_use[name] = (models, users + 1)
        try:
            yield models
        finally:
            models, users = self._in_use.pop(name)
            if users > 1:
                self._in_use[name] = (models, users - 1)
            else:
                await models.close()


def team_for(team: Team, request: Request) -> tuple[Team, list[str]]:
    """The team as the request allows it to work, and what to say about it; UsageError when nobody may use the web."""
    if not request.web:
        return team, []
    if not team.web_workers:
        untrusted = [problem.message for problem in team.problems() if problem.code == "untrusted_tool"]
        add = "Add `web: true` to the front matter of a worker (in Python, web=True), or use the team general."
        remedy = untrusted or [add]
        raise UsageError(f"The team {team.name!r} has no worker that may use the web. {' '.join(remedy)}")
    lacking = web_search.lacks() if (web_search := BUILTIN["web_search"]).lacks else None
    return team.with_web(), [f"web_search needs {lacking}: only fetch_page is offered."] if lacking else []


def check_plan(plan: Plan, team: Team, request: Request) -> None:
    """Raise InvalidPlan with every error in a plan that is to be run as it is."""
    problems = plan.problems(
        team.assignable, max_tasks=request.max_tasks, budget_tokens=request.budget.tokens, factory=team.factory
    )
    if wrong := errors_in(problems):
        lines = "".join(f"\n  {problem.message}" for problem in wrong[:50])
        more = f"\n  and {len(wrong) - 50:,} more" if len(wrong) > 50 else ""
        raise InvalidPlan(f"The plan cannot be run:{lines}{more}", problems)


def positive(**limits: float | None) -> None:
    """Limits of zero or less stop everything or mean nothing: all of them are named at once."""
    if wrong := [f"{name} is {value:g}" for name, value in limits.items() if value is not None and value <= 0]:
        raise UsageError(f"{', '.join(wrong)}: give a number above 0, or leave it out.")
