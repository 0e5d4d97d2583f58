"""A report as a value in Python: what `unwrap` returns and refuses, and how a report shows itself."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from chargehand.errors import IncompleteRun
from chargehand.values.outcome import Fault, Outcome, done, failed
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Gap, Provenance, Report
from chargehand.values.status_words import RunStatus


def report(status: RunStatus = "complete", **fields: Any) -> Report:
    given: dict[str, Any] = {"outcomes": (done("t1", "ann", summary="It is so.", output="so"),), **fields}
    return Report(**{"run": "r1", "request": "Why?", "status": status, "answer": "It is so [t1].\n"} | given)


GAP = Gap(task="t2", reason="No figures for Bergen.")


def test_unwrap_returns_the_answer_of_a_complete_run() -> None:
    """Without a type for it, the answer is text."""
    assert report().unwrap() == "It is so [t1].\n"


def test_unwrap_returns_the_data_where_there_is_some() -> None:
    """Data was asked for, so it is the answer."""
    assert report(data={"people": 3}).unwrap() == {"people": 3}
    assert report().with_data({"people": 4}).unwrap() == {"people": 4}


def test_unwrap_refuses_a_partial_run_unless_it_is_accepted() -> None:
    """The error names the gap and has the report."""
    partial = report("partial", gaps=(GAP,))
    with pytest.raises(IncompleteRun, match=r"r1 is partial\. t2: No figures for Bergen\.") as raised:
        partial.unwrap()
    assert (raised.value.report, raised.value.exit_code) == (partial, 3)
    assert partial.unwrap(partial=True) == partial.answer


@pytest.mark.parametrize("status", ["failed", "cancelled", "interrupted", "waiting", "paused", "running"])
def test_unwrap_refuses_what_has_not_ended_with_an_answer(status: RunStatus) -> None:
    """Also where a partial answer would do."""
    with pytest.raises(IncompleteRun, match=f"r1 is {status}"):
        report(status, outcomes=()).unwrap(partial=True)


def test_why_a_task_failed_is_said_once() -> None:
    """The kind of its error says that it failed."""
    fault = Fault(kind="bad_request", message="The model is down")
    outcome = Outcome(task="t2", status="failed", worker="w", error=fault)
    gap = Gap(task="t2", reason="failed: The model is down", impact="")
    with pytest.raises(IncompleteRun, match=r"t2 \(bad_request\): The model is down\."):
        report("partial", gaps=(gap,), outcomes=(outcome,)).unwrap()


def test_unwrap_never_returns_text_where_a_type_was_asked_for() -> None:
    """A partial run without valid data has nothing of that type."""
    with pytest.raises(IncompleteRun, match="has no data of the type that was asked for"):
        report("partial", gaps=(GAP,)).with_data(None).unwrap(partial=True)


def test_that_data_was_asked_for_is_not_part_of_the_value() -> None:
    """It is equal to the same report without it, has the same JSON, and is kept by a copy."""
    typed = report().with_data(None)
    assert typed == report()
    assert typed.to_json() == report().to_json()
    with pytest.raises(IncompleteRun):
        pickle.loads(pickle.dumps(typed)).unwrap()


def test_a_report_is_one_short_line() -> None:
    """In a console one sees how the run ended and how the answer begins."""
    shown = repr(report("partial", answer="word " * 1_000))
    assert shown == f"<Report r1: partial, 1 of 1 task done, 0 tokens; {'word ' * 12!r:.61}...'>"
    assert "\n" not in shown
    assert str(report()) == repr(report())


def test_a_run_that_waits_counts_the_tasks_of_its_plan() -> None:
    """Those that have not begun have no outcome yet."""
    plan = Plan(goal="g", tasks=(Task(id="t1"), Task(id="t2")))
    assert "1 of 2 tasks done" in repr(report("waiting", plan=plan))
    assert "no plan" in repr(report("waiting", outcomes=()))


def test_a_notebook_shows_the_answer_and_what_is_missing() -> None:
    """As markdown: the answer is markdown."""
    shown = report("partial", gaps=(GAP,))._repr_markdown_()  # pyright: ignore[reportPrivateUsage]
    assert shown.startswith("It is so [t1].\n\n---\n")
    assert "- gap: t2: No figures for Bergen." in shown


def test_a_run_that_is_partial_for_its_citations_says_so() -> None:
    """It has no gaps: the notebook and `unwrap` name what is wrong with the answer."""
    wrong = Provenance(problems=("unknown_citation: t9 is not a task.",), unused=("t1",))
    partial = report("partial", provenance=wrong)
    shown = partial._repr_markdown_()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(IncompleteRun) as raised:
        partial.unwrap()
    for text in (shown, str(raised.value)):
        assert "t9" in text
        assert "t1" in text


def test_unwrap_of_a_failed_run_names_the_task_and_the_kind_of_its_error() -> None:
    """The words of a provider may be a single one."""
    outcome = failed("t2", "ann", "bad_request", "no")
    with pytest.raises(IncompleteRun, match=r"t2 \(bad_request\): no"):
        report("failed", outcomes=(outcome,), gaps=(Gap(task="t2", reason="no"),)).unwrap()
    with pytest.raises(IncompleteRun, match="auth: no"):
        report("failed", outcomes=(), error=Fault(kind="auth", message="no")).unwrap()
