"""One task through its attempts: work, check the criterion, decide by the ladder, act on the decision, until it ends.

Everything that depends on more than plan and outcomes is decided through the engine, by key, before it is acted on; so
a resumed run goes through the same rungs and pays for none of them again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, assert_never, cast

from pydantic import TypeAdapter

from chargehand.dispatcher.crew import Crew, Shift, out_key
from chargehand.dispatcher.criterion import Scorer, checked
from chargehand.effect import Question
from chargehand.engine import Engine
from chargehand.errors import ChargehandError, ErrorKind
from chargehand.limits import Change, Ticket
from chargehand.outcome import Claim, Finding, Outcome, Usage, failed
from chargehand.people import question_for_result
from chargehand.plan import Plan, Task
from chargehand.recovery import (
    Ask,
    Condition,
    Decision,
    GiveUp,
    Policy,
    Reassign,
    Refine,
    Retry,
    Situation,
    Split,
    Upgrade,
    condition_of,
    recover,
)
from chargehand.schema import violations
from chargehand.value import JSON
from chargehand.workers import Assignment
from chargehand.workers.human import Human, outcome_of

# The worker named in an outcome that a person gave.
PERSON = "person"
_DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)

# Both add what they use to the list, call by call.
Refiner = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Task]]
Splitter = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Plan | None]]
AskAbout = Callable[[Task, Outcome], Question]
# Runs the smaller tasks that take a task's place, until the time when the whole's own is over.
InItsPlace = Callable[[Task, Plan, Mapping[str, Outcome], float | None], Awaitable[list[Outcome]]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Help:
    """What the supervisor lends a dispatch; without one of these its rung is passed over."""

    refine: Refiner | None = None
    split: Splitter | None = None
    ask: AskAbout | None = None
    score: Scorer | None = None


@dataclass(slots=True)
class Pursuit:
    task: Task
    inputs: Mapping[str, Outcome]
    engine: Engine
    crew: Crew
    policy: Policy
    help: Help
    stop_at: float | None
    may_split: bool = True
    # When the task's own time is over, all attempts and parts together.
    ends_at: float | None = None
    # One entry per failed attempt.
    history: list[Condition] = field(default_factory=list[Condition])
    failed_workers: list[str] = field(default_factory=list[str])
    usages: list[Usage] = field(default_factory=list[Usage])
    was_split: bool = False
    was_asked: bool = False
    # What the last attempt that had anything had.
    partial: JSON = None

    async def run(self, in_its_place: InItsPlace) -> Outcome:
        """The task's one outcome, with what all attempts used."""
        task, first = self.task, self.engine.attempts(self.task.id)
        if task.budget is not None:
            self.engine.allot(task.id, task.budget)
            self._limit_time(task.budget.seconds)
        number = first
        while True:
            number += 1
            ready = await self._ready(task, number)
            if isinstance(ready, Outcome):
                number, outcome = number - 1, ready
                break
            task, ticket = ready
            outcome = await self._attempt(task, number, ticket)
            if outcome is None:
                number -= 1
                continue
            self.usages.append(outcome.usage)
            if outcome.ok:
                break
            if outcome.partial:
                self.partial = outcome.output
            self.history.append(condition_of(outcome))
            self.failed_workers.append(task.worker)
            step = await self._recover(task, outcome, number, in_its_place)
            if isinstance(step, Outcome):
                outcome = step
                break
            task = step
        if not outcome.ok and not outcome.partial and self.partial is not None:
            # What an earlier attempt had found is better than nothing.
            outcome = outcome.model_copy(update={"output": self.partial, "partial": True})
        if self.usages == [outcome.usage] and outcome.attempts == number - first:
            return outcome
        return outcome.model_copy(update={"attempts": number - first, "usage": Usage.total(self.usages)})

    # -- one attempt -------------------------------------------------------------------------------------------------

    async def _ready(self, task: Task, number: int) -> tuple[Task, Ticket | None] | Outcome:
        """The task for who works on it, as an earlier session decided or as things are; or its time is over."""
        if (choice := self.engine.decided(_route(task, number))) is not None:
            task = task.model_copy(update={"worker": choice["worker"]})
        if self.engine.attempted(task.id, number) is not None:
            return task, None
        if self.engine.sent(task.id, number):
            return task, self.crew.rejoin(task.worker, self.engine.now())
        if self.crew.wait_for(task.worker, self.engine.now()) is None:
            return task, self.crew.begin(task.worker, self.engine.now())
        return await self._in_time(self._routed(task, number, handed=choice is not None), task, number, "route")

    async def _routed(self, task: Task, number: int, *, handed: bool) -> tuple[Task, Ticket | None]:
        """The task for who may work on it now: its worker, or while that one is out its fallback, or the same later.

        No ticket when the worker is out for good. It is handed over once.
        """
        while (wait := self.crew.wait_for(task.worker, self.engine.now())) is not None:
            stand_in = None if handed else self.crew.stand_in(task.worker, self.failed_workers, self.engine.now())
            if stand_in is not None:
                task, handed = await self._handed_to(stand_in, task, number), True
            elif wait == float("inf"):
                return task, None
            else:
                await self.engine.sleep(wait)
        return task, self.crew.begin(task.worker, self.engine.now())

    async def _handed_to(self, worker: str, task: Task, number: int) -> Task:
        reason = f"{task.worker} is out after failing several tasks in a row"
        choice = await self.engine.decide(_route(task, number), "route", lambda: {"worker": worker}, reason)
        return task.model_copy(update={"worker": choice["worker"]})

    async def _attempt(self, task: Task, number: int, ticket: Ticket | None) -> Outcome | None:
        """One run of the task by one worker with one instruction at one tier, its criterion checked.

        None when the worker was taken out before anything was sent: the attempt has not been made.
        """
        if (earlier := self.engine.attempted(task.id, number)) is not None:
            return earlier
        assignment = Assignment(task, number, self.inputs)
        worker = self.crew.worker(task.worker)
        began = self.engine.began(task.id, number)
        self.engine.emit(
            "attempt_started",
            task=task.id,
            attempt=number,
            worker=task.worker,
            tier=task.tier,
            model=worker.model_for(task.tier),
        )
        seconds, kind = self._time_for(task, began)
        if isinstance(worker, Human):
            seconds = None  # a person takes the time it takes: that is not the run's own
        if ticket is None:
            outcome = self.crew.out_of_service(task)
        else:
            self._tell(ticket.change)
            clock = asyncio.timeout(seconds)
            shift = Shift(ticket, clock, lambda: self.engine.sent(task.id, number))
            self.crew.starts(task.worker, shift)
            try:
                async with clock:
                    outcome = await worker.work(assignment, self.engine)
                    if outcome.ok:
                        outcome = await checked(assignment, outcome, worker, self.engine, self.help.score)
            except Exception as error:  # recorded: a worker's bug is its task's failure, never its siblings'
                if shift.called_back and clock.expired():
                    self.engine.emit("attempt_ended", task=task.id, attempt=number, status="skipped", error=None)
                    return None
                if isinstance(error, TimeoutError) and clock.expired():
                    outcome = self._out_of_time(task, number, kind, kind, seconds)
                elif not _is_workers_own(error):
                    raise
                else:
                    message = f"{type(error).__name__} in {task.worker}: {error}"
                    outcome = failed(task.id, task.worker, "internal", message)
                outcome = outcome.model_copy(update={"usage": Usage.total(assignment.used)})
            finally:
                self.crew.stops(task.worker, shift, self.engine.now())
            self._tell_crew(ticket, task, outcome)
        if outcome.attempts != number:
            outcome = outcome.model_copy(update={"attempts": number})
        fault = outcome.error.to_json() if outcome.error else None
        self.engine.emit(
            "attempt_ended",
            task=task.id,
            attempt=number,
            status=outcome.status,
            error=fault,
            # A done attempt's outcome is the task's: it is on the record once.
            outcome=None if outcome.ok else outcome.to_json(),
        )
        return outcome

    def _limit_time(self, seconds: float | None) -> None:
        """Let the task's own time run from its first attempt, in whichever session that was."""
        if seconds is None:
            return
        start = self.engine.began(self.task.id)
        ends_at = (self.engine.now() if start is None else start) + seconds
        self.ends_at = ends_at if self.ends_at is None else min(self.ends_at, ends_at)

    def _time_left(self) -> tuple[float | None, ErrorKind]:
        """The seconds the task has as a whole, and what it is called when they are over."""
        now = self.engine.now()
        if self.stop_at is not None and (self.ends_at is None or self.stop_at <= self.ends_at):
            return max(self.stop_at - now, 0.0), "deadline"
        return (None, "timeout") if self.ends_at is None else (max(self.ends_at - now, 0.0), "timeout")

    def _time_for(self, task: Task, began: float | None) -> tuple[float | None, ErrorKind]:
        """The same for one attempt, of which an earlier session may have used some."""
        left, kind = self._time_left()
        if task.timeout_s is None:
            return left, kind
        seconds = max(task.timeout_s - (0.0 if began is None else self.engine.now() - began), 0.0)
        return (seconds, "timeout") if left is None or seconds < left else (left, kind)

    async def _in_time(self, work: Awaitable[T], task: Task, number: int, what: str) -> T | Outcome:
        """What is done between attempts, or the failure when the task's time is over first."""
        seconds, kind = self._time_left()
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                return await work
        except TimeoutError:
            if not clock.expired():
                raise
            return self._out_of_time(task, number, f"{what}/{kind}", kind, seconds)

    def _out_of_time(self, task: Task, number: int, where: str, kind: ErrorKind, seconds: float | None) -> Outcome:
        """On the record in the same batch as the end of the attempt, so that resume never decides it again."""
        what = "its time of" if kind == "timeout" else "the run's deadline, with"
        reason = f"{task.worker} was stopped at {what} {seconds or 0:g} s{' left' if kind == 'deadline' else ''}."
        self.engine.emit(
            "decision",
            task=task.id,
            attempt=number,
            key=f"{task.id}/{number}/{where}",
            decision=kind,
            value={"after_s": seconds},
            reason=reason,
        )
        return failed(task.id, task.worker, kind, reason)

    def _tell_crew(self, ticket: Ticket, task: Task, outcome: Outcome) -> None:
        change = self.crew.ended(ticket, task, outcome, self.engine.now())
        if change is None:
            return
        self._tell(change)
        verdict = self.crew.verdict(task.worker, self.engine.now())
        key = out_key(task.worker)
        self.engine.emit("decision", key=key, decision="breaker", value=verdict, reason=change.reason)
        if change.state == "open":
            self.crew.call_back(task.worker)

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            self.engine.emit("breaker_changed", name=change.name, state=change.state, reason=change.reason)

    # -- after a failure ---------------------------------------------------------------------------------------------

    async def _recover(self, task: Task, outcome: Outcome, number: int, in_its_place: InItsPlace) -> Task | Outcome:
        """The task as it is to be tried next, or the outcome it ends with."""
        for turn in itertools.count(1):
            decision = await self._decide(task, outcome, number, turn)
            match decision:
                case GiveUp():
                    return outcome
                case Retry():
                    if not decision.after_s:
                        return task
                    pause = self.engine.sleep(decision.after_s)
                    return await self._in_time(pause, task, number, "recovery") or task
                case Refine():
                    assert self.help.refine is not None
                    refined = self.help.refine(task, outcome, number, self.usages)
                    return await self._in_time(refined, task, number, "recovery")
                case Upgrade():
                    return task.model_copy(update={"tier": decision.tier})
                case Reassign():
                    return task.model_copy(update={"worker": decision.worker})
                case Split():
                    self.was_split = True
                    if (replaced := await self._split(task, outcome, number, in_its_place)) is not None:
                        return replaced
                case Ask():
                    self.was_asked = True
                    if len(self.history) >= self.policy.attempts:
                        return await self._asked_for_result(task, outcome, number)
                    answer = await self._ask(task, outcome)
                    return task.model_copy(update={"context": _with_answer(task, outcome, answer)})
                case _:
                    assert_never(decision)
        raise AssertionError("giving up ends it")

    async def _decide(self, task: Task, outcome: Outcome, number: int, turn: int) -> Decision:
        worker = self.crew.worker(task.worker)

        def choose() -> JSON:
            situation = Situation(
                outcome=outcome,
                history=tuple(self.history),
                tier=task.tier or worker.tier,
                fallback=self.crew.fallback_for(task.worker, self.failed_workers),
                others=self.crew.others(task.worker, self.failed_workers),
                refine=self.help.refine is not None,
                split=self.help.split is not None and self.may_split and not self.was_split,
                ask=self.help.ask is not None and not self.was_asked,
                affordable=self.engine.affordable() and self._time_left()[0] != 0,
                in_service=not self.crew.is_out(task.worker),
            )
            return recover(situation, self.policy, self.engine.chance()).to_json()

        key = f"{task.id}/{number}/recovery" + (f"/{turn}" if turn > 1 else "")
        return _DECISION.validate_python(await self.engine.decide(key, "recovery", choose, outcome.summary))

    async def _split(self, task: Task, outcome: Outcome, number: int, in_its_place: InItsPlace) -> Outcome | None:
        """What the smaller tasks came to, as one outcome; None when there is no way to split it."""
        assert self.help.split is not None
        planned = self.help.split(task, outcome, number, self.usages)
        plan = await self._in_time(planned, task, number, "recovery")
        if plan is None or isinstance(plan, Outcome):
            return plan
        parts = await in_its_place(task, plan, self.inputs, self.ends_at)
        self.usages.extend(part.usage for part in parts)
        return await self._held_to_criterion(task, joined(task, parts), number, "split")

    async def _asked_for_result(self, task: Task, outcome: Outcome, number: int) -> Outcome:
        """No attempt is left: what the person says is the result, held to what a worker's is held to."""
        schema = self.crew.worker(task.worker).output_schema
        answer = await self.engine.ask(f"{task.id}/ask", question_for_result(task, outcome, schema))
        return await self._held_to_criterion(task, outcome_of(task.id, PERSON, answer), number, "ask")

    async def _held_to_criterion(self, task: Task, outcome: Outcome, number: int, after: str) -> Outcome:
        """A result that no single attempt gave, or why it does not do; what was there stays as a partial result."""
        if not outcome.ok:
            return outcome
        worker = self.crew.worker(task.worker)
        if worker.output_schema is not None and (wrong := violations(outcome.output, worker.output_schema)):
            message = f"The result does not have the agreed shape: {'; '.join(wrong)}"
            return failed(task.id, outcome.worker, "contract", message, output=outcome.output)
        assignment = Assignment(task, number, self.inputs, self.usages, after=after)
        return await checked(assignment, outcome, worker, self.engine, self.help.score)

    async def _ask(self, task: Task, outcome: Outcome) -> str:
        assert self.help.ask is not None
        answer = await self.engine.ask(f"{task.id}/ask", self.help.ask(task, outcome))
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _route(task: Task, number: int) -> str:
    """Under which key it is decided who stands in."""
    return f"{task.id}/{number}/route"


