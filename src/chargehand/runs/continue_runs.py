"""Runs on record: resumed, run again, or forked into another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, overload

from chargehand.engine.engine_session import Listener, Prior
from chargehand.engine.people import Person
from chargehand.events import ToolCalled
from chargehand.models.resolve import Models
from chargehand.record.home import Home
from chargehand.record.journal import Journal
from chargehand.record.replay import Replay, replay
from chargehand.record.sqlite_journal import SqliteJournal
from chargehand.record.storage_errors import reading
from chargehand.runs.check_arguments import FORK_MODEL, RULES, check_arguments
from chargehand.runs.check_request import check_plan, read_plan, team_for, with_trust_notes
from chargehand.runs.event_loop import less_collecting
from chargehand.runs.make_steps import RunJob
from chargehand.runs.prepared_team import team_reference
from chargehand.runs.record_in_thread import open_record, remote_record, run_of
from chargehand.runs.recorded_runs import RecordedRuns
from chargehand.runs.session import Session
from chargehand.runs.shared_models import SharedModels
from chargehand.runs.typed_data import D, asked_for, check_asked, check_untyped, invalid_data, with_typed_data
from chargehand.settings import Settings, as_before, found_from
from chargehand.synthesizer import OnDraft
from chargehand.team import Team, load
from chargehand.text.plan_json import parse
from chargehand.values.argument_rules import optional
from chargehand.values.base import JSON
from chargehand.values.order import new_order
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from chargehand.values.request import SINGLE_CALL, Request

if TYPE_CHECKING:
    from pydantic import BaseModel

    from chargehand.runs.temporal.all_runs import NotedRun

OnSession = Callable[[Session], None]
# Opens the record of a run that is about to begin or to continue; it may wait for the turn of the run.
OpenRecord = Callable[[], AbstractAsyncContextManager[Journal]]


class ContinueOptions(TypedDict, total=False):
    """What every way to continue a run takes; the methods of `Supervisor` have the defaults."""

    record: OpenRecord | None
    person: Person | None
    on_event: Listener | None
    on_draft: OnDraft | None
    on_session: OnSession | None
    stay: bool


class ResumeOptions(ContinueOptions, total=False):
    """The same for `resume`."""

    tokens: int | None
    usd: float | None
    deadline: float | None
    retry_failed: bool


class RerunOptions(ContinueOptions, total=False):
    """The same for `rerun`."""

    plan: Plan | Mapping[str, JSON] | None


class ForkOptions(RerunOptions, total=False):
    """The same for `fork`."""

    at: str | None
    model: str | None


class RunLife(RecordedRuns):
    """The home runs are recorded in, the team and the models they continue with."""

    shared_models: SharedModels
    # Where to report what a run on other machines waits for, and that a run has ended already.
    say: Callable[[str], None] | None = None

    def for_team(self, team: str | None, model: str | None = None) -> Self:
        """The same for another team or model, where one is given: settings, home and clients are shared."""
        other = copy(self)
        if team is not None:
            other._given, other.team_ref, other.is_default_team = team, team_reference(team), False
        if model is not None:
            other.settings = self.settings.model_copy(update={"model": found_from(model, Path.cwd())})
        return other

    @overload
    async def resume(self, run: str, *, output_type: type[D], **options: Unpack[ResumeOptions]) -> Report[D]: ...
    @overload
    async def resume(self, run: str, *, output_type: None = None, **options: Unpack[ResumeOptions]) -> Report[Any]: ...
    async def resume(
        self,
        run: str,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        retry_failed: bool = False,
        output_type: type[BaseModel] | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report[Any]:
        """Continue a run that stopped, with the team and settings it started with. What is committed is not repeated.

        `tokens`, `usd` and `deadline` are added to what it had, and reopen what ended for lack of them. A paused run is
        continued. With `stay` a run that is paused waits in this process; else it returns with status `paused`. With
        `output_type` the data of the report is of that type; the model is asked by the schema on the record.
        """
        check_arguments(locals())
        from chargehand.runs.resumed_job import (  # a new run does not need it
            Added,
            check_begun,
            check_limits,
            job_of,
            report_ended,
            stays_ended,
            unused_model,
            unused_team,
        )

        run = self.find_run(run)
        added = Added(None if tokens is None else int(tokens), usd, deadline, retry_failed)
        if not isinstance(source := self.source, Home) and source.settings_of(run) is not None:
            from chargehand.runs.temporal.start_or_resume import resume_run  # few runs are there

            async with (record or partial(open_record, partial(remote_record, run)))():
                return with_typed_data(await resume_run(source, run, added, on_event, self.say), output_type)
        state = self.home.state(run)
        check_asked(run, state.start, output_type)
        check_limits(state, added)
        if stays_ended(state, added, self.home.orders(run)):
            return with_typed_data(report_ended(state, added, self.home.orders(run), self.say), output_type)
        if self.home.owner(run) is None:
            check_begun(run, state)
        async with (record or partial(open_record, partial(self.home.open, run)))() as journal:
            state = replay(journal.events(), run)
            if stays_ended(state, added, self.home.orders(run)):
                return with_typed_data(report_ended(state, added, self.home.orders(run), self.say), output_type)
            made = self._given if isinstance(self._given, Team) else None
            with reading(f"of run {run}"):
                job = job_of(run, state, added, self.home, self.trust, self.settings, made)
            model = self.settings.model if self._gave_model else None
            team = (self.team_ref or self.team) if self._gave_team else None
            notes = (*unused_model(job, model), *unused_team(job, team))
            job = job._replace(validate=invalid_data(output_type), notes=notes)
            async with self.shared_models.use_checked(job.settings, job.team, job.request.budget, job.plan) as models:
                self.home.clear_cancel(run)
                self.home.note(run, status="running")
                if state.paused:
                    self.home.orders(run).send(new_order("continue", by="resume"))
                report = await self._work(job, models, journal, state, person, on_event, on_draft, on_session, stay)
        return with_typed_data(report, output_type)

    @overload
    async def rerun(self, run: str, *, output_type: type[D], **options: Unpack[RerunOptions]) -> Report[D]: ...
    @overload
    async def rerun(self, run: str, *, output_type: None = None, **options: Unpack[RerunOptions]) -> Report[Any]: ...
    async def rerun(
        self,
        run: str,
        *,
        plan: Plan | Mapping[str, JSON] | None = None,
        output_type: type[BaseModel] | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report[Any]:
        """A new run of the same request from the files as they are now; what has not changed is not done again.

        The model that was forced for the first run is used again, unless this supervisor was given one. With
        `output_type` the answer is asked for as that type; without, by the schema of the first run.
        """
        check_arguments(locals())
        from chargehand.runs import single_call  # resume and fork use the stored team
        from chargehand.runs.resumed_job import check_begun

        run = self.find_run(run)
        state = self.source.state(run)
        noted = self._find_note(run)
        check_begun(run, state)
        with reading(f"of run {run}"):
            # The plan contains the tasks that were added to it.
            asked = Request.model_validate(state.start["request"]).model_copy(update={"subject": None})
            asked = asked_for(asked, output_type)
            before = Settings.model_validate(state.start["settings"])
            team_ref: str | None = state.start["team"].get("ref") if noted is None else noted.team_ref
            again = parse(state.plan or state.drafted) if plan is None and state.plan_given else None
        if again is not None and again.team == SINGLE_CALL:
            base, team_ref = single_call.single_team(), None
        else:
            if self.team_ref is not None:
                self.team_ref = team_ref or self.team_ref
                self._given = load(self.team_ref, self.trust, self.settings.mcp)
            base, team_ref = self.team, self.team_ref
        team, notes = team_for(base, asked)
        given = read_plan(again if plan is None else plan, team)
        asked = with_trust_notes(asked, team)
        if given is not None:
            check_plan(given, team, asked)
        settings, changed = as_before(run, before, self.team_settings())
        job = RunJob("", asked, team, settings, given, team_ref, prior=Prior(run, state))
        job = job._replace(validate=invalid_data(output_type))
        job = job._replace(warnings=(*self.warnings, *changed, *notes))
        if noted is not None:
            check_untyped(output_type)
            return await self._rerun_on_temporal(noted, job, run, record, on_event)
        async with (
            self.shared_models.use_checked(settings, team, asked.budget, given) as models,
            (record or partial(open_record, self.home.create))() as journal,
        ):
            job = job._replace(run=run_of(journal))
            report = await self._work(job, models, journal, None, person, on_event, on_draft, on_session, stay)
        return with_typed_data(report, output_type)

    async def _rerun_on_temporal(
        self, noted: NotedRun, job: RunJob, run: str, record: OpenRecord | None, on_event: Listener | None
    ) -> Report:
        from chargehand.runs.temporal.start_or_resume import EarlierRun, run_job  # few runs are there

        settings = job.settings.model_copy(update={"engine": "temporal", "temporal": noted.settings})
        there = noted.material_here(job.request.material)
        # Files that are no longer here are used as they were in the earlier run.
        earlier = EarlierRun(run, []) if there is None else None
        request = job.request.model_copy(update={"material": there or job.request.material})
        async with (record or partial(open_record, partial(remote_record, "")))() as journal:
            job = job._replace(run=run_of(journal), request=request, settings=settings)
            return await run_job(self.home, job, on_event, self.say, earlier)

    @overload
    async def fork(self, run: str, *, output_type: type[D], **options: Unpack[ForkOptions]) -> Report[D]: ...
    @overload
    async def fork(self, run: str, *, output_type: None = None, **options: Unpack[ForkOptions]) -> Report[Any]: ...
    async def fork(
        self,
        run: str,
        *,
        at: str | None = None,
        model: str | None = None,
        plan: Plan | Mapping[str, JSON] | None = None,
        output_type: type[BaseModel] | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report[Any]:
        """A new run that parts from this one: with the task `at` and all that rests on it done again, or another plan.

        All other tasks are taken over as they are, at no cost. With `model` alone every task is done again, by the same
        plan. Team, request and settings are those stored with the run. `output_type` as for `rerun`.
        """
        check_arguments(locals(), {**RULES, "model": optional(FORK_MODEL)})
        from chargehand.runs.forked_job import Different, copy_documents, fork_job  # no other run needs it
        from chargehand.runs.resumed_job import Added, job_of

        different = Different(at, model, plan if plan is None or isinstance(plan, Plan) else parse(plan))
        different.check()
        run = self.find_run(run)
        state = self.source.state(run)
        noted = self._find_note(run)
        made = self._given if isinstance(self._given, Team) else None
        with reading(f"of run {run}"):
            job = job_of(run, state, Added(), self.source, self.trust, self.settings, made)
            job = fork_job(self.source, job, state, different, self.settings)
            job = job._replace(request=asked_for(job.request, output_type), validate=invalid_data(output_type))
        if different.plan is not None:
            check_plan(different.plan, job.team, job.request)
        if noted is not None:
            check_untyped(output_type)
            from chargehand.runs.temporal.start_or_resume import EarlierRun, run_job  # few runs are there

            called = [event.body for event in self.source.events(run) if isinstance(event.body, ToolCalled)]
            settings = job.settings.model_copy(update={"engine": "temporal", "temporal": noted.settings})
            async with (record or partial(open_record, partial(remote_record, "")))() as journal:
                job = job._replace(run=run_of(journal), settings=settings, team_ref=noted.team_ref)
                return await run_job(self.home, job, on_event, self.say, EarlierRun(run, called))
        async with (
            self.shared_models.use_checked(job.settings, job.team, job.request.budget, job.plan) as models,
            (record or partial(open_record, self.home.create))() as journal,
        ):
            job = job._replace(run=run_of(journal))
            copy_documents(self.home, job)
            report = await self._work(job, models, journal, None, person, on_event, on_draft, on_session, stay)
        return with_typed_data(report, output_type)

    def open_remote(self, run: str, earlier: str | None = None) -> SqliteJournal:
        """The record of a run that is about to begin on Temporal, where `earlier` is. Commands find it from now on."""
        from chargehand.runs.temporal.all_runs import note_run  # few runs are there

        noted = None if earlier is None else self._find_note(earlier)
        note_run(self.home, run, self.settings.temporal if noted is None else noted.settings)
        return remote_record(run)

    async def _work(
        self,
        job: RunJob,
        models: Models,
        journal: Journal,
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
            # A run whose record is elsewhere leaves nothing in the home, and takes no orders from it.
            home=self.home if self.home.has(job.run) else None,
            earlier=earlier,
            listeners=() if on_event is None else (on_event,),
            on_draft=on_draft,
            person=person,
            stays=stay,
            otel=self.settings.otel,
        )
        if on_session is not None:
            on_session(session)
        work = session.work()
        # What the session made is gone when the thresholds are restored, or the collector would go through it then.
        del session
        with less_collecting():
            return await work
