"""An order for one step -> its head: the local engine runs the step on the record of its segment, in the blob store.

A step that is tried again, on this machine or another, reads what the earlier try committed, and continues.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from chargehand.engine.engine_session import EngineInputs, EngineSession, Opening, Parked, Prior
from chargehand.engine.make_engine import make_engine
from chargehand.engine.people import read_words
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import (
    CARRY,
    CLOSE,
    MOST_TRIES,
    RECALL,
    RUN,
    TAKE_ORDERS,
    JsonObject,
    StepOrder,
    StepResult,
    pack,
    pack_head,
    read_refs,
    total_usage,
)
from chargehand.errors import (
    ChargehandError,
    OtherBlobStore,
    OwnershipLost,
    RecordDamaged,
    StoreUnreachable,
    UsageError,
)
from chargehand.events import Event, PlanApproved
from chargehand.models.resolve import Models
from chargehand.record.replay import Replay, replay
from chargehand.runs.make_steps import RunJob, make_steps, role_models, tools_of
from chargehand.runs.temporal.blob_source import fold_run
from chargehand.runs.temporal.close_run import close_run
from chargehand.runs.temporal.notes_as_events import marked_refs, notes_as_events
from chargehand.runs.temporal.recall_run import recall_page
from chargehand.runs.temporal.stored_run import (
    BlobMailbox,
    FetchedMailbox,
    StoredOutcomes,
    fetch_material,
    hold_path,
    keep_document,
    read_start,
    read_step,
)
from chargehand.runs.temporal.take_orders import take_orders
from chargehand.runs.temporal.worker_health import WorkerHealth
from chargehand.runs.temporal.write_run_notes import carry_notes
from chargehand.settings import Settings
from chargehand.steps.run_steps import RunSteps
from chargehand.team import Team
from chargehand.text.plan_json import parse
from chargehand.tools import ToolContext
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import Question
from chargehand.values.order import Restart
from chargehand.values.outcome import Usage
from chargehand.values.plan import Plan, Task
from chargehand.values.step import Head, StepRefs

HEARTBEAT_S = 2.0
FIRST_HEARTBEAT_S = 1.0
# How often a step looks for words to its worker.
ORDERS_POLL_S = 1.0
# A line of the log names step and run itself.
activity.logger.activity_info_on_message = False
# Errors that another try, here or elsewhere, may not have.
_TRY_AGAIN = (OwnershipLost, StoreUnreachable, OtherBlobStore)
# A worker that cannot read a run takes its steps from those that can: however often it has, the next try is soon.
_OTHER_WORKER = timedelta(seconds=1)


@dataclass
class LoadedRun:
    """What is the same for all steps of a run, read once in a process."""

    job: RunJob
    folder: Path
    approved: PlanApproved | None = None
    plan: Plan | None = None
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    ids: frozenset[str] = frozenset()


class StepActivity:
    """One per worker process and team."""

    def __init__(
        self,
        store: BlobStore,
        team: Team,
        settings: Settings,
        models: Models,
        folder: Path,
        health: WorkerHealth | None = None,
    ) -> None:
        self._health = health or WorkerHealth()
        self._store = store
        self._team = team
        self._settings = settings
        self._models = models
        self._folder = folder
        self._runs: dict[str, LoadedRun] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        # Run -> when its orders were last listed, and the list: one listing for all its steps here.
        self._looks: dict[str, tuple[float, asyncio.Future[frozenset[str]]]] = {}

    @activity.defn(name="chargehand.step")
    async def carry_out(self, packed: dict[str, Any]) -> dict[str, Any]:
        order = StepOrder(**packed)
        self._health.steps += 1
        async with _heartbeats():
            try:
                return pack(await self._carry_out(order))
            except asyncio.CancelledError:
                if activity.is_worker_shutdown():
                    raise ApplicationError("This worker ends.", type="Shutdown") from None
                raise
            except _TRY_AGAIN as error:
                activity.logger.warning("step %s of %s is tried again: %s", order.key, order.run, error)
                raise _for_history(error, final=False) from None
            except ChargehandError as error:
                activity.logger.warning("step %s of %s: %s", order.key, order.run, error)
                raise _for_history(error, final=True) from None
            except Exception as error:  # noqa: BLE001 -- a bug: in the log with its trace, and not tried again
                activity.logger.exception("step %s of %s", order.key, order.run)
                raise ApplicationError("It is a bug.", type=type(error).__name__, non_retryable=True) from None
            finally:
                self._health.steps -= 1

    async def _carry_out(self, order: StepOrder) -> StepResult:
        store, run = self._store, order.run
        if order.kind in (RECALL, TAKE_ORDERS, CARRY, CLOSE) and run not in self._runs:
            await asyncio.to_thread(self._read_start, run)
        if order.kind == RECALL:
            return await recall_page(store, order, _token(order), self._models)
        if order.kind == TAKE_ORDERS:
            return await take_orders(store, order, _token(order), self._models)
        if order.kind == CARRY:
            journal = await asyncio.to_thread(BlobJournal.open, store, run, RUN, _token(order))
            await carry_notes(store, journal, order)
            return StepResult()
        if order.kind == CLOSE:
            return await close_run(store, order, _token(order))
        loaded, refs = await self._load(run), read_refs(order.refs)
        # One thread for all reads: handing work to a thread costs more than most reads.
        opened = await asyncio.to_thread(self._open, order, refs, _token(order))
        if isinstance(opened, StepResult):
            return opened
        return await _Step(order, refs, loaded, *opened, store, self._models, self).run()

    def _open(self, order: StepOrder, refs: StepRefs, token: int) -> StepResult | tuple[BlobJournal, StoredOutcomes]:
        """The result of a step that has ended; else its segment, opened, and the outcomes that it needs."""
        done = read_step(self._store, order.run, order.key)
        if done is not None and done["result"].get("turn", 0) >= order.turn:
            return StepResult(**done["result"]["step"])
        journal = BlobJournal.open(self._store, order.run, order.segment, token)
        outcomes = StoredOutcomes(self._store, order.run)
        self._load_outcomes(outcomes, order, refs)
        return journal, outcomes

    def _load_outcomes(self, outcomes: StoredOutcomes, order: StepOrder, refs: StepRefs) -> None:
        words = [refs.words, *order.added]
        whole = refs.task.rpartition(".s.")[0]
        if whole:
            words.append(f"{whole}/parts")
        ends = {note[1]: note[3] for note in order.notes if note[0] == "task_ended"}
        outcomes.load({**ends, **order.ends}, [refs.outcome, *marked_refs(order.notes)], words)

    async def orders_of(self, run: str) -> frozenset[str]:
        """The paths of people's orders to a run that no step has taken yet."""
        now = asyncio.get_running_loop().time()
        looked, found = self._looks.get(run, (0.0, None))
        if found is None or now - looked > ORDERS_POLL_S / 2:
            list_orders = partial(self._store.list, self._store.path(run, "orders"))
            found = asyncio.ensure_future(_as_set(list_orders))
            self._looks = {each: look for each, look in self._looks.items() if look[0] > now - 60} | {run: (now, found)}
        return await asyncio.shield(found)

    async def _load(self, run: str) -> LoadedRun:
        async with self._loading.setdefault(run, asyncio.Lock()):
            if (known := self._runs.get(run)) is None:
                known = self._runs[run] = await asyncio.to_thread(self._read_run, run)
                while len(self._runs) > 50:
                    self._runs.pop(next(iter(self._runs)))
            if known.plan is None:
                await asyncio.to_thread(self._read_plan, known)
            return known

    def _read_start(self, run: str) -> JsonObject:
        """What the run is about; OtherBlobStore if it is not here, since what a step wrote here would be lost."""
        try:
            return read_start(self._store, run)
        except (UsageError, RecordDamaged) as error:
            raise OtherBlobStore(
                f"The worker {os.getpid()}@{socket.gethostname()} cannot read the run: {error} Give this worker the "
                "blob store and the key with which the run was started ([temporal] blobs, key_env), and start it again."
            ) from error

    def _read_run(self, run: str) -> LoadedRun:
        start = self._read_start(run)
        folder = self._folder / run
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        request = fetch_material(self._store, run, start, folder / "material")
        settings = Settings.model_validate(start["settings"])
        own = self._settings
        # Endpoints and names of key variables come from this machine, never from the record.
        settings = settings.model_copy(update={"providers": own.providers, "home": own.home})
        team = self._team.with_web() if request.web else self._team
        plan = None if start["plan"] is None else parse(start["plan"])
        earlier: str | None = start["rerun_of"]
        prior = None if earlier is None else Prior(earlier, fold_run(self._store, earlier))
        job = RunJob(run, request, team, settings, plan, prior=prior, warnings=tuple(start["warnings"]))
        return LoadedRun(job, folder)

    def _read_plan(self, loaded: LoadedRun) -> None:
        """The plan that may run, once there is one."""
        record = BlobJournal.read(self._store, loaded.job.run, "@plan")
        for event in record.events():
            if isinstance(event.body, PlanApproved) and event.body.within is None:
                loaded.approved = event.body
                loaded.plan = parse(event.body.plan)
                loaded.tasks = {task.id: task for task in loaded.plan.tasks}
                loaded.ids = frozenset(loaded.tasks)


