"""The order of a run as a workflow of Temporal: the same flow and dispatcher, over heads, with steps as activities.

This module and all it imports does no I/O. A change to what it decides is caught by the stored histories in the tests.
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
from chargehand.engine.temporal.step_order import CLOSE, MOST_TURNS, RECALL, StepOrder, StepResult, pack, read_head
from chargehand.engine.temporal.workflow_engine import WorkflowEngine
from chargehand.engine.temporal.workflow_ledger import WorkflowLedger
from chargehand.values.budget import Budget
from chargehand.values.head import Head

WORKFLOW = "chargehand.run"
STEP = "chargehand.step"
# A worker says within this time that it lives; else its step is given to another one.
HEARTBEAT_TIMEOUT = timedelta(seconds=15)
# No step takes longer: the limits of attempts are kept inside.
LONGEST_STEP = timedelta(days=7)
# After the deadline workers end by themselves; what they have not ended by then is given up.
OVERDUE_S = 15.0
# What another worker could do better: all else that a step raises is a bug, and is not tried again.
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
    # How many executions of this run there were before, and what is to run again.
    generation: int = 0
    reopen: list[str] = field(default_factory=list[str])
    # How many seconds it had run before.
    owned_s: float = 0.0


@dataclass
class OrderNotice:
    """An order of a person: its texts are in the store."""

    id: str
    order: str
    task: str | None
    segment: str | None
    by: str
    sent_at: float
    tokens: int | None = None
    usd: float | None = None


@workflow.defn(name=WORKFLOW, failure_exception_types=[Exception])
class RunWorkflow:
    """One execution of a run. Its id is the run's."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        self._start = start
        ledger = WorkflowLedger(Budget(tokens=start.tokens, usd=start.usd))
        began = workflow.time() - start.owned_s
        self._engine = WorkflowEngine(start.run, self, ledger, start.width, began)
        self._engine.first_turn = start.generation * MOST_TURNS
        self._engine.reopened = frozenset(start.reopen)

    @workflow.run
    async def run(self, start: RunStart) -> str:
        """The status that the run ended with."""
        watch = asyncio.ensure_future(self._watch_deadline())
        try:
            if start.generation:
                await self._recall()
            head = await flow.run(self._engine)
            status, ref = head.report or "failed", head.ref
        except asyncio.CancelledError:
            status, ref = "cancelled", None
        finally:
            watch.cancel()
        await self._close(status, ref)
        return status

    # -- what people order --------------------------------------------------------------------------------------------

    @workflow.update
    def order(self, notice: OrderNotice) -> None:
        engine = self._engine
        if notice.order == "top_up":
            limit = engine.budget.limit
            tokens = None if limit.tokens is None else limit.tokens + (notice.tokens or 0)
            usd = None if limit.usd is None else limit.usd + (notice.usd or 0.0)
            engine.budget.limit = Budget(tokens=tokens, usd=usd)
            engine.budget.wake()
        if notice.order in ("pause", "continue", "stop", "top_up"):
            engine.orders.take(notice.id, notice.order, notice.task, notice.by, notice.sent_at)
        if notice.segment is not None and notice.segment in engine.waiting:
            engine.woken.add(notice.segment)

    @order.validator
    def check_order(self, notice: OrderNotice) -> None:
        known = ("pause", "continue", "stop", "top_up", "answer", "tell")
        if notice.order not in known:
            raise ApplicationError(f"A run on Temporal takes no order {notice.order!r}.", type="UsageError")

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
                # Compared in a replay, as the order itself is not: a step in the place of another is noticed.
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
                # Else the task of the workflow would fail again and again.
                raise asyncio.CancelledError from None
            if order.kind != "attempt":
                raise
            kind = error.cause.type if isinstance(error.cause, ApplicationError) else type(error.cause).__name__
            head = Head.failed(order.refs["task"], worker, "internal", f"The step ended with {kind}.")
            return StepResult(head=head.model_dump(mode="json", exclude_defaults=True), tokens=order.tokens or 0)

    async def _watch_deadline(self) -> None:
        """The one timer of a run: workers keep to the deadline by themselves, unless there are none."""
        if self._start.deadline_s is not None:
            await asyncio.sleep(max(self._start.deadline_s - self._start.owned_s, 0.0) + OVERDUE_S)
            self._engine.end_overdue()

    async def _recall(self) -> None:
        """Take over what earlier executions left on the record, a page at a time."""
        engine, page = self._engine, 0
        while True:
            order = self._order("@recall", RECALL, turn=page + 1)
            order.refs = {"round": page}
            order.added = self._start.reopen
            found = (await self.carry_out(order, "")).page or {}
            engine.recalled.ended |= {task: read_head(head) for task, head in found.get("ended", {}).items()}
            engine.recalled.attempted |= {ref: read_head(head) for ref, head in found.get("attempted", {}).items()}
            engine.recalled.decisions |= found.get("decisions", {})
            engine.recalled.attempts |= found.get("attempts", {})
            engine.ends.update(found.get("ends", {}))
            for segment, (tokens, usd) in found.get("spent", {}).items():
                engine.budget.settle(segment, tokens, usd)
            page += 1
            if not found.get("more"):
                return

    def _order(self, segment: str, kind: str, turn: int) -> StepOrder:
        engine = self._engine
        return StepOrder(
            run=self._start.run,
            key=segment,
            kind=kind,
            segment=segment,
            turn=engine.first_turn + turn,
            now=engine.clock.now(),
            at=self.now(),
        )

    async def _close(self, status: str, ref: str | None) -> None:
        """Put the end of the run on the record, whoever wanted it."""
        order = self._order("@end", CLOSE, turn=1)
        order.refs = {} if ref is None else {"draft": ref}
        order.status = status
        order.notes = self._engine.take_all_notes()
        order.extras = list(self._engine.extras.values())
        await asyncio.shield(self.carry_out(order, ""))
