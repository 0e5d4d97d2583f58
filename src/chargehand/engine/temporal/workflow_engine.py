"""The engine port above steps, inside a workflow: each step becomes one activity, and only its head is known.

It has no file, thread, clock or randomness of its own: time and chance come from the workflow, so a replay decides the
same. What the code above steps puts on the record is carried by the next step, which writes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from chargehand.engine.temporal.step_order import (
    StepOrder,
    StepResult,
    order_mark,
    pack_refs,
    read_head,
    segment_of,
)
from chargehand.engine.temporal.workflow_clock import WorkflowClock
from chargehand.engine.temporal.workflow_ledger import WorkflowLedger
from chargehand.events import Decided, EventBody, PlanApproved
from chargehand.values.base import JSON
from chargehand.values.key import Key, TaskPath
from chargehand.values.order import Restart
from chargehand.values.outcome import Usage
from chargehand.values.step import Head, StepKind, StepRefs

# The server refuses a workflow with more than 2,000 activities at once, in silence.
MOST_UNDER_WAY = 1_000
# Steps of the supervisor that may use the whole rest of the budget.
_WHOLE = ("plan", "extend", "write", "finish", "close")


class Activities(Protocol):
    """How an order is carried out, and what time it is."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def chance(self) -> float: ...

    async def carry_out(self, order: StepOrder, worker: str) -> StepResult: ...

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> None:
        """Returns when the condition holds, or the seconds are over."""
        ...


@dataclass
class Recalled:
    """What earlier executions of the run left."""

    ended: dict[str, Head] = field(default_factory=dict[str, Head])
    attempted: dict[str, Head] = field(default_factory=dict[str, Head])
    decisions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    attempts: dict[str, int] = field(default_factory=dict[str, int])


