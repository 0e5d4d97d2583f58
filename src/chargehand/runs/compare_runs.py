"""The reports of two runs -> what differs between them."""

from __future__ import annotations

from collections.abc import Iterator

from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from chargehand.values.run_diff import AnswerDiff, Aspect, FieldDiff, RunDiff, RunSide, TaskDiff

_ASPECTS: tuple[Aspect, ...] = ("status", "worker", "output")


def compare_reports(a: Report, b: Report) -> RunDiff:
    """Both as far as they have come: a run need not have ended, or not have a plan yet."""
    ended_a, ended_b = ({outcome.task: outcome for outcome in report.outcomes} for report in (a, b))
    tasks = dict.fromkeys([*_task_ids(a), *_task_ids(b)])
    return RunDiff(
        a=_side(a),
        b=_side(b),
        plan=tuple(_plan_differences(a.plan, b.plan)),
        tasks=tuple(_compare_task(task, ended_a.get(task), ended_b.get(task)) for task in tasks),
        answer=AnswerDiff(same=a.answer == b.answer, a=a.answer, b=b.answer),
    )


def _side(report: Report) -> RunSide:
    return RunSide(
        run=report.run,
        request=report.request,
        status=report.status,
        confidence=report.confidence,
        usage=report.usage,
        timing=report.timing,
    )


def _task_ids(report: Report) -> list[str]:
    return [task.id for task in report.plan.tasks] if report.plan else [outcome.task for outcome in report.outcomes]


def _compare_task(task: str, a: Outcome | None, b: Outcome | None) -> TaskDiff:
    if a is None or b is None:
        return TaskDiff(task=task, differs=() if a is b else ("status",), a=a, b=b)
    differs: tuple[Aspect, ...] = tuple(aspect for aspect in _ASPECTS if getattr(a, aspect) != getattr(b, aspect))
    return TaskDiff(task=task, differs=differs, a=a, b=b)


def _plan_differences(a: Plan | None, b: Plan | None) -> Iterator[FieldDiff]:
    plan_a, plan_b = (plan.to_json() if plan else {} for plan in (a, b))
    for field in ("goal", "synthesis", "team", "workers"):
        if plan_a.get(field) != plan_b.get(field):
            yield FieldDiff(task=None, field=field, a=plan_a.get(field), b=plan_b.get(field))
    tasks_a, tasks_b = ({task.id: task.to_json() for task in plan.tasks} if plan else {} for plan in (a, b))
    for task in dict.fromkeys([*tasks_a, *tasks_b]):
        fields_a, fields_b = tasks_a.get(task), tasks_b.get(task)
        if fields_a is None or fields_b is None:
            yield FieldDiff(task=task, field=None, a=fields_a, b=fields_b)
            continue
        for field in dict.fromkeys([*fields_a, *fields_b]):
            if fields_a.get(field) != fields_b.get(field):
                yield FieldDiff(task=task, field=field, a=fields_a.get(field), b=fields_b.get(field))
