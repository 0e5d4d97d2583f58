"""The steps of a dispatch, each by its refs: an attempt, and what the supervisor does about one that failed.

attempt      a worker does the task                          -> its outcome
refine       a model rewrites the task                       -> its words
reroute      a model chooses another worker                  -> the worker
split        a model plans smaller tasks in its place        -> the parts, without their words
join         what the parts came to is put together          -> one outcome
ask          a person is asked about the task                -> its words, with the answer
ask_result   a person is asked for the result itself         -> an outcome
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from typing import TypeVar

from chargehand.dispatcher.time_limits import Countdown, TimeLimits
from chargehand.engine.people import question_for_result
from chargehand.engine.port import Engine
from chargehand.steps.attempt_work import AttemptWork
from chargehand.steps.criterion import check_criterion
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.text.json_schema import violations
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.outcome import Outcome, Usage, failed
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task
from chargehand.values.step import Head, StepKind, StepRefs
from chargehand.workers import Assignment, Roster

# The worker named in an outcome that a person gave.
PERSON = "person"
# The fields of a task that are text: they are not known outside steps.
_WORDLESS = {"instruction": "", "context": None, "success_criterion": ""}
T = TypeVar("T")


def drop_words(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """The tasks with the fields that may be known outside steps."""
    return tuple(task.model_copy(update=_WORDLESS) for task in tasks)


@plain_class()
class TaskSteps:
    """One per run, or per team within one. `add_tasks` comes before the first step of a task."""

    engine: Engine
    roster: Roster
    help: SupervisorHelp = field(default_factory=SupervisorHelp)
    # The tasks of the plan and of what was added to it, by id.
    _tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    _attempts: dict[str, AttemptWork] = field(default_factory=dict[str, AttemptWork])
    # The ids of all tasks of the plan: one value for all attempts.
    _ids: frozenset[str] = frozenset()

    def add_tasks(self, tasks: Iterable[Task]) -> None:
        self._tasks.update({task.id: task for task in tasks})
        self._ids = frozenset(self._tasks)

    async def run(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        return await _STEPS[kind](self, key, refs)

    def recall(self, key: str) -> None:
        if (attempt := self._attempts.get(key)) is not None:
            attempt.recall()

    # -- the steps ---------------------------------------------------------------------------------------------------

    async def attempt(self, key: str, refs: StepRefs) -> Head:
        task = self._task(refs)
        worker, time = self.roster[task.worker], self._time(refs)
        if (restart := self.engine.record.restart_of(task.id)) is not None and restart.model is not None:
            worker = worker.with_model(restart.model)
        # The time of a person is not limited by the run's time.
        countdown = time.endless() if worker.waits_for_person else time.countdown_of(task, refs.attempt)
        assignment = Assignment(task, refs.attempt, self._inputs(refs), tasks=self._known_ids(task.id))
        attempt = AttemptWork(assignment, worker, self.engine, self.help, countdown, refs.refused)
        self._attempts[key] = attempt
        try:
            outcome = await attempt.run()
        finally:
            del self._attempts[key]
        if outcome is None:
            return Head(task=task.id, worker=task.worker, status="skipped")
        return self.engine.outcomes.keep(key, outcome)

    async def refine(self, key: str, refs: StepRefs) -> Head:
        assert self.help.refine is not None
        task, used = self._task(refs), list[Usage]()
        made = await self._in_time(self.help.refine(task, self._outcome(refs), refs.attempt, used), refs, "recovery")
        if isinstance(made, Outcome):
            return self._fail(key, made, used)
        return self._with_words(key, made, used)

    async def reroute(self, key: str, refs: StepRefs) -> Head:
        assert self.help.reroute is not None
        task, used = self._task(refs), list[Usage]()
        chosen = self.help.reroute(task, self._outcome(refs), refs.among, refs.attempt, used)
        worker = await self._in_time(chosen, refs, "recovery")
        if isinstance(worker, Outcome):
            return self._fail(key, worker, used)
        return Head(task=task.id, worker=worker, status="done", usage=Usage.total(used))

    async def split(self, key: str, refs: StepRefs) -> Head:
        assert self.help.split is not None
        task, used = self._task(refs), list[Usage]()
        plan = await self._in_time(self.help.split(task, self._outcome(refs), refs.attempt, used), refs, "recovery")
        if isinstance(plan, Outcome):
            return self._fail(key, plan, used)
        parts = () if plan is None else plan.tasks
        self.engine.outcomes.keep_tasks(_parts_ref(task.id), parts)
        usage = Usage.total(used)
        return Head(task=task.id, worker=task.worker, status="done", usage=usage, parts=drop_words(parts))

    async def join(self, key: str, refs: StepRefs) -> Head:
        from chargehand.steps.join_parts import join_parts  # few runs split a task

        task = self._task(refs)
        parts = [self.engine.outcomes.at(part) for part in refs.parts]
        return await self._hold_to_criterion(key, join_parts(task, parts), refs, "split")

    async def ask(self, key: str, refs: StepRefs) -> Head:
        assert self.help.ask is not None
        task, outcome = self._task(refs), self._outcome(refs)
        answer = await self._ask_person(refs, self.help.ask(task, outcome))
        if isinstance(answer, Outcome):
            return self._fail(key, answer, [])
        said = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        context: JSON = {"context": task.context, "asked of a person": outcome.summary, "their answer": said}
        return self._with_words(key, task.model_copy(update={"context": context}), [])

    async def ask_result(self, key: str, refs: StepRefs) -> Head:
        """No attempt is left: the person's words are the result, checked in the same way as a worker's result."""
        task, schema = self._task(refs), self.roster[refs.worker].output_schema
        question = question_for_result(task, self._outcome(refs), schema)
        answer = await self._ask_person(refs, question)
        if isinstance(answer, Outcome):
            return self._fail(key, answer, [])
        from chargehand.workers.human import outcome_of  # few runs ask a person

        return await self._hold_to_criterion(key, outcome_of(task.id, PERSON, answer), refs, "ask")

    # -- parts of them -----------------------------------------------------------------------------------------------

    async def _hold_to_criterion(self, key: str, outcome: Outcome, refs: StepRefs, after: str) -> Head:
        """A result that no single attempt gave, or why it is refused; the result so far stays as a partial result."""
        used: list[Usage] = []
        if outcome.ok:
            outcome = await self._check_result(outcome, refs, after, used)
        return self.engine.outcomes.keep(key, outcome.model_copy(update={"usage": Usage.total(used)}))

    async def _check_result(self, outcome: Outcome, refs: StepRefs, after: str, used: list[Usage]) -> Outcome:
        task, worker = self._task(refs), self.roster[refs.worker]
        if worker.output_schema is not None and (wrong := violations(outcome.output, worker.output_schema)):
            message = f"The result does not have the agreed shape: {'; '.join(wrong)}"
            return failed(task.id, outcome.worker, "contract", message, output=outcome.output)
        assignment = Assignment(task, refs.attempt, self._inputs(refs), used, within=after)
        held = await self._in_time(
            check_criterion(assignment, outcome, worker, self.engine, self.help.score), refs, after
        )
        if held.ok or held.output is not None:
            return held
        return held.model_copy(update={"output": outcome.output, "partial": True})

    async def _ask_person(self, refs: StepRefs, question: Question) -> JSON | Outcome:
        """The person's answer, or the failure when the task is stopped first: nothing else ends the wait."""
        asked = self.engine.ask(f"{refs.task}/ask", question)
        return await self._in_time(asked, refs, "ask", self._time(refs).endless())

    async def _in_time(
        self, work: Awaitable[T], refs: StepRefs, what: str, countdown: Countdown | None = None
    ) -> T | Outcome:
        """The result of work between attempts, or the failure when the task's time is over first."""
        task, countdown = self._task(refs), countdown or self._time(refs).countdown()
        try:
            async with countdown:
                return await work
        except TimeoutError:
            if not countdown.expired:
                raise
            why = countdown.record_expiry(task, refs.attempt, f"{what}/{countdown.kind}")
            return failed(task.id, task.worker, countdown.kind, why)

    def _fail(self, key: str, outcome: Outcome, used: list[Usage]) -> Head:
        return self.engine.outcomes.keep(key, outcome.model_copy(update={"usage": Usage.total(used)}))

    def _with_words(self, key: str, task: Task, used: list[Usage]) -> Head:
        self.engine.outcomes.keep_tasks(key, [task])
        return Head(task=task.id, worker=task.worker, status="done", usage=Usage.total(used), words=key)

    def _task(self, refs: StepRefs) -> Task:
        """The task as it is to be done: by which worker, at which tier, in which words."""
        task = self._tasks.get(refs.task) or next(each for each in self._parts_with(refs.task) if each.id == refs.task)
        changes: dict[str, JSON] = {}
        if refs.words is not None:
            (rewritten,) = self.engine.outcomes.tasks_at(refs.words)
            changes = {name: getattr(rewritten, name) for name in _WORDLESS}
        if refs.worker != task.worker:
            changes["worker"] = refs.worker
        if refs.tier != task.tier:
            changes["tier"] = refs.tier
        return task.model_copy(update=changes) if changes else task

    def _known_ids(self, task: str) -> frozenset[str]:
        if task in self._tasks:
            return self._ids
        return self._ids.union(part.id for part in self._parts_with(task))

    def _parts_with(self, task: str) -> tuple[Task, ...]:
        """A part of a task that was split, and its other parts."""
        return self.engine.outcomes.tasks_at(_parts_ref(task.rpartition(".s.")[0]))

    def _inputs(self, refs: StepRefs) -> Mapping[str, Outcome]:
        return {task: self.engine.outcomes.at(task) for task in refs.inputs}

    def _outcome(self, refs: StepRefs) -> Outcome:
        assert refs.outcome is not None
        return self.engine.outcomes.at(refs.outcome)

    def _time(self, refs: StepRefs) -> TimeLimits:
        return TimeLimits(self.engine, refs.task, refs.stop_at, refs.ends_at)


def _parts_ref(task: str) -> str:
    """Under which ref the parts of a task are kept: a task is split once."""
    return f"{task}/parts"


_STEPS: dict[StepKind, Callable[[TaskSteps, str, StepRefs], Awaitable[Head]]] = {
    "attempt": TaskSteps.attempt,
    "refine": TaskSteps.refine,
    "reroute": TaskSteps.reroute,
    "split": TaskSteps.split,
    "join": TaskSteps.join,
    "ask": TaskSteps.ask,
    "ask_result": TaskSteps.ask_result,
}
