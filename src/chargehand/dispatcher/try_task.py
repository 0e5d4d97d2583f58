"""One attempt at a task, outside its step: a ticket of the breaker -> a step -> what it says about the worker.

The work itself is in the step (`steps/attempt.py`).
"""

from __future__ import annotations

from chargehand.dispatcher.available_workers import AvailableWorkers, out_key
from chargehand.engine.port import StepEngine
from chargehand.events import BreakerChanged, Decided
from chargehand.limits import BreakerChange, Ticket
from chargehand.values.plain_class import plain_class
from chargehand.values.step import Head, StepRefs


@plain_class()
class Attempt:
    """One run of a task by one worker: the part above the engine port."""

    refs: StepRefs
    # None when its worker is out for the rest of the run.
    ticket: Ticket | None
    engine: StepEngine
    crew: AvailableWorkers

    async def run(self) -> Head | None:
        """How it ended; None when the worker was taken out before anything was sent: the attempt has not been made."""
        key, worker = f"{self.refs.task}/{self.refs.attempt}", self.refs.worker
        if self.ticket is None:
            return await self.engine.step(key, "attempt", self.refs)
        self._record_change(self.ticket.change)
        self.crew.begin_attempt(worker, key)
        try:
            head = await self.engine.step(key, "attempt", self.refs)
        finally:
            self.crew.end_attempt(worker, key)
        if head.status == "skipped":
            self.crew.forget(worker, self.ticket, self.engine.clock.now())
            return None
        self._judge_worker(self.ticket, head)
        return head

    def _judge_worker(self, ticket: Ticket, head: Head) -> None:
        """Take the worker out, or back in, by how the attempt ended; recorded before anything acts on it."""
        worker, now = self.refs.worker, self.engine.clock.now()
        change = self.crew.record_end(ticket, worker, head, now)
        if change is None:
            return
        self._record_change(change)
        verdict = self.crew.verdict(worker, now)
        self.engine.emit(Decided(key=out_key(worker), decision="breaker", value=verdict, reason=change.reason))
        if change.state == "open":
            # Attempts of a worker that is out are recalled if they have sent nothing.
            for key in self.crew.under_way(worker):
                self.engine.recall(key)

    def _record_change(self, change: BreakerChange | None) -> None:
        if change is not None:
            self.engine.emit(BreakerChanged(name=change.name, state=change.state, reason=change.reason))
