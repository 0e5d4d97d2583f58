"""One run of a task by one worker with one instruction at one tier -> its outcome, on time and on the record."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from chargehand.dispatcher.time_limits import Countdown
from chargehand.engine.port import Engine
from chargehand.events import AttemptEnded, AttemptStarted, Warned
from chargehand.steps.criterion import failed_by_bug, is_workers_own, work_and_check
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.values.outcome import Outcome, Usage, failed
from chargehand.values.plain_class import plain_class
from chargehand.workers import Assignment, WorkerPort

if TYPE_CHECKING:
    from chargehand.steps.best_of import BestOf


@plain_class()
class AttemptWork:
    """Made for one attempt."""

    assignment: Assignment
    worker: WorkerPort
    engine: Engine
    help: SupervisorHelp
    countdown: Countdown
    # Why the worker may not begin.
    refused: str | None = None
    recalled: bool = field(default=False, init=False)

    async def run(self) -> Outcome | None:
        """The outcome with its criterion checked; None when it was recalled before anything was sent."""
        task, number = self.assignment.task, self.assignment.attempt
        self.engine.emit(
            AttemptStarted(worker=task.worker, tier=task.tier, model=self.worker.model_for(task.tier)),
            task=task.id,
            attempt=number,
        )
        if self.refused is not None:
            outcome = failed(task.id, task.worker, "internal", self.refused)
        else:
            outcome = await self._work()
        if outcome is None:
            self.engine.emit(AttemptEnded(status="skipped", error=None), task=task.id, attempt=number)
            return None
        if outcome.attempts != number:
            outcome = outcome.model_copy(update={"attempts": number})
        self.engine.emit(
            AttemptEnded(
                status=outcome.status,
                error=outcome.error.to_json() if outcome.error else None,
                # A done attempt's outcome is the task's: it is on the record once.
                outcome=None if outcome.ok else outcome.to_json(),
            ),
            task=task.id,
            attempt=number,
        )
        return outcome

    def recall(self) -> None:
        """Stop it, unless something of it was sent."""
        sent = self.engine.record.has_sent(self.assignment.task.id, self.assignment.attempt)
        if not sent and not self.countdown.expired:
            self.recalled = True
            self.countdown.stop()

    async def _work(self) -> Outcome | None:
        """The outcome from the worker, or from the end of its time."""
        task, number, countdown = self.assignment.task, self.assignment.attempt, self.countdown
        members = self._members()
        try:
            async with countdown:
                if members is not None:
                    return await members.work()
                return await work_and_check(self.assignment, self.worker, self.engine, self.help.score)
        except Exception as error:  # recorded: a worker's bug is its task's failure, never its siblings'
            if self.recalled and countdown.expired:
                return None
            if isinstance(error, TimeoutError) and countdown.expired:
                salvage = members is not None and countdown.kind != "cancelled"
                outcome = await members.salvage() if salvage and members is not None else None
                if outcome is None:
                    why = countdown.record_expiry(task, number, countdown.kind)
                    outcome = failed(task.id, task.worker, countdown.kind, why)
            elif not is_workers_own(error):
                raise
            else:
                outcome = failed_by_bug(task, error)
            broken_off = Usage(seconds=self.engine.record.take_broken_off(task.id, number))
            return outcome.model_copy(update={"usage": Usage.total([*self.assignment.used, broken_off])})

    def _members(self) -> BestOf | None:
        """The members that do the attempt in parallel, if the task wants more than one and its worker may."""
        task, number = self.assignment.task, self.assignment.task.best_of or 1
        if number == 1:
            return None
        if not self.worker.repeatable:
            message = f"best_of {number} of {task.id} is ignored: {task.worker} does a task only once."
            self.engine.emit(Warned(message=message), task=task.id, attempt=self.assignment.attempt)
            return None
        from chargehand.steps.best_of import BestOf  # few tasks want it

        return BestOf(number, self.assignment, self.worker, self.engine, self.help.score, self.help.select)
