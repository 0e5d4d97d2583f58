"""The Python interface: Supervisor(team, model).run(request) -> Report. The command line uses the same one.

report = Supervisor(team, model="anthropic:claude-sonnet-5-5").run_sync("Describe Oslo in two sentences.")
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from chargehand.engine.engine_session import EngineInputs, Listener
from chargehand.engine.make_engine import make_engine
from chargehand.engine.people import Person
from chargehand.errors import PlanningFailed, UsageError
from chargehand.events import Event
from chargehand.models import Attribution, ModelClient
from chargehand.models.supervisor_models import RoleName, SupervisorModel
from chargehand.planner.before_spending import material_warnings
from chargehand.planner.planning_result import Unplanned
from chargehand.planner.settle_plan import plan_or_route
from chargehand.runs.check_arguments import check_arguments
from chargehand.runs.check_request import check_plan, read_plan, team_for, with_trust_notes
from chargehand.runs.continue_runs import OnSession, OpenRecord, RunLife
from chargehand.runs.event_loop import run_in_loop, wait_to_begin
from chargehand.runs.make_steps import RunJob
from chargehand.runs.record_in_thread import open_record, remote_record, run_of
from chargehand.runs.roster import supervisor_model
from chargehand.runs.session import Session
from chargehand.runs.shared_models import SharedModels
from chargehand.runs.typed_data import D, invalid_data, with_typed_data
from chargehand.settings import Settings
from chargehand.synthesizer import OnDraft
from chargehand.team import Team
from chargehand.text.json_schema import problems_in
from chargehand.values.argument_rules import path as path_rule
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.default_limits import DEFAULT_WAIT_S
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message, Reply
from chargehand.values.plan import Plan
from chargehand.values.report import Gap, Report
from chargehand.values.request import AppRun, Earlier, Material, Request, Subject
from chargehand.values.role import Role

if TYPE_CHECKING:
    from pydantic import BaseModel


class StreamOptions(TypedDict, total=False):
    """What a run takes in addition to the request and the type of its data; `Supervisor.run` has the defaults."""

    plan: Plan | Mapping[str, JSON] | None
    subject: Subject | None
    gaps: Sequence[Gap]
    app: AppRun | None
    material: str | Path | Iterable[str | Path]
    stdin: str | None
    tokens: int | None
    usd: float | None
    deadline: float | None
    max_concurrent: int | None
    max_tasks: int | None
    wait: float | None
    follow_up: str | None
    approve: bool
    ask: bool
    critic: bool
    web: bool
    single: bool | None
    record: OpenRecord | None
    person: Person | None
    on_draft: OnDraft | None
    on_session: OnSession | None
    stay: bool


class RunOptions(StreamOptions, total=False):
    """The same for a run whose events are not streamed."""

    on_event: Listener | None


class Supervisor(RunLife):
    """A team with its models and the home its runs are recorded in: starts runs, and continues those on record.

    `team` is a Team, the name of a shipped team or a folder. `model` is `provider:name`, or a client of your own such
    as a ScriptedModel. `home` is the folder that holds the records of runs. Settings come from the environment and the
    files that `chargehand` reads, unless given.
    """

    # Here, so that a wrong argument is an error of this class.
    def __init__(
        self,
        team: Team | str | Path | None = None,
        *,
        model: str | ModelClient | None = None,
        home: str | Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(team, model=model, home=home, settings=settings)
        self.shared_models = SharedModels(self._clients)

    # -- running -----------------------------------------------------------------------------------------------------

    @overload
    async def run(
        self, request: str = "", *, output_type: type[D], schema: None = None, **options: Unpack[RunOptions]
    ) -> Report[D]: ...
    @overload
    async def run(
        self, request: str = "", *, output_type: None = None, schema: None = None, **options: Unpack[RunOptions]
    ) -> Report[str]: ...
    @overload
    async def run(
        self,
        request: str = "",
        *,
        output_type: None = None,
        schema: dict[str, JSON] | None,
        **options: Unpack[RunOptions],
    ) -> Report[Any]: ...
    async def run(
        self,
        request: str = "",
        *,
        plan: Plan | Mapping[str, JSON] | None = None,
        subject: Subject | None = None,
        gaps: Sequence[Gap] = (),
        app: AppRun | None = None,
        material: str | Path | Iterable[str | Path] = (),
        stdin: str | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        wait: float | None = None,
        max_concurrent: int | None = None,
        max_tasks: int | None = None,
        schema: dict[str, JSON] | None = None,
        output_type: type[BaseModel] | None = None,
        follow_up: str | None = None,
        approve: bool = False,
        ask: bool = False,
        critic: bool = False,
        web: bool = False,
        single: bool | None = None,
        record: OpenRecord | None = None,
        person: Person | None = None,
        on_event: Listener | None = None,
        on_draft: OnDraft | None = None,
        on_session: OnSession | None = None,
        stay: bool = False,
    ) -> Report[Any]:
        """The whole loop. A plan given here is run as it is. `follow_up` names the run this one continues from.

        With `subject`, what a given plan is about, a planner may add tasks to that plan where there is a model. `gaps`
        are known before anything begins: what is missing of what the request is about. `app` says which app began the
        run, for those who continue it.
        `approve` asks a person before the plan runs, `ask` lets escalations and tool calls reach one. `person` is
        somebody to ask now; without, the run parks with status `waiting` when nothing else can continue. With `critic`
        a reviewer accepts the answer or sends it back. `web` lets the workers that the team names for it search the web
        and fetch pages. `on_draft` gets the answer as it grows: the number of the draft, and the text it grew by.
        `single` answers with one plain call instead of the team: same record, same report. Unless it says so or not,
        code decides where nobody chose a team: a small open model that has all material in its prompt does without.
        `record` opens the record of the run, once nothing is wrong with what was asked; without, a new one is made.
        `wait` is how many seconds it waits at most for a provider whose quota is used up: 6 hours unless given; 0 means
        not at all. With `stay` a run that is paused, or only waits for a provider, waits in this process; else it
        returns with status `paused` or `waiting`.
        """
        check_arguments(locals())
        if schema is not None and output_type is not None:
            raise UsageError("schema and output_type exclude each other: give one of them.")
        await wait_to_begin()
        given = read_plan(plan, self.team)
        settings = self.team_settings()
        if max_concurrent is not None:
            settings = settings.model_copy(update={"max_concurrent_set": True})
        text = request.strip() or (given.goal.strip() if given else "")
        if single and given is not None:
            raise UsageError("One plain call has no plan: leave out `single` or the plan.")
        asked = Request(
            text=text,
            material=materials(material),
            budget=Budget(tokens=tokens or settings.budget.tokens, usd=usd or settings.budget.usd),
            deadline_s=deadline or settings.deadline_s,
            wait_s=DEFAULT_WAIT_S if wait is None else wait,
            max_concurrent=max_concurrent or settings.max_concurrent,
            max_tasks=max_tasks or settings.max_tasks,
            answer_schema=output_type.model_json_schema() if output_type else _usable(schema),
            earlier=self._earlier(follow_up) if follow_up else None,
            approve=approve,
            ask=ask or self.team.ask,
            critic=critic,
            web=web,
            subject=subject if given is not None else None,
            gaps=tuple(gaps),
            app=app,
        )
        if not text:
            raise UsageError('The request is empty: say what is to be done, such as "Compare Oslo and Bergen".')
        base = self.team
        if single is None and given is None and self.is_default_team:
            from chargehand.runs.single_call import prefers_one_call  # not with a team of one's own

            why = prefers_one_call(asked, settings, stdin)
            asked, single = asked.model_copy(update={"notes": (why,) if why else ()}), why is not None
        if single:
            from chargehand.runs.single_call import single_plan, single_team

            base, given = single_team(), single_plan(text)
        team, notes = team_for(base, asked)
        asked = with_trust_notes(asked, team)
        if given is not None:
            check_plan(given, team, asked)
        job = RunJob("", asked, team, settings, given, None if single else self.team_ref)
        missing = material_warnings(asked, and_stdin=stdin is not None)
        job = job._replace(warnings=(*self.warnings, *notes, *missing))
        if settings.engine == "temporal":
            if single or stdin is not None or output_type is not None:
                raise UsageError("A run on Temporal takes no `single`, no material on stdin and no type in Python.")
            return await self._run_on_temporal(job, record, on_event)
        async with (
            self.shared_models.use_checked(settings, team, asked.budget, given) as models,
            (record or partial(open_record, self.home.create))() as journal,
        ):
            run = run_of(journal)
            if stdin is not None:
                asked = asked.model_copy(update={"material": (*asked.material, self._keep_input(run, stdin))})
            validate = invalid_data(output_type)
            job = job._replace(run=run, request=asked, validate=validate)
            # Records are opened in threads: many are there in the same turn.
            await wait_to_begin()
            report = await self._work(job, models, journal, None, person, on_event, on_draft, on_session, stay)
        return with_typed_data(report, output_type)

    async def _run_on_temporal(self, job: RunJob, record: OpenRecord | None, on_event: Listener | None) -> Report:
        # Few runs are there.
        from chargehand.runs.temporal.connection import INSTALL, with_dev_store

        try:
            from chargehand.runs.temporal.start_or_resume import run_job
        except ModuleNotFoundError as error:
            raise UsageError(f"Temporal needs {error.name}, which is not installed: {INSTALL}") from None
        settings = with_dev_store(job.settings)
        async with (record or partial(open_record, partial(remote_record, "")))() as journal:
            return await run_job(self.home, job._replace(run=run_of(journal), settings=settings), on_event, self.say)

    @overload
    def run_sync(
        self, request: str = "", *, output_type: type[D], schema: None = None, **options: Unpack[RunOptions]
    ) -> Report[D]: ...
    @overload
    def run_sync(
        self, request: str = "", *, output_type: None = None, schema: None = None, **options: Unpack[RunOptions]
    ) -> Report[str]: ...
    @overload
    def run_sync(
        self,
        request: str = "",
        *,
        output_type: None = None,
        schema: dict[str, JSON] | None,
        **options: Unpack[RunOptions],
    ) -> Report[Any]: ...
    def run_sync(
        self,
        request: str = "",
        *,
        output_type: type[BaseModel] | None = None,
        schema: dict[str, JSON] | None = None,
        **options: Unpack[RunOptions],
    ) -> Report[Any]:
        """`run` for code without an event loop. UsageError where one runs: there `await supervisor.run(...)`."""
        _refuse_unknown("run_sync", options)
        if _loop_is_running():
            raise UsageError(
                "run_sync starts an event loop, and one is already running here (as in a coroutine or a notebook): "
                "write `await supervisor.run(...)` instead."
            )
        run: Any = self.run
        begun: list[str] = []
        on_session = options.get("on_session")

        def note_run(session: Session) -> None:
            begun.append(session.run)
            if on_session is not None:
                on_session(session)

        try:
            check_arguments({"on_session": on_session})
            options["on_session"] = note_run
            return run_in_loop(run(request, output_type=output_type, schema=schema, **options))
        except UsageError as wrong:
            # What is wrong is in the caller's line, or in its function that raised, not in the frames between them.
            raise wrong.with_traceback(None) from wrong.__cause__
        except KeyboardInterrupt as stop:
            if begun and self.home.has(begun[0]):
                again = f"asyncio.run(supervisor.resume({begun[0]!r}))"
                stop.add_note(f"The run {begun[0]} is interrupted. Its results are kept. To continue it: {again}")
            raise stop.with_traceback(None) from None

    async def stream(
        self,
        request: str = "",
        *,
        output_type: type[BaseModel] | None = None,
        schema: dict[str, JSON] | None = None,
        **options: Unpack[StreamOptions],
    ) -> AsyncGenerator[Event]:
        """The run's events as they happen, typed by `event.body`; the last is a RunEnded and carries the report.

        To leave early, iterate within `async with contextlib.aclosing(supervisor.stream(...)) as events`: the run is
        stopped at the end of the block. Python does not tell a generator about a `break`.
        """
        _refuse_unknown("stream", options)
        if "on_event" in options:
            raise UsageError("stream yields the events itself: leave on_event out, or give it to run.")
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        run: Any = self.run
        work: asyncio.Future[Report] = asyncio.ensure_future(
            run(request, output_type=output_type, schema=schema, on_event=events.put_nowait, **options)
        )
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
        plan: Plan | Mapping[str, JSON] | None = None,
        subject: Subject | None = None,
        material: str | Path | Iterable[str | Path] = (),
        max_tasks: int | None = None,
        tokens: int | None = None,
    ) -> Plan:
        """The plan alone, nothing run: a new one, or a given one with what is added to it. Raises PlanningFailed."""
        check_arguments(locals())
        if not request.strip():
            raise UsageError('The request is empty: say what is to be planned, such as "Compare Oslo and Bergen".')
        given = read_plan(plan, self.team)
        settings = self.team_settings()
        asked = Request(
            text=request.strip(),
            material=materials(material),
            budget=Budget(tokens=tokens or settings.budget.tokens),
            max_tasks=max_tasks or settings.max_tasks,
        )
        roles: tuple[Role, ...] = ("planner", "router") if self.team.mode == "route" else ("planner",)
        async with self.shared_models.use(settings) as models:
            chosen: dict[RoleName, SupervisorModel] = {}
            for role in roles:
                choice = settings.model_for(role)
                models.check(choice.model)
                chosen[role] = supervisor_model(choice, models)
            # A run needs neither: it has a file, and makes its plan in a step.
            from chargehand.planner.add_to_given_plan import add_tasks
            from chargehand.record.memory_journal import MemoryJournal

            inputs = EngineInputs(run="plan", journal=MemoryJournal(), models=models, budget=asked.budget)
            async with make_engine("local", inputs) as engine:
                if given is None:
                    planned = await plan_or_route(asked, self.team, engine, chosen, [])
                else:
                    added = subject or Subject()
                    planned = await add_tasks(given, added, asked, self.team, engine, chosen["planner"], [])
        if isinstance(planned, Unplanned):
            raise PlanningFailed(planned.fault.message, planned.problems, planned.fault.kind)
        return planned.plan

    async def ask_small_model(self, messages: Sequence[Message], max_output: int = 1_000) -> Reply:
        """One call of the small model, on no record: for chores such as the title of a conversation. ModelError."""
        settings = self.team_settings()
        async with self.shared_models.use(settings) as models:
            choice = settings.model_for("router")
            models.check(choice.model)
            call = ModelCall(role="worker", model=choice.model, messages=tuple(messages), output_cap=max_output)
            whom = Attribution("", None, None, "worker", "")
            return await models.client(choice.model).complete(call, max_output, whom)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _earlier(self, run: str) -> Earlier:
        report = self.report(run)
        outcomes = tuple({"task": o.task, "status": o.status, "summary": o.summary} for o in report.outcomes)
        return Earlier(run=report.run, request=report.request, answer=report.answer, outcomes=outcomes)

    def _keep_input(self, run: str, text: str) -> Material:
        """Standard input as a file in the run's own folder, so that a resume finds it again."""
        if not self.home.has(run):
            raise UsageError("`stdin` needs a record in the home: leave out `record`, or give the text as material.")
        path = self.home.folder(run) / "stdin.txt"
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return Material(name="stdin.txt", path=str(path))


