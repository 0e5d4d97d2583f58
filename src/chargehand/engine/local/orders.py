"""The orders to a run under way: each gets a verdict, goes on the record, and then is acted on.

The verdict and what follows from it are committed together, by the order's id; the file in the mailbox is removed after
that. So after a crash an order is on the record, and the fold has its effect, or it is still in the mailbox.
"""

from __future__ import annotations

from typing import Any

from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.recorder import Recorder
from chargehand.engine.local.slots import Slots
from chargehand.record.mailbox import Mailbox, UnreadableOrder
from chargehand.record.replay import Replay
from chargehand.record.task_list import ACCEPTED, Judgement, TaskList
from chargehand.values.event import Control, EventBody
from chargehand.values.key import TaskPath
from chargehand.values.order import Order, control_key


class LocalOrders:
    """One per session. `read` is called again and again by whoever drives the session."""

    def __init__(
        self,
        mailbox: Mailbox | None,
        replay: Replay,
        recorder: Recorder,
        slots: Slots,
        activity: Activity,
        clock: LocalClock,
        *,
        stays: bool = False,
    ) -> None:
        self._mailbox = mailbox
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

    def open(self) -> None:
        """A run that was paused begins nothing until a person continues it."""
        if self._paused:
            self._pause()

    # -- what the run asks -------------------------------------------------------------------------------------------

    def stopped(self, task: str) -> str | None:
        if not self._stopped:
            return None
        return next((self._stopped[each] for each in TaskPath.parse(task).wholes if each in self._stopped), None)

    def note(self, body: EventBody, task: str | None) -> None:
        """Take into account what goes on the record."""
        self._tasks.apply(body, task)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Take the orders that have come; and once nothing is in flight, end a session that is paused."""
        for order in () if self._mailbox is None else self._mailbox.pending():
            await self._take(order)
        if self._paused and not self._stays and self._slots.idle.is_set():
            await self._recorder.commit()
            if self._slots.idle.is_set():
                self._activity.park("paused")

    async def _take(self, order: Order | UnreadableOrder) -> None:
        key = control_key(order.id)
        if key not in self._judged:
            if isinstance(order, UnreadableOrder):
                refused = Judgement("refused", f"The order cannot be read: {order.problem}.")
                self._record(key, "unreadable", None, "", 0.0, refused)
            else:
                judged = self._tasks.judge(order, self._stopped)
                self._accept(order) if judged == ACCEPTED else self._refuse(order, judged)
        await self._recorder.commit()
        self._act(order)
        assert self._mailbox is not None
        self._mailbox.remove(order.id)

    def _accept(self, order: Order) -> None:
        continues = order.order == "continue" and self._paused
        parked = round(self._activity.unrecorded_still_seconds(), 3) if continues else None
        self._record(order.key, order.order, order.task, order.by, order.sent_at, ACCEPTED, order.details, parked)
        match order.order:
            case "pause" | "continue":
                self._paused = order.order == "pause"
            case "stop":
                assert order.task is not None
                self._stopped[order.task] = order.text

    def _refuse(self, order: Order, judged: Judgement) -> None:
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
        parked_s: float | None = None,
    ) -> None:
        self._judged.add(key)
        more: dict[str, Any] = {"reason": judged.reason, "value": value, "parked_s": parked_s}
        given = {name: each for name, each in more.items() if each}
        control = Control(key=key, order=order, by=by, sent_at=sent_at, verdict=judged.verdict, **given)
        self._recorder.emit(control, task)

    # -- acting ------------------------------------------------------------------------------------------------------

    def _act(self, order: Order | UnreadableOrder) -> None:
        """Bring about what the orders on the record say; it may be brought about already."""
        if isinstance(order, UnreadableOrder):
            return
        if order.order in ("pause", "continue"):
            self._pause() if self._paused else self._continue()
        elif order.task in self._stopped:
            assert order.task is not None
            self._clock.fire(order.task)

    def _pause(self) -> None:
        self._slots.close()
        self._activity.pause()
        self._clock.freeze()

    def _continue(self) -> None:
        self._activity.proceed()
        self._clock.thaw()
        self._slots.open()
