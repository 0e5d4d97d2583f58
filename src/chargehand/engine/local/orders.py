"""The orders to a run under way: each gets a verdict, is put on the record, and then is acted on.

The verdict and what follows from it are committed together, by the order's id; the file in the mailbox is removed after
that. So after a crash an order is on the record, and the fold has its effect, or it is still in the mailbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.questions import Inquiries
from chargehand.engine.local.recorder import Recorder
from chargehand.engine.local.resources import Resources
from chargehand.engine.local.sending import Sender
from chargehand.engine.local.shared_ledger import LocalBudget
from chargehand.engine.local.slots import Slots
from chargehand.engine.local.tell_workers import WordsToWorkers
from chargehand.events import Control, EventBody, TaskEnded
from chargehand.record.mailbox import Mailbox, UnreadableOrder
from chargehand.record.replay import Replay
from chargehand.record.task_list import ACCEPTED, Judgement, TaskList
from chargehand.values.key import TaskPath
from chargehand.values.order import Order, control_key

# After an order is acted on, what follows from it is written.
FOLLOWS_S = 0.05


class LocalOrders:
    """One per session. The owner of the session calls `read` repeatedly."""

    def __init__(
        self,
        mailbox: Mailbox | None,
        replay: Replay,
        resources: Resources,
        sender: Sender,
        inquiries: Inquiries,
        recorder: Recorder,
        slots: Slots,
        activity: Activity,
        clock: LocalClock,
        *,
        team: Mapping[str, Any],
        budget: LocalBudget,
        deadline_s: float | None,
        stays: bool = False,
    ) -> None:
        self._mailbox = mailbox
        # As it is stored with the run.
        self._team = team
        self._models = resources.models
        self._sender = sender
        self._inquiries = inquiries
        self._budget = budget
        self._deadline_s = deadline_s
        # The deadline has changed: another session continues with it.
        self._is_renewed = False
        self._recorder = recorder
        self._slots = slots
        self._activity = activity
        self._clock = clock
        # Whether a paused session waits here for the order to continue.
        self._stays = stays
        self._tasks = TaskList.of(replay)
        # Keys of the orders with a verdict.
        self._judged = set(replay.controls)
        self._stopped = dict(replay.stopped)
        self._paused = replay.paused
        # Tasks that are restarted: another session reopens them.
        self._restarted = {restart.task for restart in replay.restarts.values()}
        self._run_ended = False
        self._words = WordsToWorkers(replay, recorder.emit)

    def open(self) -> None:
        """A run that was paused begins nothing until a person continues it."""
        if self._paused:
            self._pause()

    @property
    def paused(self) -> bool:
        return self._paused

    def hold(self) -> None:
        """Begin nothing new, as when paused, but not on the record: the owner of the session continues it."""
        if not self._paused:
            self._paused = True
            self._pause()

    @property
    def restarting(self) -> bool:
        return bool(self._restarted) or self._is_renewed

    # -- what the run asks -------------------------------------------------------------------------------------------

    def stop_reason(self, task: str) -> str | None:
        if not self._stopped:
            return None
        return next((self._stopped[each] for each in TaskPath.parse(task).wholes if each in self._stopped), None)

    def words(self, task: str, call: str) -> list[str]:
        return self._words.before(task, call, self._accept)

    def note(self, body: EventBody, task: str | None) -> None:
        """Update the state from an event that is put on the record."""
        self._tasks.apply(body, task)
        if isinstance(body, TaskEnded) and task is not None:
            self._inquiries.close(task)
            for order in self._words.take_unheard(task):
                self._refuse(order, self._judge(order))

    # -- reading -----------------------------------------------------------------------------------------------------

    async def read_last(self) -> None:
        """Take the orders that came before the end of the run."""
        self._run_ended = True
        await self.read()

    async def read(self) -> None:
        """Take the orders that have arrived, and write the events that only viewers wait for.

        A session that is paused ends once nothing is in flight. A session in which tasks are restarted ends too: calls
        of these tasks are stopped, calls of other tasks are finished.
        """
        for order in () if self._mailbox is None else self._mailbox.pending():
            await self._take(order)
        if self.restarting:
            self._slots.close()
            self._clock.freeze()
            await self._recorder.commit()
            if self._slots.held == self._calls_of_restarted():
                self._activity.park("restarting")
        elif self._paused and not self._stays and self._slots.idle.is_set():
            await self._recorder.commit()
            if self._slots.idle.is_set():
                self._activity.park("paused")
        elif self._recorder.is_behind:
            await self._recorder.commit()

    async def _take(self, order: Order | UnreadableOrder) -> None:
        key = control_key(order.id)
        if key not in self._judged:
            if isinstance(order, UnreadableOrder):
                refused = Judgement("refused", f"The order cannot be read: {order.problem}.")
                self._record(key, "unreadable", None, "", 0.0, refused)
            else:
                judged = self._judge(order)
                if judged == ACCEPTED and order.order == "tell":
                    self._words.add(order)
                    return  # it stays in the mailbox until a call takes it, or its task ends
                self._accept(order) if judged == ACCEPTED else self._refuse(order, judged)
        await self._recorder.commit()
        self._act(order)
        # Its consequences, such as the end of a task, take some turns of the loop; the sender watches for them.
        asyncio.get_running_loop().call_later(FOLLOWS_S, self._recorder.write_soon)
        assert self._mailbox is not None
        self._mailbox.remove(order.id)

    def _judge(self, order: Order) -> Judgement:
        if self._run_ended and order.order == "pause":
            return Judgement("too_late", "The run has ended: there is nothing to pause.")
        from chargehand.engine.judge_orders import judge_model, judge_top_up  # few runs get orders

        if order.order == "top_up":
            limit = self._budget.ledger.limit
            return judge_top_up(order, {"tokens": limit.tokens, "usd": limit.usd, "deadline": self._deadline_s})
        if order.order == "answer":
            return self._inquiries.judge_answer(order)
        judged = self._tasks.judge(order, self._stopped, self._team)
        if judged == ACCEPTED and order.model is not None:
            return judge_model(self._models, order.model, needs_price=self._budget.ledger.limit.usd is not None)
        return judged

    def _accept(self, order: Order, call: str | None = None) -> None:
        details = order.details if call is None else order.details | {"call": call}
        if order.order == "top_up":
            details |= self._top_up(order)
        elif order.order == "pause" and self._sender.sent_later:
            # Only this process knows which of the calls that were refused have been sent again.
            details |= {"waiting": sorted(self._sender.sent_later)}
        self._record(order.key, order.order, order.task, order.by, order.sent_at, ACCEPTED, details)
        match order.order:
            case "pause" | "continue":
                self._paused = order.order == "pause"
            case "stop":
                assert order.task is not None
                self._stopped[order.task] = order.text
            case "restart":
                assert order.task is not None
                self._restarted.add(order.task)
                self._tasks.reopen(order.task)
                self._stopped = {task: why for task, why in self._stopped.items() if not _is_within(task, order.task)}
            case "answer":
                self._inquiries.record_answer(order)
            case "top_up":
                pass  # the limits have grown
            case "tell":
                pass  # the call has the words

    def _refuse(self, order: Order, judged: Judgement) -> None:
        self._words.drop(order)
        self._record(order.key, order.order, order.task, order.by, order.sent_at, judged, order.details)

    def _record(
        self,
        key: str,
        order: str,
        task: str | None,
        by: str,
        sent_at: float,
        judged: Judgement,
        value: dict[str, object] | None = None,
    ) -> None:
        self._judged.add(key)
        # An order may come while the run does nothing: the time of its event would count that as running time.
        parked = round(self._activity.unrecorded_still_seconds(), 3)
        more: dict[str, Any] = {"reason": judged.reason, "value": value, "parked_s": parked}
        given = {name: each for name, each in more.items() if each}
        control = Control(key=key, order=order, by=by, sent_at=sent_at, verdict=judged.verdict, **given)
        self._recorder.emit(control, task)

    # -- acting ------------------------------------------------------------------------------------------------------

    def _act(self, order: Order | UnreadableOrder) -> None:
        """Carry out the orders on the record; they may be carried out already."""
        if isinstance(order, UnreadableOrder):
            return
        if order.order in ("pause", "continue"):
            self._pause() if self._paused else self._continue()
        elif order.question is not None:
            self._inquiries.deliver(order.question)
        elif order.order == "stop" and order.task in self._stopped:
            assert order.task is not None
            self._clock.fire(order.task)

    def _top_up(self, order: Order) -> dict[str, object]:
        """Raise the limits. Returns the new limits, and the tasks that run again because they had reached them."""
        short = self._tasks.short_of(order.raised)
        self._restarted.update(short)
        for task in short:
            self._tasks.reopen(task)
        limit = self._budget.top_up(order.tokens or 0, order.usd or 0.0)
        made: dict[str, object] = {"limit": limit.to_json(), "tasks": short}
        if order.deadline is not None:
            self._is_renewed = True
            made["deadline_s"] = self._deadline_s = round(self._clock.now() + order.deadline, 3)
        return made

    def _calls_of_restarted(self) -> int:
        """How many slots are held by model calls of tasks that run again."""
        again = self._tasks.with_dependents(self._restarted)
        calls = self._sender.at_provider.items()
        return sum(number for task, number in calls if task is not None and TaskPath.parse(task).whole in again)

    def _pause(self) -> None:
        self._slots.close()
        self._activity.pause()
        self._clock.freeze()

    def _continue(self) -> None:
        self._activity.proceed()
        if not self.restarting:
            self._clock.thaw()
            self._slots.open()


def _is_within(task: str, whole: str) -> bool:
    return whole in TaskPath.parse(task).wholes
