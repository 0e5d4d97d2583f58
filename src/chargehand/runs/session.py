"""One process's turn at a run: owns the record, drives the supervisor on an engine, and ends in a Report.

A session ends by finishing, by parking for a person or as paused, by Ctrl-C (`interrupt`), by `chargehand cancel`, or
by dying; after all but the first the next session continues from the record.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from chargehand.engine.engine_session import (
    EngineInputs,
    EngineSession,
    Listener,
    Opening,
    Parked,
    Spent,
    caller_header,
)
from chargehand.engine.make_engine import make_engine
from chargehand.engine.people import Later, Person, read_words
from chargehand.errors import ChargehandError, InvalidAnswer, RecordGone, UsageError
from chargehand.events import Event, RunEnded, ToolRefused
from chargehand.models.resolve import Models
from chargehand.models.supervisor_models import SupervisorModels
from chargehand.planner.preview import estimate_by_plan
from chargehand.record.cache import Cache
from chargehand.record.home import Home
from chargehand.record.index import Lesson
from chargehand.record.journal import Journal
from chargehand.record.mailbox import Mailbox
from chargehand.record.replay import Replay, replay
from chargehand.runs.make_steps import SUPERVISOR_ROLES, RunJob, make_steps, role_models, run_steps, tools_of
from chargehand.runs.record_in_thread import in_thread
from chargehand.runs.report_from_record import add_earlier, estimate_notes, unfinished_report
from chargehand.runs.roster import TIERS
from chargehand.settings import Limits, Settings
from chargehand.settings.settings import OtelSettings
from chargehand.steps.run_steps import RunSteps
from chargehand.synthesizer import OnDraft
from chargehand.team import Team
from chargehand.text.plan_json import parse
from chargehand.tools import Tool, ToolContext
from chargehand.values.argument_rules import show
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import Question
from chargehand.values.estimate import Figures, PastRun, learn
from chargehand.values.key import TaskPath
from chargehand.values.outcome import Usage
from chargehand.values.plan import Plan
from chargehand.values.report import Report, Timing
from chargehand.values.request import Request
from chargehand.values.status_words import FINISHED, RunStatus

if TYPE_CHECKING:
    from chargehand.runs.send_telemetry import WatchedRun
    from chargehand.runs.traced_run import TracedRun
    from chargehand.tools.mcp_connections import McpConnections

# How often the owner of a run looks for orders to it.
ORDERS_POLL_S = 0.5
# Errors of tasks that a limit or a person ended.
_CUT = frozenset({"budget", "deadline", "cancelled"})


class Session:
    """Made for one call of `work`."""

    def __init__(
        self,
        job: RunJob,
        journal: Journal,
        models: Models,
        *,
        home: Home | None = None,
        mailbox: Mailbox | None = None,
        stays: bool = False,
        earlier: Replay | None = None,
        listeners: Iterable[Listener] = (),
        on_draft: OnDraft | None = None,
        person: Person | None = None,
        wall_clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
        otel: OtelSettings | None = None,
    ) -> None:
        self._servers: McpConnections | None = None
        self._job = job
        self._journal = journal
        self._models = models
        self._home = home
        self._mailbox = home.orders(job.run) if mailbox is None and home is not None else mailbox
        # Whether it waits in this process when it is paused.
        self._stays = stays
        self._earlier = earlier
        # What the report says about this session, such as listeners that raised.
        self._notes = list(job.notes)
        self._listeners: tuple[Listener, ...] = tuple(partial(_note_failure, each, self._notes) for each in listeners)
        self._on_draft = on_draft
        self._person = person
        self._wall_clock = wall_clock
        self._chance = chance
        self._otel = otel
        # The trace that the run is part of; set when the session begins to work.
        self._trace: TracedRun | None = None
        self._stopped: Literal["interrupted", "cancelled"] | None = None
        self._engine: EngineSession | None = None
        # Whether it was asked to stop before there was anything to stop.
        self._asked_early: Literal["interrupted", "cancelled"] | None = None
        self._main: asyncio.Task[Report] | None = None
        self._stopping: asyncio.Task[None] | None = None
        # The estimate of the plan by constants; None for a run that took over results of another session or run.
        self._by_plan: Figures | None = None

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._job.run

    def interrupt(self) -> None:
        """Begin nothing new, let calls in flight commit, stop; a second call stops at once. Resumable."""
        self._stop("interrupted")

    async def work(self) -> Report:
        """Run to the end, or as far as it goes. Raises only what the caller has to act on."""
        watch = self._begin_trace()
        try:
            return await self._work_to_end()
        finally:
            if watch is not None:
                watch.end()
            if self._servers is not None:
                await self._servers.close()

    def _begin_trace(self) -> WatchedRun | None:
        """Find the trace that the run is part of, and send what happens to a collector, where one is set."""
        header, otel, home, run = caller_header.get(), self._otel, self._home, self._job.run
        exports = home is not None and otel is not None and otel.is_on(os.environ)
        if not exports and header is None:
            return None
        from chargehand.runs.traced_run import find_trace, watch_run  # most runs are part of no trace

        watch = watch_run(home, otel, header, run) if exports and home is not None and otel is not None else None
        self._trace = find_trace(run, header, self._earlier, sends=watch is not None and watch.sampled)
        if watch is not None:
            self._listeners = (*self._listeners, watch.on_event)
        return watch

    async def _work_to_end(self) -> Report:
        began, job, earlier = time.time(), self._job, self._earlier
        while (report := await self._work_once(job, earlier)) is None:
            # A person restarted tasks, or gave the run more time: another session continues with that.
            earlier = replay(self._journal.events(), job.run)
            request = Request.model_validate(earlier.start["request"])
            later = request.deadline_s != job.request.deadline_s
            job = job._replace(request=request, reopen=() if later else None, warnings=(), fork=None)
        if self._home is not None:
            if not self._home.has(job.run):
                raise RecordGone(
                    f"The record of {job.run} was removed while it ran: this report is all there is of it, and it "
                    "cannot be resumed. Keep this output, and leave the home of runs alone while one is under way.",
                    report,
                )
            await in_thread(partial(self._note_end, self._home, report, began))
        return report

    async def _work_once(self, job: RunJob, earlier: Replay | None) -> Report | None:
        """The report; None when a person has restarted tasks, and another session is to follow."""
        supervisors = role_models(job.settings, self._models)
        async with make_engine(job.settings.engine, self._engine_inputs(job, earlier, supervisors)) as engine:
            self._engine = engine
            if earlier is not None:
                # Orders that came while no process owned the run apply from the beginning.
                await engine.read_orders()
                if engine.restarting:
                    return None
            past = self._past(job) if job.request.approve else ()
            steps = make_steps(job, self._models, engine, supervisors, on_draft=self._on_draft, past=past)
            report = await self._drive(engine, run_steps(steps))
            if report is not None and report.status in FINISHED:
                await engine.read_last_orders()
                report = None if engine.restarting else report
            if report is None:
                return None
            report = add_spent(report, engine.spent)
            if earlier is None and job.prior is None and job.fork is None and not _was_cut(steps, report, engine.spent):
                self._by_plan = _estimate(steps, report)
            report = _add_notes(report, self._notes)
            engine.emit(_end(engine, report))
        return _add_notes(report, self._notes)

    def _engine_inputs(self, job: RunJob, earlier: Replay | None, supervisors: SupervisorModels) -> EngineInputs:
        reopen, restarts = _tasks_to_reopen(job, earlier)
        tools = tools_of(job.team)
        if self._servers is None and "mcp" in job.team.to_json():
            from chargehand.tools.mcp_connections import McpConnections  # most runs use no server

            self._servers = McpConnections()
        holds_files = bool(job.request.material) or "write_document" in tools
        folder = self._home.folder(job.run) if self._home is not None and holds_files else None
        hidden = None if self._home is None else self._home.path
        return EngineInputs(
            run=job.run,
            journal=self._journal,
            models=self._models,
            tools=tools,
            context=ToolContext(job.request.material, folder, hidden, self._servers),
            analyses=None if self._home is None else Cache(self._home.path / "cache"),
            replay=earlier,
            opening=Opening(
                job.request.to_json(),
                job.team.to_json() | {"ref": job.team_ref},
                job.settings.to_json(),
                job.prior.run if job.prior else None,
                reopen,
                (*job.warnings, *(problem.message for problem in job.team.problems())),
                restarts,
                job.fork,
                None if self._trace is None else self._trace.to_json(),
            ),
            prior=job.prior,
            budget=job.request.budget,
            max_concurrent=job.request.max_concurrent,
            wait_s=job.request.wait_s,
            deadline_s=job.request.deadline_s,
            hedge_after_s=job.team.recovery.hedge_after_s,
            writer=supervisors["synthesizer"].model if "synthesizer" in supervisors else None,
            listeners=(*self._listeners, *self._watch_refusals(job, tools)),
            people=None if self._person is None else partial(_ask, self._person, self._job),
            read_answer=partial(_read_answer, self._job),
            mailbox=self._mailbox,
            stays=self._stays,
            trace_header=None if self._trace is None else self._trace.header,
            wall_clock=self._wall_clock,
            chance=self._chance,
        )

    def _watch_refusals(self, job: RunJob, tools: Mapping[str, Tool]) -> list[Listener]:
        """A listener for calls that nobody may be asked about: the report names their tools. Few teams need one."""
        if job.request.ask or not any(tool.approve for tool in tools.values()):
            return []
        watch = partial(_note_refusal, self._notes)
        for event in self._journal.events():  # those of earlier sessions
            watch(event)
        return [watch]

    def _past(self, job: RunJob) -> list[PastRun]:
        return [] if self._home is None else self._home.past_runs(job.team.name, job.settings.models_key)

    def _note_end(self, home: Home, report: Report, began: float) -> None:
        """Write the run's line in the index and, where later estimates can use it, what the run used."""
        lesson = None
        if self._by_plan is not None:
            team, model = self._job.team.name, self._job.settings.models_key
            expected = learn(self._by_plan, home.past_runs(team, model)).expected
            lesson = Lesson(team, model, PastRun(self._by_plan, expected, _figures_of(report)))
        home.note(self._job.run, status=report.status, ended=time.time(), lesson=lesson, **self._line(began))

    def _line(self, began: float) -> dict[str, Any]:
        """The fields of a run's line in the index other than its end; its first session gives all of them."""
        if self._earlier is not None:
            return {}
        return {"started": began, "request": self._job.request.text, "team": self._job.team.name}

    async def _drive(self, engine: EngineSession, work: Any) -> Report | None:
        """Run the work, and watch for orders, `cancel`, an interruption, and the point where only people can continue.

        None when it was cut off because tasks are restarted.
        """
        main: asyncio.Task[Report] = asyncio.create_task(engine.until_parked(work), name="supervisor")
        self._main = main
        if self._asked_early is not None:
            self._stop(self._asked_early)
        watch = asyncio.create_task(self._watch(engine), name="orders") if self._home or self._mailbox else None
        try:
            return await main
        except Parked as parked:
            if parked.status == "restarting":
                return None
            if parked.status == "short":
                raise AssertionError("only a step on Temporal has a part of the budget to use up") from None
            return await self._report_unfinished(engine, parked.status)
        except asyncio.CancelledError:
            if self._stopped is None:  # the caller's own cancellation: put it on the record, then let it through
                main.cancel()
                await asyncio.gather(main, return_exceptions=True)
                report = await self._report_unfinished(engine, "interrupted")
                engine.emit(_end(engine, report))
                raise
            # Only a person continues a paused run.
            stays_paused = engine.paused and self._stopped == "interrupted"
            return await self._report_unfinished(engine, "paused" if stays_paused else self._stopped)
        except BaseExceptionGroup as group:
            first = _first(group)
            raise first from first.__cause__
        finally:
            self._main = None  # too late to stop
            others = [task for task in (watch, self._stopping) if task is not None]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _report_unfinished(self, engine: EngineSession, status: RunStatus) -> Report:
        await engine.commit()
        report = unfinished_report(replay(self._journal.events(), self._job.run), status)
        # Pauses and waits for people do not count, those included that no order or answer has ended.
        return report.model_copy(update={"timing": Timing(wall_s=engine.clock.now())})

    def _stop(self, why: Literal["interrupted", "cancelled"]) -> None:
        if self._main is None or self._engine is None:
            self._asked_early = why
            return
        if self._stopped is not None:
            self._main.cancel()
            return
        self._stopped = why
        self._stopping = asyncio.create_task(self._drain_and_stop(self._engine, self._main), name="drain and stop")

    @staticmethod
    async def _drain_and_stop(engine: EngineSession, main: asyncio.Task[Report]) -> None:
        try:
            await engine.drain()
        finally:
            main.cancel()

    async def _watch(self, engine: EngineSession) -> None:
        """Look for orders of other processes, until a process asks to cancel the run."""
        paused = False
        while self._home is None or not self._home.cancel_requested(self._job.run):
            await engine.read_orders()
            if self._home is not None and engine.paused != paused:
                paused = engine.paused
                # The index shows the real status, also while the run waits here.
                await in_thread(partial(self._home.note, self._job.run, status="paused" if paused else "running"))
            await asyncio.sleep(ORDERS_POLL_S)
        self._home.clear_cancel(self._job.run)
        self._stopped = "cancelled"
        if self._main is not None:
            self._main.cancel()


