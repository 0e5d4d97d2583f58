"""The front door: Supervisor(team, model).run(request) -> Report. The command line comes in by the same door.

report = Supervisor(team, model="anthropic:claude-sonnet-4-5").run_sync("Describe Oslo in two sentences.")
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from chargehand.answering import open_questions, record_answer
from chargehand.brains import Brain
from chargehand.budget import Budget
from chargehand.effect import Question
from chargehand.engines.local import Listener, LocalEngine, Prior
from chargehand.errors import InvalidPlan, PlanningFailed, RunNotFound, RunOwned, UsageError
from chargehand.event import Event
from chargehand.handlers import Handlers
from chargehand.home import Home
from chargehand.journal.memory import MemoryJournal
from chargehand.journal.replay import Replay, replay
from chargehand.models import ModelClient
from chargehand.models.resolve import Models
from chargehand.people import Person
from chargehand.plan import Plan, errors_in, parse
from chargehand.planner import Unplanned, make_plan
from chargehand.report import FINISHED, Gap, Report, RunStatus
from chargehand.request import Earlier, Material, Request
from chargehand.schema import problems_in
from chargehand.session import Job, Session, check_models, unfinished
from chargehand.settings import Settings, as_before, check_endpoints, found_from, load_settings
from chargehand.team import Team, load
from chargehand.team.agents import options_of
from chargehand.team.code import stored_tools
from chargehand.trust import TrustRegistry
from chargehand.value import JSON

# How long `cancel` waits for the owner to have stopped.
CANCEL_WAIT_S = 3.0
OnSession = Callable[[Session], None]


class Supervisor:
    """A team with its models and the home its runs are recorded in.

    `model` is `provider:name`, or a client of your own such as a ScriptedModel. Settings come from the environment and
    the files `chargehand` reads, unless given.
    """

    def __init__(
        self,
        team: Team | str | Path | None = None,
        *,
        model: str | ModelClient | None = None,
        home: str | Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._clients: dict[str, ModelClient] = {}
        if model is not None and not isinstance(model, str):
            self._clients["client"] = model
            model = "scripted:client"
        self._in_use: dict[str, tuple[Models, int]] = {}
        self.warnings: list[str] = []
        if settings is None:
            settings, self.warnings = load_settings(os.environ, Path.cwd(), {"model": model})
        if model is not None:
            model = model if self._clients else found_from(model, Path.cwd())
            settings = settings.model_copy(update={"model": model})
        if home is not None:
            settings = settings.model_copy(update={"home": str(Path(home).expanduser().absolute())})
        self.settings = settings
        self.home = Home(Path(settings.home))
        self._trust = TrustRegistry(settings.home)
        self._given = team
        # How to load the team again: a shipped name, or a folder wherever the next command is given.
        self.team_ref = None if isinstance(team, Team) else _reference(team or settings.team)

    @property
    def team(self) -> Team:
        """The team, loaded at first use."""
        if not isinstance(self._given, Team):
            self._given = load(self.team_ref or "general", self._trust)
        return self._given

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(
        self,
        request: str = "",
        *,
        plan: Plan | Mapping[str, JSON] | None = None,
        material: Iterable[str | Path] = (),
        stdin: str | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        max_concurrent: int | None = None,
        max_tasks: int | None = None,
        schema: dict[str, JSON] | None = None,
        output_type: type[BaseModel] | None = None,
        follow_up: str | None = None,
        approve: bool = False,
        ask: bool = False,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_session: OnSession | None = None,
    ) -> Report:
        """The whole loop. A plan given here is run as it is. `follow_up` names the run this one continues from.

        `approve` asks a person before the plan runs, `ask` lets escalations and tool calls reach one. `person` is
        somebody to ask now; without, the run parks with status `waiting` when nothing else can go on.
        """
        _positive(tokens=tokens, usd=usd, deadline=deadline, max_concurrent=max_concurrent, max_tasks=max_tasks)
        given = plan if plan is None or isinstance(plan, Plan) else parse(plan)
        settings = self._settings()
        text = request.strip() or (given.goal.strip() if given else "")
        asked = Request(
            text=text,
            material=materials(material),
            budget=Budget(tokens=tokens or settings.budget.tokens, usd=usd or settings.budget.usd),
            deadline_s=deadline or settings.deadline_s,
            max_concurrent=max_concurrent or settings.max_concurrent,
            max_tasks=max_tasks or settings.max_tasks,
            answer_schema=output_type.model_json_schema() if output_type else _usable(schema),
            earlier=self._earlier(follow_up) if follow_up else None,
            approve=approve,
            ask=ask or self.team.ask,
        )
        if not text:
            raise UsageError('The request is empty: say what is to be done, as in chargehand run "Compare ...".')
        if given is not None:
            check_plan(given, self.team, asked)
        await self._check_models(settings, asked.budget)
        journal = self.home.create()
        run = journal.run
        try:
            if stdin is not None:
                asked = asked.model_copy(update={"material": (*asked.material, self._kept(run, stdin))})
            self.home.note(run, request=asked.text, team=self.team.name, status="running")
            job = Job(
                run,
                asked,
                self.team,
                settings,
                given,
                self.team_ref,
                warnings=tuple(self.warnings),
                validate=partial(_invalid, output_type) if output_type else None,
            )
            report = await self._work(job, journal, None, person, on_event, on_session)
        finally:
            journal.close()
        return _typed(report, output_type)

    def run_sync(self, request: str = "", **options: Any) -> Report:
        """`run` for code without an event loop."""
        return asyncio.run(self.run(request, **options))

    async def stream(self, request: str = "", **options: Any) -> AsyncGenerator[Event]:
        """The run's events as they happen; the last is run_ended and carries the report."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.ensure_future(self.run(request, on_event=events.put_nowait, **options))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await work
        finally:
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def plan(
        self,
        request: str,
        *,
        material: Iterable[str | Path] = (),
        max_tasks: int | None = None,
        tokens: int | None = None,
    ) -> Plan:
        """The plan alone, nothing run. Raises PlanningFailed."""
        _positive(max_tasks=max_tasks, tokens=tokens)
        if not request.strip():
            raise UsageError('The request is empty: say what is to be planned, as in chargehand plan "Compare ...".')
        settings = self._settings()
        asked = Request(
            text=request.strip(),
            material=materials(material),
            budget=Budget(tokens=tokens or settings.budget.tokens),
            max_tasks=max_tasks or settings.max_tasks,
        )
        choice = settings.model_for("planner")
        async with self._models(settings) as models:
            models.check(choice.model)
            async with LocalEngine("plan", MemoryJournal(), Handlers(models), budget=asked.budget) as engine:
                brain = Brain(model=choice.model, options=options_of(choice), window=models.window(choice.model))
                planned = await make_plan(asked, self.team, engine, brain)
        if isinstance(planned, Unplanned):
            raise PlanningFailed(planned.fault.message, planned.problems, planned.fault.kind)
        return planned.plan

    # -- going on ----------------------------------------------------------------------------------------------------

    async def resume(
        self,
        run: str,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        retry_failed: bool = False,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_session: OnSession | None = None,
    ) -> Report:
        """Go on with a run that stopped, with the team and settings it started with. What is committed is not repeated.

        `tokens`, `usd` and `deadline` are added to what it had, and reopen what ended for lack of them.
        """
        _positive(tokens=tokens, usd=usd, deadline=deadline)
        run = self.home.find(run)
        topped_up = tokens is not None or usd is not None or deadline is not None
        with closing(self.home.read(run)) as reader:
            state = replay(reader.events())
        if state.status in FINISHED and not (topped_up or retry_failed) and state.report is not None:
            return Report.model_validate(state.report)
        journal = self.home.open(run)
        try:
            state = replay(journal.events())
            if state.status in FINISHED and not (topped_up or retry_failed) and state.report is not None:
                return Report.model_validate(state.report)
            job = self._job_of(run, state, tokens=tokens, usd=usd, deadline=deadline, retry_failed=retry_failed)
            self.home.clear_cancel(run)
            self.home.note(run, status="running")
            return await self._work(job, journal, state, person, on_event, on_session)
        finally:
            journal.close()

    async def rerun(
        self,
        run: str,
        *,
        plan: Plan | Mapping[str, JSON] | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_session: OnSession | None = None,
    ) -> Report:
        """A new run of the same request from the files as they are now; what has not changed is not done again.

        The model that was forced for the first run is used again, unless this door was given one.
        """
        run = self.home.find(run)
        with closing(self.home.read(run)) as reader:
            state = replay(reader.events())
        if not state.start:
            raise _no_request(run)
        asked = Request.model_validate(state.start["request"])
        if self.team_ref is not None:
            self.team_ref = state.start["team"].get("ref") or self.team_ref
            self._given = load(self.team_ref, self._trust)
        given = plan if plan is None or isinstance(plan, Plan) else parse(plan)
        if given is None and state.plan_given:
            given = parse(state.plan or state.drafted)
        if given is not None:
            check_plan(given, self.team, asked)
        before = Settings.model_validate(state.start["settings"])
        settings, changed = as_before(run, before, self._settings())
        await self._check_models(settings, asked.budget)
        journal = self.home.create()
        try:
            self.home.note(journal.run, request=asked.text, team=self.team.name, status="running")
            job = Job(
                journal.run,
                asked,
                self.team,
                settings,
                given,
                self.team_ref,
                prior=Prior(run, state),
                warnings=(*self.warnings, *changed),
            )
            return await self._work(job, journal, None, person, on_event, on_session)
        finally:
            journal.close()

    async def cancel(self, run: str) -> tuple[RunStatus, bool]:
        """Stop a run, whoever has it: its status now, and whether this stopped it. Resumable."""
        run = self.home.find(run)
        if self.home.owner(run) is not None:
            self.home.request_cancel(run)
            return await self._stopped_by_owner(run)
        with closing(self.home.open(run)) as journal:
            state = replay(journal.events())
            if state.report is not None and (state.status in FINISHED or state.status == "cancelled"):
                return Report.model_validate(state.report).status, False
            report = unfinished(state, "cancelled").model_copy(update={"run": run})
            data = {"status": report.status, "report": report.to_json(), "by": "command"}
            await journal.append([Event(run, state.seq + 1, time.time(), "run_ended", data=data)], {})
        self.home.clear_cancel(run)
        self.home.note(run, status="cancelled", ended=time.time())
        return "cancelled", True

    async def _stopped_by_owner(self, run: str) -> tuple[RunStatus, bool]:
        """The owner looks for the request twice a second, and may end by itself before."""
        for _ in range(int(CANCEL_WAIT_S / 0.05)):
            if self.home.owner(run) is None:
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

    def report(self, run: str) -> Report:
        """What the record says now: the final report, or how far it has come."""
        run = self.home.find(run)
        with closing(self.home.read(run)) as reader:
            state = replay(reader.events())
        if state.report is not None:
            return Report.model_validate(state.report)
        if self.home.owner(run):
            return unfinished(state, "running")
        return unfinished(state, "waiting" if state.open_questions() else "interrupted")

    def questions(self, run: str) -> tuple[Question, ...]:
        """What the run asks a person and has no answer to, in the order it was asked; none once it has ended."""
        with closing(self.home.read(self.home.find(run))) as reader:
            return open_questions(replay(reader.events()))

    async def answer(self, run: str, question: str, words: str) -> tuple[Question, ...]:
        """Put a person's answer on the record of a run nobody runs now; `resume` goes on with it.

        Gives what is still open. An answer that cannot be used is refused and changes nothing: InvalidAnswer.
        """
        run = self.home.find(run)
        try:
            journal = self.home.open(run)
        except RunOwned as error:
            raise RunOwned(
                f"{error} It asks on its own terminal; answer there, or here once it waits with exit code 4."
            ) from None
        with closing(journal):
            return await record_answer(run, journal, question, words)

    # -- parts -------------------------------------------------------------------------------------------------------

    async def _work(
        self,
        job: Job,
        journal: Any,
        earlier: Replay | None,
        person: Person | None,
        on_event: Listener | None,
        on_session: OnSession | None,
    ) -> Report:
        listeners = () if on_event is None else (on_event,)
        async with self._models(job.settings) as models:
            session = Session(job, journal, models, home=self.home, earlier=earlier, listeners=listeners, person=person)
            if on_session is not None:
                on_session(session)
            return await session.work()

    async def _check_models(self, settings: Settings, budget: Budget) -> None:
        """Before there is a record: what cannot begin leaves none."""
        async with self._models(settings) as models:
            check_models(models, settings, self.team, budget)

    def _settings(self) -> Settings:
        """With the team's own limits, budget and models laid over what files set."""
        return self.settings.for_team(self.team.models, self.team.budget, self.team.limits)

    @asynccontextmanager
    async def _models(self, settings: Settings) -> AsyncGenerator[Models]:
        """The clients, shared by all runs under way in this loop and closed with the last of them."""
        name = settings.model_dump_json(include={"providers"})
        models, users = self._in_use.get(name) or (Models(settings.providers, os.environ, self._clients), 0)
        self._in_use[name] = (models, users + 1)
        try:
            yield models
        finally:
            models, users = self._in_use.pop(name)
            if users > 1:
                self._in_use[name] = (models, users - 1)
            else:
                await models.close()

    def _earlier(self, run: str) -> Earlier:
        report = self.report(run)
        outcomes = tuple({"task": o.task, "status": o.status, "summary": o.summary} for o in report.outcomes)
        return Earlier(run=report.run, request=report.request, answer=report.answer, outcomes=outcomes)

    def _kept(self, run: str, text: str) -> Material:
        """Standard input as a file in the run's own folder, so that a resume finds it again."""
        path = self.home.folder(run) / "stdin.txt"
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return Material(name="stdin.txt", path=str(path))

    def _prior(self, run: str | None) -> Prior | None:
        """The run a rerun repeats, as far as it is still there."""
        if run is None:
            return None
        try:
            with closing(self.home.read(run)) as reader:
                return Prior(run, replay(reader.events()))
        except RunNotFound:
            return None  # pruned since: what it would have lent is done anew

    def _job_of(
        self,
        run: str,
        state: Replay,
        *,
        tokens: int | None,
        usd: float | None,
        deadline: float | None,
        retry_failed: bool,
    ) -> Job:
        """The job as the record has it, topped up."""
        if not state.start:
            raise _no_request(run)
        request = Request.model_validate(state.start["request"])
        budget = request.budget
        reopen: set[str] = set()
        topped_up = tokens is not None or usd is not None or deadline is not None
        if tokens is not None:
            budget = budget.model_copy(update={"tokens": (budget.tokens or state.spent_tokens) + tokens})
        if usd is not None:
            budget = budget.model_copy(update={"usd": (budget.usd or state.spent_usd) + usd})
        if deadline is not None:
            request = request.model_copy(update={"deadline_s": state.owned_s + deadline})
        for outcome in state.ended.values():
            short = outcome.error is not None and outcome.error.kind in ("budget", "deadline")
            if (retry_failed and outcome.status in ("failed", "escalated")) or (short and topped_up):
                reopen.add(outcome.task)
        written = state.plan or (state.drafted if state.plan_given else None)
        plan = parse(written) if written else None
        stored = state.start["team"]
        if isinstance(self._given, Team):
            tools, warnings = self._given.tools(), list[str]()
        else:
            tools, warnings = stored_tools(stored, self._trust)
        team = Team.from_json(stored, tools)
        settings = Settings.model_validate(state.start["settings"])
        own = [worker.model for worker in team.workers if worker.model]
        check_endpoints(run, settings, self.settings, own, os.environ)
        return Job(
            run,
            request.model_copy(update={"budget": budget}),
            team,
            settings,
            plan if state.plan_given else None,
            stored.get("ref"),
            prior=self._prior(state.start.get("rerun_of")),
            reopen=(_with_dependents(plan, reopen) if plan else ()) if topped_up or retry_failed else None,
            warnings=tuple(warnings),
        )


