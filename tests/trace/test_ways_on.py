"""What may still help a run that ended without all results."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.trace.page_state import page_state
from chargehand.trace.run_state import fold
from chargehand.trace.ways_on import ways_on
from tests.events import make_event
from tests.trace.sample import plan

SHORT = {"kind": "budget", "message": "the run has 882 tokens left and this call needs about 1,463"}


_DONE = {"task": "t1", "status": "done"}


def _report(*outcomes: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"status": "partial", "outcomes": list(outcomes), "plan": {"tasks": [{"id": "t1"}]}, **parts}


def _failed(kind: str, message: str = "") -> dict[str, Any]:
    return {"task": "t1", "status": "failed", "error": {"kind": kind, "message": message}}


@pytest.mark.parametrize(
    ("report", "limits", "retry", "stopped", "another"),
    [
        (_report(_failed(**SHORT)), {"tokens": 4_400}, False, (), False),
        (_report(_failed("deadline"), timing={"wall_s": 90.0}), {"deadline": 180}, False, (), False),
        (
            _report(
                notes=["The deadline left no time for a synthesis: ..."], timing={"wall_s": 90.0}, outcomes=[_DONE]
            ),
            {"deadline": 180},
            False,
            (),
            False,
        ),
        (_report(_failed("cancelled")), {}, False, ("t1",), False),
        (_report(_failed("connection")), {}, True, (), False),
        (_report(status="failed", plan=None, error={"kind": "connection", "message": "refused"}), {}, True, (), False),
        (_report(status="failed", plan=None, error={"kind": "contract", "message": "no plan"}), {}, False, (), False),
        (_report(status="failed"), {}, False, (), True),
        (_report(_failed("connection"), status="complete"), {}, False, (), False),
        ({}, {}, False, (), False),
    ],
)
def test_what_helps_depends_on_what_was_lacking(
    report: dict[str, Any], limits: dict[str, float], retry: bool, stopped: tuple[str, ...], another: bool
) -> None:
    """Limits that were reached, a try that may end otherwise, a restart, another plan; else nothing."""
    assert ways_on(report) == (limits, retry, stopped, another, ())


@pytest.mark.parametrize(
    ("budget", "limits", "short"),
    [
        ({"tokens": 300}, {}, ("t1",)),
        ({"seconds": 5.0}, {"tokens": 5_900}, ()),
        (None, {"tokens": 5_900}, ()),
    ],
)
def test_no_limit_of_the_run_helps_a_task_to_which_the_plan_gives_too_little(
    budget: dict[str, Any] | None, limits: dict[str, float], short: tuple[str, ...]
) -> None:
    """Another plan does. The ceiling of a task without a budget grows with the tokens of the run."""
    message = "task t1's budget of 300 tokens has 300 left and this call needs about 1,935"
    report = _report(_failed("budget", message), plan={"tasks": [{"id": "t1", "budget": budget}]})
    assert ways_on(report) == (limits, False, (), False, short)


def test_the_state_of_the_page_has_what_helps_and_counts_a_plan_that_was_rejected() -> None:
    """As the command line: none of its tasks is done."""
    made = plan().to_json()
    report: dict[str, Any] = {"status": "failed", "plan": made, "outcomes": []}
    events = [
        make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}),
        make_event("plan_drafted", seq=2, at=1.0, plan=made, source="planner"),
        make_event("run_ended", seq=3, at=2.0, status="failed", report=report),
    ]
    state = page_state(fold(events))
    assert (state["planned"], state["tasks"], state["ways_on"]["another_plan"]) == (8, [], True)
    assert state["plan"] == made, "it is edited for a fork"


def test_a_task_that_was_at_work_has_its_status_now_in_every_state_of_the_page() -> None:
    """Also if no event of the task is newer than what the page has."""
    events = [
        make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}),
        make_event("attempt_started", "t1", 1, seq=2, at=1.0, worker="writer"),
    ]
    states = [page_state(fold(events), since=2, is_over=is_over) for is_over in (None, True)]
    assert [(state["begun"], state["counts"], state["tasks"]) for state in states] == [
        ({"t1": "running"}, {"running": 1}, []),
        ({"t1": "stopped"}, {"stopped": 1}, []),
    ]