class WorkflowEngine:
    """One per execution of a run."""

    def __init__(self, run: str, activities: Activities, ledger: WorkflowLedger, width: int, began: float) -> None:
        self.run = run
        self.activities = activities
        self.budget = ledger
        self.clock = WorkflowClock(activities.now, activities.chance, began)
        self.orders = WorkflowOrders(self)
        self.recalled = Recalled()
        self.record = WorkflowRecord(self.recalled)
        self._slots = asyncio.Semaphore(min(width, MOST_UNDER_WAY))
        self._turns: dict[str, int] = {}
        # Tasks that run again, their parts included.
        self.reopened: frozenset[str] = frozenset()
        # When the run's time is over; and whether tasks were restarted, now or earlier.
        self.deadline_s: float | None = None
        self.restarted = False
        # Another engine takes over: nothing new begins, and an interrupted step is not a failure.
        self.leaving = False
        # What the turns of this execution are counted from.
        self.first_turn = 0
        # The run's time is over: attempts that nobody began are not waited for.
        self.overdue = False
        # What was put on the record and is not carried yet, by segment; and that of the run as a whole.
        self._notes: dict[str, list[list[Any]]] = {}
        self._loose: list[list[Any]] = []
        # Task -> how it ended, as later steps are given it.
        self._ends: dict[str, Any] = {}
        self._added: list[str] = []
        self._planning: list[dict[str, Any]] = []
        self.extras: dict[str, dict[str, Any]] = {}
        # Key -> the step that is under way or waits for a slot; those that are not to begin.
        self.under_way: dict[str, asyncio.Task[StepResult]] = {}
        self._queued: set[str] = set()
        self._recalled_keys: set[str] = set()
        # Segments that wait for a person or a provider, and those for which something has arrived.
        self.waiting: dict[str, str] = {}
        self.woken: set[str] = set()
        # Steps that used up their part of the budget, and get another one: once.
        self._short: set[str] = set()
        # What tasks used in attempts and recovery so far.
        self._used: dict[str, list[dict[str, Any]]] = {}

    # -- steps -------------------------------------------------------------------------------------------------------

    async def step(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        segment = segment_of(kind, key, refs)
        if kind == "attempt" and key in self._recalled_keys:
            return self._skip(key, refs)
        self._queued.add(key)
        try:
            async with self._slots:
                self._queued.discard(key)
                if key in self._recalled_keys:
                    return self._skip(key, refs)
                await self.activities.wait_until(lambda: not self.holds)
                if refs.task and self._is_over(refs.task):
                    return self._stop(refs)
                result = await self._carry_out(segment, key, kind, refs)
            while result.waits is not None:
                await self._wait(segment, refs.task, result)
                async with self._slots:
                    await self.activities.wait_until(lambda: not self.holds)
                    if refs.task and self._is_over(refs.task):
                        return self._stop(refs)
                    result = await self._carry_out(segment, key, kind, refs)
        except _BrokenOff as broken_off:
            head = self._stop(refs)
            return head.model_copy(update={"usage": Usage(seconds=broken_off.seconds)})
        finally:
            self._queued.discard(key)
        assert result.head is not None
        return self._take(key, kind, refs, result)

    @property
    def holds(self) -> bool:
        """Whether nothing new may begin."""
        return self.leaving or self.orders.paused

    def leave(self, tasks: Collection[str]) -> None:
        """Begin nothing new, and break off the steps of tasks: they run again, on another engine."""
        self.leaving = True
        for key, work in list(self.under_way.items()):
            path = Key.parse(key).path
            if path is not None and path.whole in tasks:
                work.cancel()

    def end_overdue(self) -> None:
        """The run's time is over: cancel the steps of tasks that are still under way."""
        self.overdue = True
        for key, work in list(self.under_way.items()):
            if not key.startswith("@"):
                work.cancel()

    def _is_over(self, task: str) -> bool:
        return self.overdue or self.orders.stop_reason(task) is not None

    def recall(self, key: str) -> None:
        if key in self._queued:
            self._recalled_keys.add(key)

    def _skip(self, key: str, refs: StepRefs) -> Head:
        self._recalled_keys.discard(key)
        return Head(task=refs.task, worker=refs.worker, status="skipped")

    def _stop(self, refs: StepRefs) -> Head:
        if self.orders.stop_reason(refs.task) is None:
            why = "The run's time was over before a worker had done it."
            return Head.failed(refs.task, refs.worker, "deadline", why)
        reason = self.orders.stop_reason(refs.task)
        return Head.failed(refs.task, refs.worker, "cancelled", f"A person stopped {refs.task}: {reason}")

    async def _carry_out(self, segment: str, key: str, kind: str, refs: StepRefs) -> StepResult:
        again = key in self._short
        allotment = await self.budget.reserve(segment, whole=kind in _WHOLE, again=again)
        spent, cost = self.budget.spent_in(segment)
        self._turns[segment] = turn = self._turns.get(segment, self.first_turn) + 1
        budget = self.budget.tasks.get(refs.task)
        self.clock.thaw()
        order = StepOrder(
            run=self.run,
            key=key,
            kind=kind,
            segment=segment,
            turn=turn,
            refs=pack_refs(refs),
            now=self.clock.now(),
            at=self.activities.now(),
            waited=self.clock.waiting_time(refs.task),
            tokens=None if allotment.tokens is None else spent + allotment.tokens,
            usd=None if allotment.usd is None else cost + allotment.usd,
            task_budget=None if budget is None else budget.model_dump(mode="json", exclude_none=True),
            may_get_more=kind not in _WHOLE and not again and (allotment.tokens or allotment.usd) is not None,
            ends={task: self._ends[task] for task in (*refs.inputs, *refs.parts) if task in self._ends},
            added=list(self._added),
            planning=self._planning if kind in ("write", "finish") else [],
            notes=self._take_notes(segment),
            ends_task=kind == "attempt",
            deadline_s=self.deadline_s,
            restarted=self.restarted,
            reopens=self._reopens(segment, refs.task, turn),
            used=self._used.get(refs.task, []) if kind == "attempt" else [],
        )
        work = asyncio.ensure_future(self.activities.carry_out(order, refs.worker if kind == "attempt" else ""))
        self.under_way[key] = work
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            broken_off = work.cancelled() and (self.overdue or self.orders.stop_reason(refs.task or "@") is not None)
            if refs.task and broken_off:
                self.budget.settle(segment, spent + (allotment.tokens or 0), cost + (allotment.usd or 0.0))
                raise _BrokenOff(max(self.clock.now() - order.now, 0.0)) from None
            if self.leaving and work.cancelled():
                self.under_way.pop(key, None)
                await self.activities.wait_until(lambda: False)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise
        finally:
            self.under_way.pop(key, None)
            self.orders.stop_clock_if_paused()
        written = _written_tokens(result) if kind == "attempt" else 0
        self.budget.settle(segment, result.tokens, result.usd, written)
        if result.extra is not None:
            self.extras[segment] = result.extra
        if result.waits == "budget":
            self._short.add(key)
        return result

    def _reopens(self, segment: str, task: str, turn: int) -> bool:
        """Whether a step is the first of a segment that is done again."""
        if not self.reopened or turn != self.first_turn + 1:
            return False
        return task in self.reopened if task else segment == "@synthesis"

    def _take(self, key: str, kind: StepKind, refs: StepRefs, result: StepResult) -> Head:
        assert result.head is not None
        head = read_head(result.head)
        if refs.task and result.head.get("usage"):
            self._used.setdefault(refs.task, []).append(result.head["usage"])
        if result.ended:
            self._ends[refs.task] = refs.attempt
        if kind == "extend":
            if head.parts:
                self._added.append(key)
            if result.head.get("usage"):
                self._planning.append(result.head["usage"])
        return head

    async def _wait(self, segment: str, task: str, result: StepResult) -> None:
        """Wait until somebody has answered, the provider may be called again, or the run is no longer held."""
        assert result.waits is not None
        if result.waits in ("hold", "budget"):
            return  # whoever holds it is asked before the next step; its part of the budget is larger then
        self.waiting[segment] = result.waits
        seconds = None if result.until is None else max(result.until - self.activities.now(), 0.0)
        stopped = self.orders.stop_reason
        if not self.under_way and all(waits == "person" for waits in self.waiting.values()):
            self.clock.freeze()
        try:
            with self.clock.wait(task):
                await self.activities.wait_until(
                    lambda: segment in self.woken or bool(task and stopped(task) is not None), seconds
                )
        finally:
            self.woken.discard(segment)
            self.waiting.pop(segment, None)

    # -- the record --------------------------------------------------------------------------------------------------

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        if key in self.recalled.decisions:
            return self.recalled.decisions[key]
        value, at = choose(), Key.parse(key)
        self.emit(Decided(key=key, decision=decision, value=value, reason=reason), task=at.task, attempt=at.attempt)
        return value

    def emit(self, body: EventBody, *, task: str | None = None, attempt: int | None = None) -> None:
        note = [body.kind, task, attempt, vars(body), self.activities.now()]
        if task is None:
            self._loose.append(note)
        else:
            self._notes.setdefault(task, []).append(note)

    def end_task(self, head: Head) -> None:
        if self._ends.get(head.task) is not None and head.ok:
            return  # its last attempt has put that on the record itself
        packed = head.model_dump(mode="json", exclude_defaults=True)
        self._ends[head.task] = packed
        ended = ["task_ended", head.task, head.attempts, packed, self.activities.now()]
        self._loose += [*self._notes.pop(head.task, []), ended]

    def _take_notes(self, segment: str) -> list[list[Any]]:
        """The events that a step of this segment carries: those of the segment, and those without a segment."""
        notes, self._loose = [*self._loose, *self._notes.pop(segment, [])], []
        return notes

    @property
    def has_loose_notes(self) -> bool:
        return bool(self._loose)

    def take_loose_notes(self) -> list[list[Any]]:
        notes, self._loose = self._loose, []
        return notes

    def take_all_notes(self) -> list[list[Any]]:
        notes = [*self._loose, *(note for notes in self._notes.values() for note in notes)]
        self._loose, self._notes = [], {}
        return notes

    @property
    def ends(self) -> dict[str, Any]:
        return self._ends


class _BrokenOff(Exception):
    """The step was stopped because a person stopped its task, or the run's time is over.

    `seconds` is how long it had taken by then.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


def _written_tokens(result: StepResult) -> int:
    head = result.head or {}
    usage: dict[str, Any] = head.get("usage") or {}
    return int(usage.get("output_tokens") or 0) if head.get("status") == "done" else 0


class WorkflowRecord:
    """What earlier executions left; within one, the workflow's own replay is the memory."""

    def __init__(self, recalled: Recalled) -> None:
        self._recalled = recalled

    def decision(self, key: str) -> JSON:
        return self._recalled.decisions.get(key)

    def plan(self, within: str = "") -> PlanApproved | None:
        return None

    def end_of(self, task: str) -> Head | None:
        return self._recalled.ended.get(task)

    def end_of_attempt(self, task: str, attempt: int) -> Head | None:
        return self._recalled.attempted.get(f"{task}/{attempt}")

    def began(self, task: str, attempt: int | None = None) -> float | None:
        return None

    def attempts(self, task: str) -> int:
        return self._recalled.attempts.get(task, 0)

    def restart_of(self, task: str) -> Restart | None:
        return None

    def has_sent(self, task: str, attempt: int) -> bool:
        return False

    def take_broken_off(self, task: str, attempt: int) -> float:
        return 0.0

    def urls(self) -> Collection[str]:
        return ()


class WorkflowOrders:
    """What people ordered of this run, as far as the code above steps acts on it."""

    def __init__(self, engine: WorkflowEngine) -> None:
        self._engine = engine
        self._stopped: dict[str, str] = {}
        self.paused = False

    def stop_reason(self, task: str) -> str | None:
        if not self._stopped:
            return None
        return next((self._stopped[each] for each in TaskPath.parse(task).wholes if each in self._stopped), None)

    def words(self, task: str, call: str) -> list[str]:
        return []

    def pause(self, *, paused: bool) -> None:
        self.paused = paused
        if paused:
            self.stop_clock_if_paused()
        else:
            self._engine.clock.thaw()

    def stop_clock_if_paused(self) -> None:
        """The clock of a paused run runs until its last step under way has ended."""
        if self.paused and not self._engine.under_way:
            self._engine.clock.freeze()

    def stop(self, task: str, key: str) -> None:
        """End a task for good; the order under the key says why."""
        self._stopped[task] = order_mark(key)
        self._engine.clock.fire(task)
        for each, work in list(self._engine.under_way.items()):
            path = Key.parse(each).path
            if path is not None and task in path.wholes:
                work.cancel()

    def recall(self, stopped: dict[str, str]) -> None:
        """Take over what was stopped before."""
        self._stopped |= {task: order_mark(key) for task, key in stopped.items()}