def _reference(team: str | Path) -> str:
    return str(Path(team).absolute()) if Path(team).is_dir() else str(team)


def check_plan(plan: Plan, team: Team, request: Request) -> None:
    """Raise InvalidPlan with every error in a plan that is to be run as it is."""
    problems = plan.problems(team.names, max_tasks=request.max_tasks, budget_tokens=request.budget.tokens)
    if wrong := errors_in(problems):
        lines = "".join(f"\n  {problem.message}" for problem in wrong[:50])
        more = f"\n  and {len(wrong) - 50:,} more" if len(wrong) > 50 else ""
        raise InvalidPlan(f"The plan cannot be run:{lines}{more}", problems)


def materials(paths: Iterable[str | Path]) -> tuple[Material, ...]:
    """Files and folders under the names workers will see; two of one name get a number."""
    found: list[Material] = []
    taken: set[str] = set()
    for given in paths:
        path = Path(given).expanduser().absolute()
        if not path.exists():
            raise UsageError(f"There is no {given}: --with takes a file or a folder.")
        stem, number = path.resolve().name or "material", 2
        name = stem
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        found.append(Material(name=name, path=str(path)))
    return tuple(found)


def _positive(**limits: float | None) -> None:
    """Limits of zero or less stop everything or mean nothing: all of them are named at once."""
    if wrong := [f"{name} is {value:g}" for name, value in limits.items() if value is not None and value <= 0]:
        raise UsageError(f"{', '.join(wrong)}: give a number above 0, or leave it out.")