def joined(task: Task, parts: list[Outcome]) -> Outcome:
    """The outcomes of the tasks that took a task's place as its own: done only when all of them are."""
    good = [part for part in parts if part.ok]
    output = {part.task: part.output for part in good}
    if len(good) < len(parts):
        missing = ", ".join(f"{part.task} ({part.summary})" for part in parts if not part.ok)
        kinds: list[ErrorKind] = [part.error.kind for part in parts if part.error]
        message = f"Split into {len(parts)} tasks, of which some are not done: {missing}"
        kind: ErrorKind = kinds[0] if kinds else "contract"
        result = failed(task.id, task.worker, kind, message, output=output or None)
        return result.model_copy(update={"claims": _claims(task, good), "findings": _findings(task, good)})
    stated = [part.confidence for part in good if part.confidence is not None]
    return Outcome(
        task=task.id,
        status="done",
        worker=task.worker,
        summary=" ".join(part.summary for part in good),
        output=output,
        claims=_claims(task, good),
        findings=_findings(task, good),
        confidence=min(stated) if stated else None,
    )


# The parts are of their task: what they rest on is cited under its id.


def _claims(task: Task, parts: list[Outcome]) -> tuple[Claim, ...]:
    return tuple(c.model_copy(update={"sources": (task.id, *c.sources[1:])}) for p in parts for c in p.claims)


def _findings(task: Task, parts: list[Outcome]) -> tuple[Finding, ...]:
    return tuple(f.model_copy(update={"sources": (task.id, *f.sources[1:])}) for p in parts for f in p.findings)


def _with_answer(task: Task, outcome: Outcome, answer: str) -> JSON:
    """The task's context with what a person said about it."""
    return {"context": task.context, "asked of a person": outcome.summary, "their answer": answer}


def _is_workers_own(error: Exception) -> bool:
    """Whether an exception is the worker's own; the record's and the owner's errors end the run instead."""
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        return all(_is_workers_own(inner) for inner in group.exceptions)
    return not isinstance(error, ChargehandError)