@dataclass
class _Step:
    """One try at a step."""

    order: StepOrder
    refs: StepRefs
    loaded: LoadedRun
    journal: BlobJournal
    outcomes: StoredOutcomes
    store: BlobStore
    models: Models
    owner: StepActivity

    def __post_init__(self) -> None:
        self.letters = BlobMailbox(self.store, self.order.run, self.order.segment)
        self.mailbox = FetchedMailbox(self.letters)

    async def run(self) -> StepResult:
        order, job = self.order, self.loaded.job
        events = list(self.journal.events())
        task = self._planned_task()
        known = Replay(run=job.run, plan=None if order.segment == "@plan" else {"tasks": [task] if task else []})
        state = replay(events, job.run, known)
        now = order.now + max(time.time() - order.at, 0.0)
        if order.restarted:
            state.restarted |= await asyncio.to_thread(self._restarts)
        state.move_clock(now, {self.refs.task: order.waited} if order.waited else {})
        supervisors = role_models(job.settings, self.models)
        writer = supervisors["synthesizer"].model if "synthesizer" in supervisors else None
        async with make_engine("local", self._inputs(state, writer)) as engine:
            if order.task_budget is not None:
                engine.budget.allot(self.refs.task, Budget.model_validate(order.task_budget))
            self._carry_notes(engine, events)
            steps = make_steps(job, self.models, engine, supervisors)
            engine.serve(steps)
            await self._read_orders(engine)
            result = await self._work(engine, steps, state)
        await self.mailbox.remove_taken()
        if result.waits is None:
            urls = engine.record.urls() if order.kind == "attempt" else ()
            kept = {"step": asdict(result), "turn": order.turn, "segment": order.segment, "refs": order.refs}
            await asyncio.to_thread(self.outcomes.save, order.key, kept, self.journal.last_seq, time.time(), urls)
        return result

    def _planned_task(self) -> dict[str, Any] | None:
        task = self.loaded.tasks.get(self.refs.task)
        return None if task is None else task.to_json()

    def _inputs(self, state: Replay, writer: str | None) -> EngineInputs:
        order, job = self.order, self.loaded.job
        whole = order.segment == "@plan"
        request = job.request.to_json()
        request["material"] = [{"name": each.name, "path": ""} for each in job.request.material]
        opening = Opening(
            request if whole else {},
            job.team.to_json() if whole else {},
            job.settings.model_copy(update={"home": ""}).to_json() if whole else {},
            job.prior.run if whole and job.prior is not None else None,
            reopen=((self.refs.task,) if self.refs.task else ()) if order.reopens else None,
            warnings=job.warnings if whole and not state.seq else (),
        )
        return EngineInputs(
            run=job.run,
            journal=self.journal,
            models=self.models,
            tools=tools_of(job.team),
            context=ToolContext(
                material=job.request.material,
                folder=self.loaded.folder,
                keep_document=partial(keep_document, self.store, job.run),
            ),
            prior=job.prior,
            replay=state,
            opening=opening,
            wait_s=job.request.wait_s,
            deadline_s=order.deadline_s,
            budget=Budget(tokens=order.tokens, usd=order.usd),
            max_concurrent=job.request.max_concurrent,
            hedge_after_s=job.team.recovery.hedge_after_s,
            writer=writer,
            read_answer=self._read_answer,
            mailbox=self.mailbox,
            outcomes=self.outcomes,
            urls=tuple(self.outcomes.urls),
            sets_aside_reading=False,
            may_get_more=order.may_get_more,
        )

    def _read_answer(self, question: Question, words: str) -> JSON:
        job = self.loaded.job
        return read_words(question, words, job.request, job.team.names, job.team.factory)

    def _carry_notes(self, engine: EngineSession, events: list[Event]) -> None:
        """Put the events that the workflow sent along on the record, unless an earlier try has done so."""
        for event in notes_as_events(self.order, self.outcomes):
            same = (event.kind, event.task, event.attempt, event.data)
            if all((each.kind, each.task, each.attempt, each.data) != same for each in events):
                engine.emit(event.body, task=event.task, attempt=event.attempt)

    async def _work(self, engine: EngineSession, steps: RunSteps, state: Replay) -> StepResult:
        main = asyncio.ensure_future(engine.until_parked(self._step(engine, steps, state)))
        watch = asyncio.ensure_future(self._watch(engine))
        try:
            head, ended = await main
        except Parked as parked:
            await engine.commit()
            waits = {"paused": "hold", "short": "budget"}.get(parked.status)
            return self._waiting(engine) if waits is None else self._result(engine, waits=waits)
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            for each in (watch, main):
                each.cancel()
            await asyncio.gather(watch, main, return_exceptions=True)
        return self._result(engine, head=pack_head(head), ended=ended)

    async def _step(self, engine: EngineSession, steps: RunSteps, state: Replay) -> tuple[Head, bool]:
        order, refs = self.order, self.refs
        kind: Any = order.kind
        if kind == "plan":
            return await steps.run(order.key, kind, refs), False
        self._continue(steps)
        if refs.draft is not None:
            # Its calls are on the record: it is written again without new calls.
            draft = await asyncio.to_thread(read_step, self.store, order.run, refs.draft)
            assert draft is not None
            await steps.run(refs.draft, "write", read_refs(draft["result"]["refs"]))
        if kind != "attempt":
            return await steps.run(order.key, kind, refs), False
        if (
            (before := state.ended.get(refs.task)) is not None
            and before.ok
            and state.attempts[refs.task] == refs.attempt
        ):
            head = engine.outcomes.keep(refs.task, before)  # a try before this one has come so far
            return head.model_copy(update={"ref": order.key, "usage": self._last_usage(before.usage)}), True
        head = engine.record.end_of_attempt(refs.task, refs.attempt) or await steps.run(order.key, kind, refs)
        if not head.ok or not order.ends_task:
            return head, False
        usage = Usage.total([total_usage(order.used), head.usage]) if order.used else head.usage
        engine.end_task(head.model_copy(update={"attempts": refs.attempt, "usage": usage}))
        return head, True

    def _last_usage(self, whole: Usage) -> Usage:
        """The usage of the last attempt: all of its task's if there was no attempt before, else empty."""
        return whole if not self.order.used else Usage()

    def _continue(self, steps: RunSteps) -> None:
        loaded, order = self.loaded, self.order
        assert loaded.plan is not None
        assert loaded.approved is not None
        plan, tasks, ids = loaded.plan, loaded.tasks, loaded.ids
        for ref in order.added:
            added = self.outcomes.tasks_at(ref)
            plan = plan.with_tasks(added)
            tasks = {**tasks, **{task.id: task for task in added}}
            ids = frozenset(tasks)
        if order.restarted:
            plan = plan.model_copy(update={"tasks": steps.as_restarted(plan.tasks)})
            tasks = {task.id: task for task in plan.tasks}
        used = [Usage.model_validate(loaded.approved.usage or {}), *(Usage.model_validate(u) for u in order.planning)]
        planned = not loaded.approved.given and loaded.job.team.mode != "route"
        steps.continue_with(plan, tasks, used, planned=planned, ids=ids)

    async def _watch(self, engine: EngineSession) -> None:
        """Look for words to the worker, for answers, and whether the run is held."""
        while True:
            await asyncio.sleep(ORDERS_POLL_S)
            await self._read_orders(engine)

    async def _read_orders(self, engine: EngineSession) -> None:
        there = await self.owner.orders_of(self.order.run)
        if hold_path(self.store, self.order.run) in there:
            engine.hold()
        if any(path.startswith(f"{self.letters.folder}/") for path in there):
            await self.mailbox.fetch()
        await engine.read_orders()

    def _restarts(self) -> dict[str, Restart]:
        """The tasks that people restarted, with their new words and models."""
        events = BlobJournal.read(self.store, self.order.run, RUN).events()
        return replay(events, self.order.run, Replay(plan={"tasks": []})).restarted

    def _waiting(self, engine: EngineSession) -> StepResult:
        state = replay(self.journal.events(), self.order.run, Replay(plan={"tasks": []}))
        wait = state.waits.for_provider
        until = None if wait is None else wait[0]
        waits = "person" if state.open_questions() or wait is None else "provider"
        return self._result(engine, waits=waits, until=until)

    def _result(self, engine: EngineSession, **fields: Any) -> StepResult:
        spent, extra = engine.spent, None
        if spent.lost.calls or spent.estimated or spent.short:
            extra = {"lost": spent.lost.to_json(), "estimated": list(spent.estimated), "short": spent.short}
        return StepResult(tokens=spent.tokens, usd=spent.usd, extra=extra, **fields)