def _read_answer(job: RunJob, question: Question, words: str) -> JSON:
    return read_words(question, words, job.request, job.team.names, job.team.factory)


async def _ask(person: Person, job: RunJob, question: Question) -> JSON:
    """The person's answer; the person is asked again until the answer can be used."""
    wrong: str | None = None
    while True:
        words = await _call_person(person, question, wrong)
        try:
            return _read_answer(job, question, words)
        except InvalidAnswer as error:
            wrong = str(error)


async def _call_person(person: Person, question: Question, wrong: str | None) -> str:
    """The person's words; UsageError if the caller's function raises, or returns something else."""
    stays_open = f"The question {question.id!r} stays open, and resume continues the run."
    try:
        words: Any = await person(question, wrong)
    except (Later, ChargehandError):
        raise
    except Exception as error:  # noqa: BLE001 -- raised again as the cause, which begins in the caller's own function
        own = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        raise UsageError(f"person raised {type(error).__name__}: {error}. {stays_open}") from own
    if not isinstance(words, str):
        raise UsageError(f"person returned {show(words)}: return the answer as a str. {stays_open}")
    return words


def _note_failure(listener: Listener, notes: list[str], event: Event) -> None:
    """Call a listener, and note for the report that it raised: it is not called again."""
    try:
        listener(event)
    except Exception as error:
        notes.append(f"on_event raised {type(error).__name__}: {error}. The run continued without it.")
        raise


