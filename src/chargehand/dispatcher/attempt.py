"""One run of a task by one worker with one instruction at one tier -> its outcome, on time and on the record."""

from __future__ import annotations

from dataclasses import dataclass

from chargehand.dispatcher.available_workers import AvailableWorkers, Shift, out_key
from chargehand.dispatcher.best_of import BestOf, failed_by_bug, is_workers_own, work_and_check
from chargehand.dispatcher.supervisor_help import SupervisorHelp
from chargehand.dispatcher.time_limits import Countdown, TimeLimits
from chargehand.engine.port import Engine
from chargehand.limits import BreakerChange, Ticket
from chargehand.values.outcome import Outcome, Usage
from chargehand.workers import Assignment, WorkerPort


@dataclass(slots=True)
class Attempt:
    assignment: Assignment
    # None when its worker is out for the rest of the run.
    ticket: Ticket | None
    engine: Engine
    crew: AvailableWorkers
    help: SupervisorHelp
    time: TimeLimits

    async def run(self) -> Outcome | None:
        """The outcome, its criterion checked.

        None when the worker was taken out before anything was sent: the attempt has not been made.
        """
        task, number = self.assignment.task, self.assignment.attempt
        worker = self.crew.worker(task.worker)
        # A person takes the time it takes: that is not the run's own.
        countdown = self.time.endless() if worker.waits_for_person else self.time.countdown_of(task, number)
        self.engine.emit(
            "attempt_started",
            task=task.id,
            attempt=number,
            worker=task.worker,
            tier=task.tier,
            model=worker.model_for(task.tier),
        )
        if self.ticket is None:
            outcome = self.crew.out_of_service(task)
        else:
            outcome = await self._on_shift(worker, self.ticket, countdown)
            if outcome is None:
                self.engine.emit("attempt_ended", task=task.id, attempt=number, status="skipped", error=None)
                return None
            self._tell_crew(self.ticket, outcome)
        if outcome.attempts != number:
            outcome = outcome.model_copy(update={"attempts": number})
        self.engine.emit(
            "attempt_ended",
            task=task.id,
            attempt=number,
            status=outcome.status,
            error=outcome.error.to_json() if outcome.error else None,
            # A done attempt's outcome is the task's: it is on the record once.
            outcome=None if outcome.ok else outcome.to_json(),
        )
        return outcome

    async def _on_shift(self, worker: WorkerPort, ticket: Ticket, countdown: Countdown) -> Outcome | None:
        """What the worker or its time makes of it; None when it was called back."""
        self._tell(ticket.change)
        task, number = self.assignment.task, self.assignment.attempt
        shift = Shift(ticket, countdown, lambda: self.engine.record.has_sent(task.id, number))
        self.crew.starts(task.worker, shift)
        members = self._members(worker)
        try:
            async with countdown:
                if members is not None:
                    return await members.work()
                return await work_and_check(self.assignment, worker, self.engine, self.help.score)
        except Exception as error:  # recorded: a worker's bug is its task's failure, never its siblings'
            if shift.called_back and countdown.expired:
                return None
            if isinstance(error, TimeoutError) and countdown.expired:
                salvaged = await members.salvage() if members is not None else None
                outcome = salvaged or countdown.verdict(task, number, countdown.kind)
            elif not is_workers_own(error):
                raise
            else:
                outcome = failed_by_bug(task, error)
            return outcome.model_copy(update={"usage": Usage.total(self.assignment.used)})
        finally:
            self.crew.stops(task.worker, shift, self.engine.clock.now())

    def _members(self, worker: WorkerPort) -> BestOf | None:
        """Those who do the attempt side by side, where the task wants more than one and its worker may."""
        task, number = self.assignment.task, self.assignment.task.best_of or 1
        if number == 1:
            return None
        if not worker.repeatable:
            message = f"best_of {number} of {task.id} is ignored: {task.worker} does a task only once."
            self.engine.emit("warning", task=task.id, attempt=self.assignment.attempt, message=message)
            return None
        return BestOf(number, self.assignment, worker, self.engine, self.help.score, self.help.select)

    def _tell_crew(self, ticket: Ticket, outcome: Outcome) -> None:
        task = self.assignment.task
        change = self.crew.record_end(ticket, task, outcome, self.engine.clock.now())
        if change is None:
            return
        self._tell(change)
        verdict = self.crew.verdict(task.worker, self.engine.clock.now())
        key = out_key(task.worker)
        self.engine.emit("decision", key=key, decision="breaker", value=verdict, reason=change.reason)
        if change.state == "open":
            self.crew.call_back(task.worker)

    def _tell(self, change: BreakerChange | None) -> None:
        if change is not None:
            self.engine.emit("breaker_changed", name=change.name, state=change.state, reason=change.reason)