def materials(paths: str | Path | Iterable[str | Path]) -> tuple[Material, ...]:
    """Files and folders under the names workers will see; two of one name get a number."""
    paths = (paths,) if isinstance(paths, str | os.PathLike) else paths
    found: list[Material] = []
    taken: set[str] = set()
    for given in paths:
        check_arguments({"material": given}, {"material": path_rule})
        path = Path(given).expanduser().absolute()
        # os.path returns False for names that no file can have, such as too long ones, where Path raises.
        if not os.path.exists(path):
            raise UsageError(
                f"There is no file or folder {str(given)[:200]}: give an existing file or folder as material."
            )
        stem, number = path.resolve().name or "material", 2
        name = stem
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        found.append(Material(name=name, path=str(path)))
    return tuple(found)


def _refuse_unknown(method: str, options: Mapping[str, object]) -> None:
    """As Python does: `run`, which gets the options, would name itself instead of the method that was called."""
    for name in options.keys() - RunOptions.__optional_keys__:
        raise TypeError(f"Supervisor.{method}() got an unexpected keyword argument {name!r}")


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _usable(schema: dict[str, JSON] | None) -> dict[str, JSON] | None:
    if schema is not None and (wrong := problems_in(schema)):
        raise UsageError("The schema for the answer cannot be used: " + "; ".join(wrong))
    return schema
