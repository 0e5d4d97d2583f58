"""A comparison of two runs: their plans, each task, their cost and time, and their answers."""

from __future__ import annotations

from typing import Any, Literal

from chargehand.values.base import JSON, Value
from chargehand.values.outcome import Confidence, Outcome, Usage
from chargehand.values.report import Timing
from chargehand.values.status_words import RunStatus

Aspect = Literal["status", "worker", "output"]


class RunSide(Value):
    """One of the two runs as a whole."""

    run: str
    request: str
    status: RunStatus
    confidence: Confidence | None
    usage: Usage
    timing: Timing


class FieldDiff(Value):
    """A field of a task, or of the plan, that differs. A task that only one plan has is None in the other."""

    # None: a field of the plan itself, such as `synthesis`.
    task: str | None
    # None: the whole task.
    field: str | None
    a: JSON
    b: JSON


class TaskDiff(Value):
    """A task in both runs, with an outcome where it ended. Cost and time are in `usage` of the outcomes."""

    task: str
    # Which parts of the results differ. Cost and time nearly always differ and are not listed.
    differs: tuple[Aspect, ...]
    a: Outcome | None
    b: Outcome | None


class AnswerDiff(Value):
    """The two answers, and whether they are the same."""

    same: bool
    a: str
    b: str


class RunDiff(Value):
    """What differs between two runs: their plans, tasks, cost, time and answers."""

    a: RunSide
    b: RunSide
    # Empty: the plans are the same.
    plan: tuple[FieldDiff, ...]
    # In the order of the first plan; tasks that only the second plan has come last.
    tasks: tuple[TaskDiff, ...]
    answer: AnswerDiff

    def __repr__(self) -> str:
        plan = f"{len(self.plan):,} fields of the plan differ" if self.plan else "the same plan"
        tasks = f"{sum(bool(each.differs) for each in self.tasks):,} of {len(self.tasks):,} tasks differ"
        answer = "the same answer" if self.answer.same else "other answers"
        return f"<RunDiff {self.a.run} and {self.b.run}: {plan}, {tasks}, {answer}>"

    def to_json(self) -> dict[str, Any]:
        data = self.model_dump(mode="json", exclude={"tasks"})
        data["tasks"] = [
            {
                "task": each.task,
                "differs": list(each.differs),
                "a": None if each.a is None else each.a.to_json(),
                "b": None if each.b is None else each.b.to_json(),
            }
            for each in self.tasks
        ]
        return data