def _note_refusal(notes: list[str], event: Event) -> None:
    body = event.body
    if isinstance(body, ToolRefused) and body.code == "not_approved":
        note = f"{body.tool} was not called: a person has to approve its calls. Start the run with ask=True (--ask)."
        if note not in notes:
            notes.append(note)


def _add_notes(report: Report, notes: list[str]) -> Report:
    more = [note for note in notes if note not in report.notes]
    return report.model_copy(update={"notes": (*report.notes, *more)}) if more else report


def _end(engine: EngineSession, report: Report) -> RunEnded:
    parked_s = engine.unrecorded_still_s() or None
    return RunEnded(status=report.status, report=report.to_json(), parked_s=parked_s, budget=engine.limit.to_json())


def _tasks_to_reopen(job: RunJob, earlier: Replay | None) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The tasks to run again, and the orders of people to restart some that were not carried out yet."""
    restarts = {} if earlier is None else earlier.restarts
    if earlier is None or not restarts:
        return job.reopen, ()
    tasks = {TaskPath.parse(restart.task).whole for restart in restarts.values()}
    again = parse(earlier.plan).with_dependents(tasks.union(job.reopen or ())) if earlier.plan else ()
    return again, tuple(restarts)


def check_models(models: Models, settings: Settings, team: Team, budget: Budget, plan: Plan | None = None) -> None:
    """Raise UsageError if a model that may be called cannot be called, before anything is spent.

    A plan without agents needs no model: analyzers and people do its tasks, and code writes the answer.
    """
    if plan is not None and not settings.has_model and not _needs_model(plan, team):
        return
    limited = next((task.id for task in plan.tasks if task.budget and task.budget.usd), None) if plan else None
    setting = None if limited is None else f"budget.usd of task {limited}"
    if budget.usd is not None:
        setting = f"The limit of {budget.usd:g} USD"
    for name in dict.fromkeys(_models_of(team, settings)):
        models.check(name)
        if setting is not None and models.price(name) is None:
            instead = "tokens" if budget.usd is not None else "budget.tokens"
            raise UsageError(
                f"{setting} cannot be kept: the price of {name} is unknown. Limit {instead} instead, or choose a model "
                "with a known price."
            )


def _needs_model(plan: Plan, team: Team) -> bool:
    without = {worker.name for worker in team.workers if worker.kind in ("analyzer", "human", "command")}
    members = team.pools()
    return not all(without.issuperset(members.get(task.worker, (task.worker,))) for task in plan.tasks)


def _models_of(team: Team, settings: Settings) -> list[str]:
    """Every model that a run of the team may call, those of the teams in it included."""
    names = [settings.model_for(role).model for role in SUPERVISOR_ROLES]
    # Every tier: a plan may ask for any tier, and recovery may use a higher one.
    for worker in (each for each in team.workers if each.kind == "agent"):
        names += [settings.model_for("worker", tier or worker.tier, worker.model).model for tier in TIERS]
    for inner in team.nested:
        names += _models_of(inner, settings.for_team(inner.models, Budget(), Limits()))
    return names


def _estimate(steps: RunSteps, report: Report) -> Figures | None:
    """The estimate by constants for the plan of a run that gave an answer; None without a model or with people.

    It is the estimate that was made before the run, which knew nothing of tasks that were added.
    """
    plan, team, models = report.plan, steps.team, steps.role_models
    if plan is None or "synthesizer" not in models or report.status not in ("complete", "partial"):
        return None
    if any(team.worker(task.worker).kind == "human" for task in plan.tasks):
        return None
    writer, judge = models["synthesizer"].model, models["judge"].model
    plan = plan.model_copy(update={"tasks": tuple(task for task in plan.tasks if task.id in steps.first)})
    return estimate_by_plan(plan, team, steps.roster, writer, steps.request, judge)


def _was_cut(steps: RunSteps, report: Report, spent: Spent) -> bool:
    """Whether a limit or a person ended a part of the run, or a call was broken off, which counts as reserved."""
    limit, kinds = steps.request.deadline_s, {each.error.kind for each in report.outcomes if each.error is not None}
    late = limit is not None and report.timing.wall_s >= limit
    return late or spent.lost.calls > 0 or not kinds.isdisjoint(_CUT)


def _figures_of(report: Report) -> Figures:
    usage = report.usage
    return Figures(usage.calls, usage.input_tokens + usage.output_tokens, report.timing.wall_s, usage.usd)


def add_spent(report: Report, spent: Spent) -> Report:
    """The report with all usage on the record, whichever outcome counts it, and which part is an estimate."""
    notes = list(report.notes)
    if report.status in FINISHED:
        usage, outcomes = report.usage, add_earlier(report.outcomes, spent.earlier)
        used = Usage.total([spent.used, spent.lost] if spent.lost.calls else [spent.used])
        # The calls of tools, which `used` does not have, take time too.
        times = Usage.total([usage, *spent.earlier.values()])
        models = tuple(dict.fromkeys([*usage.models, *used.models]))
        more = {"models": models, "seconds": times.seconds, "waiting_s": times.waiting_s}
        usage = used.model_copy(update=more)
        # All calls that `wall_s` contains.
        timing = Timing.compare(report.timing.wall_s, usage, outcomes, report.plan)
        report = report.model_copy(update={"outcomes": outcomes, "usage": usage, "timing": timing})
        notes += estimate_notes(spent.lost, spent.estimated)
    if spent.short:
        notes.append(f"Calls used {spent.short:,} tokens more than was estimated before they were made.")
    return report.model_copy(update={"notes": tuple(notes)})


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report: one of our own if there is one, at any depth of a group."""
    leaves: list[BaseException] = []
    groups: list[BaseException] = [group]
    for error in groups:  # grows while it is walked
        if isinstance(error, BaseExceptionGroup):
            groups.extend(error.exceptions)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        else:
            leaves.append(error)
    return next((leaf for leaf in leaves if isinstance(leaf, ChargehandError)), leaves[0])
