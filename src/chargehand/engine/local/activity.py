"""What is under way in a session. When nothing is under way and a question waits for a person, the run parks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from chargehand.engine.engine_session import Parked, ParkedStatus
from chargehand.engine.local.slots import Slots
from chargehand.record.mailbox import Mailbox, UnreadableOrder

T = TypeVar("T")

_TURNS_BEFORE_PARKING = 50
# An answer that has been sent to the run is taken within this time.
_ANSWER_IS_TAKEN_S = 1.0


class Activity:
    """Enter it (`with activity:`) around an effect, a sleep or a commit; it can be entered several times at once."""

    def __init__(self, slots: Slots, *, stays: bool = False, mailbox: Mailbox | None = None) -> None:
        self._slots = slots
        # Where answers arrive.
        self._mailbox = mailbox
        slots.on_idle = self._update_standstill
        # Whether a run that only waits for a provider stays here; else it parks.
        self._stays = stays
        # Effects, sleeps and commits under way.
        self.under_way = 0
        # Questions that stay open until another session.
        self._waiting = 0
        # Questions a person is being asked now: the run does not park then, but its clock is stopped as well.
        self._inline = 0
        # Set by each call that waits for a provider when nothing else can run, where the run stays in this process.
        self._provider_waits: list[asyncio.Event] = []
        # A person has paused the run: its clock is stopped once no call is in flight.
        self._paused = False
        self._standstill = _Standstill()
        # Both set when the session opens.
        self._loop: asyncio.AbstractEventLoop
        self._parked: asyncio.Future[ParkedStatus] | None = None

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parked = self._loop.create_future()

    def close(self) -> None:
        if self._parked is not None:
            self._parked.cancel()

    def __enter__(self) -> None:
        self.under_way += 1
        if self._inline:
            self._update_standstill()

    def __exit__(self, *exc: object) -> None:
        self.under_way -= 1
        if not self.under_way:
            self._update_standstill()
            self._park_if_only_people_can_continue()

    @contextmanager
    def wait_for_later(self) -> Generator[None]:
        """Inside, a question waits for the answer that another session gets."""
        self._waiting += 1
        try:
            self._park_if_only_people_can_continue()
            yield
        finally:
            self._waiting -= 1

    @contextmanager
    def wait_for_provider(self) -> Generator[asyncio.Event]:
        """Inside, an effect that has begun only waits, and does not count as under way.

        The event is set when nothing else can run. A run that does not stay in this process parks instead.
        """
        nothing_else_runs = asyncio.Event()
        self._provider_waits.append(nothing_else_runs)
        try:
            with self._step_out():
                yield nothing_else_runs
        finally:
            self._provider_waits.remove(nothing_else_runs)

    @contextmanager
    def _step_out(self) -> Generator[None]:
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    @contextmanager
    def ask_inline(self) -> Generator[None]:
        """Inside, a person is being asked, or waits to be."""
        self._inline += 1
        self._update_standstill()
        try:
            yield
        finally:
            self._inline -= 1
            self._update_standstill()
            self._park_if_only_people_can_continue()

    def pause(self) -> None:
        """Stop the clock until `proceed`, from the end of the calls in flight on."""
        self._paused = True
        self._update_standstill()

    def proceed(self) -> None:
        self._paused = False
        self._update_standstill()
        self._park_if_only_people_can_continue()

    def park(self, status: ParkedStatus) -> None:
        """End the session: the work is cut off where it waits."""
        if self._parked is not None and not self._parked.done():
            self._parked.set_result(status)

    def still_seconds(self, at: float) -> float:
        """Seconds of this session, up to this time of the loop, in which it was paused or waited for a person only."""
        return self._standstill.seconds(at)

    def unrecorded_still_seconds(self) -> float:
        """The still seconds since this was last called: what the next answer puts on the record."""
        return self._standstill.take_unrecorded(self._loop.time())

    async def run_until_parked(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work; Parked is raised as soon as it only waits for people, or is paused."""
        assert self._parked is not None
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._parked and self._parked.cancel())
        try:
            status = await self._parked
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise Parked(status)

    def _update_standstill(self) -> None:
        still = (self._paused and self._slots.idle.is_set()) or (self._inline > 0 and not self.under_way)
        self._standstill.update(still, self._loop.time())

    def _park_if_only_people_can_continue(self) -> None:
        if self._only_waits():
            self._park(_TURNS_BEFORE_PARKING)

    def _only_waits(self) -> bool:
        """Whether there is nothing to do until a person answers, or a provider may be asked again."""
        waits = self._waiting or self._provider_waits
        return bool(waits) and not (self.under_way or self._inline or self._paused)

    def _park(self, turns: int, looks_for_answer: bool = True) -> None:
        # Some loop turns later: what just ended may have woken a task that starts something new.
        if not self._only_waits():
            return
        if turns:
            self._loop.call_soon(self._park, turns - 1)
        elif self._stays and self._provider_waits:
            self._provider_waits[0].set()
        elif looks_for_answer and self._answer_is_there():
            self._loop.call_later(_ANSWER_IS_TAKEN_S, self._park, 0, False)
        else:
            self.park("waiting")

    def _answer_is_there(self) -> bool:
        """Whether an answer waits to be taken, such as that of a listener that was just told of the question."""
        orders = () if self._mailbox is None or not self._waiting else self._mailbox.pending()
        return any(not isinstance(order, UnreadableOrder) and order.order == "answer" for order in orders)


class _Standstill:
    """Adds up the seconds in which the run waited only for a person: the run's clock leaves them out."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._seconds = 0.0
        self._recorded = 0.0

    def update(self, still: bool, now: float) -> None:
        if still and self._since is None:
            self._since = now
        elif not still and self._since is not None:
            self._seconds += now - self._since
            self._since = None

    def seconds(self, now: float) -> float:
        return self._seconds + (0.0 if self._since is None else now - self._since)

    def take_unrecorded(self, now: float) -> float:
        total = self.seconds(now)
        fresh, self._recorded = total - self._recorded, total
        return fresh
