"""Outcomes, reports and texts of tasks by ref, in memory: results of steps, and those of earlier sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from chargehand.values.outcome import Outcome, Usage
from chargehand.values.step import Head

if TYPE_CHECKING:
    from chargehand.values.plan import Task
    from chargehand.values.report import Report


class KeptOutcomes:
    """One per session. An outcome never changes once it is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, Outcome] = {}
        self._reports: dict[str, Report] = {}
        self._tasks: dict[str, tuple[Task, ...]] = {}

    def keep(self, ref: str, outcome: Outcome) -> Head:
        self._kept[ref] = outcome
        return Head.of(outcome, ref)

    def at(self, ref: str) -> Outcome:
        return self._kept[ref]

    def keep_report(self, ref: str, report: Report, usage: Usage) -> Head:
        self._reports[ref] = report
        status = "failed" if report.status == "failed" else "done"
        return Head(status=status, ref=ref, report=report.status, usage=usage)

    def report_at(self, ref: str) -> Report:
        return self._reports[ref]

    def keep_tasks(self, ref: str, tasks: Iterable[Task]) -> None:
        self._tasks[ref] = tuple(tasks)

    def tasks_at(self, ref: str) -> tuple[Task, ...]:
        return self._tasks[ref]

    def end(self, ref: str, head: Head) -> Outcome:
        """The outcome that belongs to a head, kept under the ref of its task."""
        outcome = head.outcome() if head.ref is None else self.at(head.ref)
        changes: dict[str, Any] = {}
        if head.attempts != outcome.attempts:
            changes["attempts"] = head.attempts
        if head.usage != outcome.usage:
            changes["usage"] = head.usage
        if head.output_of is not None:
            changes |= {"output": self.at(head.output_of).output, "partial": True}
        self._kept[ref] = outcome = outcome.model_copy(update=changes) if changes else outcome
        return outcome
