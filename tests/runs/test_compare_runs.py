"""Two reports -> what differs between them."""

from __future__ import annotations

from typing import Any

from chargehand.runs.compare_runs import compare_reports
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Report


def outcome(task: str, output: Any = "words", status: Any = "done", **fields: Any) -> Outcome:
    return Outcome(task=task, status=status, worker="w", output=output, **fields)


def report(*outcomes: Outcome, plan: Plan | None = None, **fields: Any) -> Report:
    return Report.model_validate(
        {"run": "r", "request": "q", "status": "complete", "answer": "yes", "outcomes": outcomes, "plan": plan} | fields
    )


def tasks(*ids: str, **fields: Any) -> Plan:
    return Plan(tasks=tuple(Task(id=id, worker="w", instruction="Do", **fields) for id in ids))


def test_a_run_does_not_differ_from_itself() -> None:
    """No plan difference, no task difference, the same answer."""
    one = report(outcome("a"), outcome("b", {"n": 1}), plan=tasks("a", "b"))
    found = compare_reports(one, one)
    assert not found.plan
    assert [each.differs for each in found.tasks] == [(), ()]
    assert found.answer.same


def test_cost_and_time_are_there_and_are_not_called_different() -> None:
    """They hardly ever are the same; the outcomes have them."""
    usage = Usage(usd=0.5, seconds=3.0)
    found = compare_reports(report(outcome("a")), report(outcome("a", usage=usage)))
    assert found.tasks[0].differs == ()
    assert found.tasks[0].b is not None
    assert found.tasks[0].b.usage == usage


def test_status_worker_and_output_are_compared_task_by_task() -> None:
    """In the order of the first plan, then what only the second has."""
    a = report(outcome("x"), outcome("y"), plan=tasks("x", "y"))
    b = report(outcome("y", "other"), outcome("x", None, "failed"), outcome("z"), plan=tasks("z", "y", "x"))
    found = compare_reports(a, b)
    assert [(each.task, each.differs) for each in found.tasks] == [
        ("x", ("status", "output")),
        ("y", ("output",)),
        ("z", ("status",)),
    ]


def test_plans_are_compared_field_by_field() -> None:
    """A changed field has both values; a task that only one plan has is whole on that side."""
    a = tasks("x", "y")
    b = Plan(goal="g", tasks=(a.tasks[0].model_copy(update={"instruction": "Other", "tier": "large"}),))
    found = compare_reports(report(plan=a), report(plan=b)).plan
    assert [(each.task, each.field) for each in found] == [
        (None, "goal"),
        ("x", "instruction"),
        ("x", "tier"),
        ("y", None),
    ]
    assert (found[1].a, found[1].b, found[2].a) == ("Do", "Other", None)
    assert found[3].b is None


def test_runs_without_a_plan_or_an_end_can_be_compared() -> None:
    """A task that ended in one of them only differs in status; one that ended in neither does not."""
    begun = report(plan=tasks("x", "y"), status="running")
    found = compare_reports(begun, report(outcome("x"), plan=tasks("x", "y")))
    assert [(each.task, each.differs) for each in found.tasks] == [("x", ("status",)), ("y", ())]
    assert compare_reports(report(status="running"), report(status="running")).tasks == ()