async def _as_set(list_paths: Callable[[], list[str]]) -> frozenset[str]:
    return frozenset(await asyncio.to_thread(list_paths))


def _token(order: StepOrder) -> int:
    return order.turn * MOST_TRIES + min(activity.info().attempt, MOST_TRIES - 1)


def _for_history(error: ChargehandError, *, final: bool) -> ApplicationError:
    """An error as the history may have it: what a store reported, but no message that can quote a text of the run."""
    match error:
        case OwnershipLost() | StoreUnreachable() | OtherBlobStore():
            said = str(error)
        case RecordDamaged():
            said = str(error).partition(" (")[0] + ". The log of the worker says how. Restore it, or start a new run."
        case _:
            said = "The log of the worker says why."
    # Benign: it is in the log already, and the library would add its own trace of the call.
    category = ApplicationErrorCategory.BENIGN
    soon = _OTHER_WORKER if isinstance(error, OtherBlobStore) else None
    return ApplicationError(
        said, type=type(error).__name__, non_retryable=final, category=category, next_retry_delay=soon
    )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    found: list[BaseException] = [group]
    for error in found:
        if isinstance(error, BaseExceptionGroup):
            found.extend(error.exceptions)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        else:
            return error
    return group


@asynccontextmanager
async def _heartbeats() -> AsyncGenerator[None]:
    async def beat() -> None:
        await asyncio.sleep(FIRST_HEARTBEAT_S)
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_S)

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
