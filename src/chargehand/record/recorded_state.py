"""What the events of a run add up to: what must not be done again, and what is left to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from chargehand.events import Control, ModelReplied, PlanApproved, Reused, ToolReturned
from chargehand.events.body import Data
from chargehand.events.running_time import BrokenCalls, RunningTime, whole_task
from chargehand.record.spending import Called, InFlight, RecordedSpending
from chargehand.record.waits import Waits
from chargehand.values.base import JSON
from chargehand.values.key import Key
from chargehand.values.order import Restart
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plain_class import plain_class

Returned = ModelReplied | ToolReturned | Reused


@plain_class(eq=True)
class RecordedState:
    """The state of a run by its record. `Replay` folds events into it, `reopen_tasks` lets tasks run again."""

    run: str = ""
    seq: int = 0
    # The request, team and settings that the run continues with.
    start: Data = field(default_factory=dict[str, Any])
    sessions: int = 0
    plan: Data | None = None
    # Task -> the added tasks that take its place once they are done.
    fills: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    # The plan that runs, whether it was given, and what planning used.
    approved: PlanApproved | None = None
    # The last drafted plan without errors, which a person is asked to approve.
    drafted: Data | None = None
    # The approved plans of the teams that do attempts, by attempt (`t3/1`).
    approved_within: dict[str, PlanApproved] = field(default_factory=dict[str, PlanApproved])
    # The plan came from the user: the planner is never asked.
    plan_given: bool = False
    # By key, effects that returned.
    committed: dict[str, Returned] = field(default_factory=dict[str, Returned])
    # By key, the own names of the models that were called for these effects.
    models: dict[str, str] = field(default_factory=dict[str, str])
    # By key, effects begun and not returned when the record stops.
    intents: dict[str, Called] = field(default_factory=dict[str, Called])
    decisions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    questions: dict[str, Data] = field(default_factory=dict[str, Data])
    answers: dict[str, JSON] = field(default_factory=dict[str, JSON])
    ended: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task/attempt -> the outcome of an attempt that is not done.
    attempted: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    # task, and task/attempt -> when it was first begun, in owned seconds without the task's waits for people.
    begun: dict[str, float] = field(default_factory=dict[str, float])
    # task -> attempts begun; a reopened task continues to count from there.
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    reopened: dict[str, int] = field(default_factory=dict[str, int])
    # task -> the drafted plan of the tasks that replace it.
    splits: dict[str, Data] = field(default_factory=dict[str, Data])
    # Results of calls that are made again: they cost money too.
    unused: list[Returned] = field(default_factory=list[Returned])
    spending: RecordedSpending = field(default_factory=RecordedSpending)
    # Output tokens of the workers: what the synthesizer will have to read.
    written: int = 0
    time: RunningTime = field(default_factory=RunningTime)
    broken_calls: BrokenCalls = field(default_factory=BrokenCalls)
    status: str = "running"
    report: Data | None = None
    waits: Waits = field(default_factory=Waits)
    # Orders with a verdict, by key: they are not acted on again.
    controls: dict[str, Control] = field(default_factory=dict[str, Control])
    # Only a person continues a paused run.
    paused: bool = False
    # task -> why a person stopped it. It stays stopped.
    stopped: dict[str, str] = field(default_factory=dict[str, str])
    # Key of the order -> a restart that no session has carried out yet; and task -> the last restart that was carried
    # out.
    restarts: dict[str, Restart] = field(default_factory=dict[str, Restart])
    restarted: dict[str, Restart] = field(default_factory=dict[str, Restart])
    # Key of the order -> a person's words, and the task whose worker they are for.
    words: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    # How often each event that is recorded once was recorded, by `mark_of`.
    marks: Counter[tuple[str, str | None, str]] = field(default_factory=Counter[tuple[str, str | None, str]])

    @property
    def owned_s(self) -> float:
        """Seconds during which a process owned and ran this run, until the last event."""
        return self.time.seconds

    def open_questions(self) -> dict[str, Data]:
        """Questions without an answer, by key, in the order they were asked."""
        return {key: question for key, question in self.questions.items() if key not in self.answers}

    def close_questions(self, task: str) -> None:
        """Remove the open questions of a task that has ended, or that runs again and asks them again if needed."""
        for key in self.open_questions() if self.questions else ():
            path = Key.parse(key).path
            if path is not None and task in path.wholes:
                del self.questions[key]
                self.waits.end(path, self.owned_s)

    @property
    def has_programs(self) -> bool:
        """Whether the team has workers that start programs."""
        team: Data = self.start.get("team") or {}
        return any(worker.get("program") for worker in team.get("workers", ()))

    def usages(self) -> Iterator[Usage]:
        """The usage of each model call with a result, in tasks that ended, that did not end and that were reopened."""
        return filter(None, map(self._usage_of, (*self.committed.values(), *self.unused)))

    def _usage_of(self, returned: Returned) -> Usage | None:
        """What a model call, or a program that says it, used."""
        from chargehand.values.effect import ModelResult, usage_of

        if (used := returned.result.get("used")) is not None:
            return Usage.model_validate(used)
        if not isinstance(returned, ModelReplied):
            return None
        reply: Data = returned.result.get("reply") or {}
        model = self.models.get(returned.key) or reply.get("model", "")
        return usage_of(ModelResult.model_validate(returned.result), model)

    def earlier_usage(self) -> dict[str, Usage]:
        """Task of the plan -> what its outcome does not count: its attempts before it, or a part of it, was reopened,
        and the seconds of calls that a session left behind. The supervisor's calls whose results are not used are
        under "".
        """
        calls: dict[str, list[Usage]] = {}
        if self.reopened or self.unused:
            earlier = [(task, call) for key, call in self.committed.items() if (task := self._earlier_task(key))]
            for task, call in (*earlier, *(("", call) for call in self.unused)):
                if not isinstance(call, Reused):
                    seconds = float(call.result.get("seconds") or 0.0)
                    used = self._usage_of(call) or Usage()
                    calls.setdefault(task, []).append(used.model_copy(update={"seconds": seconds}))
        for key, seconds in self.broken_calls.left_behind().items():
            calls.setdefault(whole_task(Key.parse(key).task), []).append(Usage(seconds=seconds))
        for key, seconds in self.broken_calls.cut.items() if self.reopened else ():
            if task := self._earlier_task(key):
                calls.setdefault(task, []).append(Usage(seconds=seconds))
        return {task: Usage.total(used) for task, used in calls.items()}

    def _earlier_task(self, key: str) -> str | None:
        """The task of the plan, if it is the key of an attempt that ended before its task was reopened."""
        place = Key.parse(key)
        if place.path is None or place.attempt is None:
            return None
        attempts = [(place.path.text, place.attempt), *place.path.around]
        is_earlier = any(attempt <= self.reopened.get(task, 0) for task, attempt in attempts)
        return place.path.whole if is_earlier else None

    def in_flight(self) -> list[InFlight]:
        """Calls under way where the record stops."""
        return self.spending.in_flight(self.intents)

    def is_replaced(self, task: str) -> bool:
        """Whether added tasks have replaced it and all of them are done."""
        by = self.fills.get(task)
        return bool(by) and all(id in self.ended and self.ended[id].ok for id in by or ())
