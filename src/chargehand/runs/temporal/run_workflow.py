"""The order of a run as a workflow of Temporal: the same flow and dispatcher, over heads, with steps as activities.

This module and its imports do no I/O. A change to what it decides is caught by the stored histories in the tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, is_cancelled_exception

from chargehand import flow
from chargehand.engine.temporal.step_order import (
    CARRY,
    CLOSE,
    MOST_TURNS,
    RECALL,
    RUN,
    TAKE_ORDERS,
    StepOrder,
    StepResult,
    pack,
    read_head,
)
from chargehand.engine.temporal.workflow_engine import WorkflowEngine
from chargehand.engine.temporal.workflow_ledger import WorkflowLedger
from chargehand.values.budget import Budget
from chargehand.values.step import Head

WORKFLOW = "chargehand.run"
STEP = "chargehand.step"
# A worker reports within this time that it is alive; otherwise its step is given to another worker.
HEARTBEAT_TIMEOUT = timedelta(seconds=15)
# No step takes longer: the limits of attempts are kept inside.
LONGEST_STEP = timedelta(days=7)
# After the deadline workers end by themselves; what they have not ended by then is given up.
OVERDUE_S = 15.0
# Errors that another worker may not have: any other error of a step is a bug, and the step is not tried again.
RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=10)
)


@dataclass
class RunStart:
    """What a workflow is started with: limits and names, no texts."""

    run: str
    queue: str
    # Workers that have a queue of their own.
    workers: list[str]
    width: int
    tokens: int | None = None
    usd: float | None = None
    deadline_s: float | None = None
    # How many executions this run had before, and what has to run again.
    generation: int = 0
    reopen: list[str] = field(default_factory=list[str])
    reopens: bool = False
    # Whether it begins with what was copied from another run.
    forked: bool = False
    # How many seconds it had run before.
    owned_s: float = 0.0


@dataclass
class OrderNotice:
    """A person has ordered something: the order itself is in the store, for the segment, or for the run."""

    id: str
    segment: str | None = None


# The type of the error for an order to a run that has ended.
ENDED = "Ended"


@workflow.defn(name=WORKFLOW, failure_exception_types=[Exception])
class RunWorkflow:
    """One execution of a run. Its id is the run's."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        self._start = start
        self._limit = Budget(tokens=start.tokens, usd=start.usd)
        self._deadline_s = start.deadline_s
        # Steps of the run as a whole, and how often tasks were restarted here.
        self._turns = 0
        self._restarts = 0
        self._engine = self._make_engine(start.generation, workflow.time() - start.owned_s)
        # Orders are taken one after another; those that were acted on, by key.
        self._ordering = asyncio.Lock()
        self._acted: set[str] = set()
        # Whether tasks are to run again, on another engine.
        self._again = False
        self._carrying: list[asyncio.Future[None]] = []
        self._ended = False

    def _make_engine(self, generation: int, began: float) -> WorkflowEngine:
        engine = WorkflowEngine(self._start.run, self, WorkflowLedger(self._limit), self._start.width, began)
        engine.first_turn = generation * MOST_TURNS
        engine.deadline_s = self._deadline_s
        return engine

    @workflow.run
    async def run(self, start: RunStart) -> str:
        """The status that the run ended with."""
        status, ref = "cancelled", None
        with suppress(asyncio.CancelledError):
            if start.generation:
                await self._recall(start.generation)
            while (head := await self._run_flow()) is None:
                await self._run_again()
            status, ref = head.report or "failed", head.ref
        self._ended = True
        async with self._ordering:
            await self._close(status, ref)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return status

    async def _run_flow(self) -> Head | None:
        """The head of the report; None when tasks are to run again, and nothing is under way any more."""
        watch = asyncio.ensure_future(self._watch_deadline(self._engine))
        work = asyncio.ensure_future(self._flow())
        try:
            await workflow.wait_condition(lambda: work.done() or self._leaves())
            async with self._ordering:
                # From here on it is too late for orders: those before have been taken.
                self._ended = not self._again
                return None if self._again else work.result()
        finally:
            for each in (watch, work):
                each.cancel()
            await asyncio.gather(watch, work, return_exceptions=True)

    async def _flow(self) -> Head:
        return await flow.run(self._engine)

    def _leaves(self) -> bool:
        return self._again and not self._engine.under_way

    async def _run_again(self) -> None:
        """Another engine continues the run, with what people restarted or had been short of budget or time."""
        before, self._again = self._engine, False
        self._restarts += 1
        self._engine = self._make_engine(0, workflow.time() - before.clock.now())
        self._engine.first_turn = before.first_turn
        self._engine.extras = before.extras
        await self._recall(None, before.take_all_notes())

    # -- what people order --------------------------------------------------------------------------------------------

    @workflow.update
    async def order(self, notice: OrderNotice) -> None:
        async with self._ordering:
            order = self._order(RUN, TAKE_ORDERS)
            limit = self._limit
            order.refs = {"id": notice.id, "tokens": limit.tokens, "usd": limit.usd, "deadline_s": self._deadline_s}
            page = (await self.carry_out(order, "")).page or {}
            for act in page["acts"]:
                self._act(act)
        if notice.segment is not None:
            self._engine.woken.add(notice.segment)

    @order.validator
    def check_order(self, notice: OrderNotice) -> None:
        if self._ended:
            raise ApplicationError("The run has ended.", type=ENDED)

    def _act(self, act: dict[str, Any]) -> None:
        engine, key, task = self._engine, str(act["key"]), str(act.get("task", ""))
        if act["verdict"] != "accepted" or key in self._acted:
            return
        self._acted.add(key)
        match act["order"]:
            case "pause" | "continue" as order:
                engine.orders.pause(paused=order == "pause")
            case "stop":
                engine.orders.stop(task, key)
                self._carrying.append(asyncio.ensure_future(self._carry_end(engine, task)))
            case "top_up":
                self._limit = engine.budget.limit = Budget(tokens=act.get("tokens"), usd=act.get("usd"))
                self._deadline_s = engine.deadline_s = act.get("deadline_s", self._deadline_s)
                engine.budget.wake()
            case _:
                pass
        if "again" in act:
            self._again = True
            engine.leave(act["again"])

    async def _carry_end(self, engine: WorkflowEngine, task: str) -> None:
        """Put the end of a stopped task on the record, even if no other step begins for a long time."""
        await workflow.wait_condition(lambda: task in engine.ends or self._ended or engine.leaving)
        async with self._ordering:
            if engine.has_loose_notes and not (self._ended or engine.leaving):
                order = self._order(RUN, CARRY)
                order.notes = engine.take_loose_notes()
                await self.carry_out(order, "")

    @workflow.query
    def progress(self) -> dict[str, Any]:
        """What is under way, and what is waited for."""
        engine = self._engine
        return {"under_way": len(engine.under_way), "waiting": dict(engine.waiting), "paused": engine.orders.paused}

    # -- how steps are carried out -------------------------------------------------------------------------------------

    def now(self) -> float:
        return workflow.time()

    def chance(self) -> float:
        return workflow.random().random()

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> None:
        with suppress(TimeoutError):
            await workflow.wait_condition(condition, timeout=None if seconds is None else timedelta(seconds=seconds))

    async def carry_out(self, order: StepOrder, worker: str) -> StepResult:
        own = worker in self._start.workers
        try:
            found = await workflow.execute_activity(
                STEP,
                pack(order),
                # A replay compares this, but not the order itself: so a step in place of another is noticed.
                activity_id=f"{order.key}:{order.turn}",
                result_type=dict[str, Any],
                task_queue=f"{self._start.queue}.{worker}" if own else self._start.queue,
                start_to_close_timeout=LONGEST_STEP,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=RETRY,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            return StepResult(**found)
        except ActivityError as error:
            if is_cancelled_exception(error) or isinstance(error.cause, CancelledError):
                # Otherwise the workflow task would fail repeatedly.
                raise asyncio.CancelledError from None
            if "task" not in order.refs:
                raise
            cause = error.cause
            why = (
                f"{cause.type}: {cause.message}" if isinstance(cause, ApplicationError) else f"{type(cause).__name__}."
            )
            head = Head.failed(order.refs["task"], worker, "internal", f"The step ended with {why}")
            return StepResult(head=head.model_dump(mode="json", exclude_defaults=True), tokens=order.tokens or 0)

    async def _watch_deadline(self, engine: WorkflowEngine) -> None:
        """The one timer of a run: workers keep to the deadline by themselves, unless there are none."""
        if self._deadline_s is None:
            return  # only a run with a deadline is given a later one
        while (left := (self._deadline_s or 0.0) + OVERDUE_S - engine.clock.now()) > 0:
            if engine.clock.frozen:
                await workflow.wait_condition(lambda: not engine.clock.frozen)
            else:
                await asyncio.sleep(left)
        engine.end_overdue()

    async def _recall(self, generation: int | None, notes: list[list[Any]] | None = None) -> None:
        """Take over what earlier executions left on the record, a page at a time; the first says where to count from.

        Without a generation the run is continued here: the next one is claimed for it.
        """
        engine, page = self._engine, 0
        while True:
            order = self._order(RUN, RECALL)
            limits = {"tokens": self._limit.tokens, "usd": self._limit.usd, "deadline_s": self._deadline_s}
            claim = f"{workflow.info().run_id}/{self._restarts}"
            order.refs = {"round": page, "generation": generation, "claim": claim, **limits}
            if self._start.forked and generation is not None:
                order.refs["forked"] = True
            order.added = self._start.reopen if generation is not None else []
            order.reopens = generation is None or self._start.reopens
            order.notes, notes = notes or [], None
            found = (await self.carry_out(order, "")).page or {}
            if page == 0:
                self._take_over(engine, found)
            engine.recalled.ended |= {task: read_head(head) for task, head in found["ended"].items()}
            engine.ends.update(found["ends"])
            page += 1
            if not found["more"]:
                return

    def _take_over(self, engine: WorkflowEngine, found: dict[str, Any]) -> None:
        engine.first_turn = found["generation"] * MOST_TURNS
        engine.reopened = frozenset(found["reopened"])
        engine.recalled.attempts = found["reopened"]
        engine.recalled.decisions = found["decisions"]
        engine.restarted = found["restarted"]
        engine.orders.recall(found["stopped"])
        self._acted.update(found["controls"])
        limit = found["limit"]
        self._limit = engine.budget.limit = Budget(tokens=limit["tokens"], usd=limit["usd"])
        self._deadline_s = engine.deadline_s = limit["deadline_s"]
        for segment, (tokens, usd) in found["spent"].items():
            engine.budget.settle(segment, tokens, usd)

    def _order(self, segment: str, kind: str) -> StepOrder:
        engine = self._engine
        self._turns += 1
        return StepOrder(
            run=self._start.run,
            key=segment,
            kind=kind,
            segment=segment,
            turn=engine.first_turn + self._turns,
            now=engine.clock.now(),
            at=self.now(),
        )

    async def _close(self, status: str, ref: str | None) -> None:
        """Put the end of the run on the record, whatever caused it."""
        order = self._order("@end", CLOSE)
        order.refs = {} if ref is None else {"draft": ref}
        order.status = status
        order.notes = self._engine.take_all_notes()
        order.extras = list(self._engine.extras.values())
        order.tokens, order.usd = self._limit.tokens, self._limit.usd
        await asyncio.shield(self.carry_out(order, ""))