def _no_request(run: str) -> UsageError:
    return UsageError(
        f"The record of {run} holds no request: it stopped before it began. Start it anew with `chargehand run`."
    )


def _usable(schema: dict[str, JSON] | None) -> dict[str, JSON] | None:
    if schema is not None and (wrong := problems_in(schema)):
        raise UsageError("The schema for the answer cannot be used: " + "; ".join(wrong))
    return schema


def _typed(report: Report, output_type: type[BaseModel] | None) -> Report:
    """The report with its data as the type asked for; data that is not valid stays plain JSON, which is a gap."""
    if output_type is None or report.data is None:
        return report
    checked = _checked(output_type, report.data)
    if isinstance(checked, BaseModel):
        return report.model_copy(update={"data": checked})
    if any(gap.reason == checked for gap in report.gaps):
        return report
    gap = Gap(reason=checked, impact="`data` is as the model gave it.")
    status = "partial" if report.status == "complete" else report.status
    return report.model_copy(update={"gaps": (*report.gaps, gap), "status": status})


def _invalid(output_type: type[BaseModel], data: JSON) -> str | None:
    checked = _checked(output_type, data)
    return checked if isinstance(checked, str) else None


def _checked(output_type: type[BaseModel], data: JSON) -> BaseModel | str:
    """The data as the type, or why it is not valid: the caller's validators may raise anything."""
    try:
        return output_type.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        why = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'data'}: {e['msg']}" for e in found[:20])
    except Exception as error:  # noqa: BLE001 -- recorded: it becomes a gap of the report
        why = f"its validator raised {type(error).__name__}: {error}"
    return f"The answer is not a valid {output_type.__name__}: {why}"


def _with_dependents(plan: Plan, tasks: set[str]) -> tuple[str, ...]:
    """The tasks and all that rest on them, in plan order: what those were given is about to change."""
    found = set(tasks)
    for task in plan.in_order():
        if found.intersection(task.depends_on):
            found.add(task.id)
    return tuple(task.id for task in plan.tasks if task.id in found)
