"""The same flows on both engines: same outcomes, same answer, same events of each task in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.team import Team, Worker
from chargehand.tools import tool
from chargehand.values.effect import ModelCall
from chargehand.values.event import Event
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Plan
from chargehand.values.recovery_policy import Policy
from tests.engine.temporal.fleet import Server, run_on
from tests.flows import Flow, Said, clerks, escalate, task, tasks, works
from tests.kernel import result

pytestmark = pytest.mark.xdist_group("temporal")


def fails_once(call: ModelCall, attribution: Attribution) -> Said:
    """The first attempt at `a` has no result."""
    if call.role == "worker" and attribution.task == "a" and attribution.attempt == 1:
        return {"summary": "", "output": None, "claims": [], "findings": [], "confidence": 10}
    return works(call, attribution)


def always_fails(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a":
        return ModelError("bad_request", "The model refuses it.")
    return works(call, attribution)


def escalates(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a":
        return escalate("out_of_scope")
    return works(call, attribution)


def plans(call: ModelCall, attribution: Attribution) -> Said:
    """The planner makes a plan; after a failure it adds a task."""
    if call.role != "planner":
        return always_fails(call, attribution)
    if "x1" in call.messages[-1].text or "failed" in call.messages[-1].text:
        return {"tasks": [{"id": "more", "worker": "clerk", "instruction": "Work out the rest of it.",
                           "success_criterion": "There is a result.", "depends_on": []}]}  # fmt: skip
    return tasks(task("a"), task("b")).to_json()


@tool(effect="read")
def lookup(name: str) -> str:
    """What is known of a name."""
    return f"{name} is known."


def uses_tool(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a" and not any(m.role == "tool" for m in call.messages):
        return Reply(tool_calls=(ToolRequest(id="1", name="lookup", arguments={"name": "x"}, raw="{}"),), stop="tools")
    return works(call, attribution)


def large(call: ModelCall, attribution: Attribution) -> Said:
    return result("x" * 300_000) if call.role == "worker" else works(call, attribution)


FLOWS: dict[str, Callable[[], Flow]] = {
    "one task": lambda: Flow(works, tasks(task("a"))),
    "a diamond": lambda: Flow(works, tasks(task("a"), task("b"), task("c", "a", "b"), task("d", "c", "a"))),
    "a fan of twenty": lambda: Flow(works, tasks(*(task(f"t{n}") for n in range(20)), task("z", "t1", "t2"))),
    "a retry": lambda: Flow(fails_once, tasks(task("a"), task("b", "a"))),
    "a failure that is skipped": lambda: Flow(always_fails, tasks(task("a"), task("b", "a"), task("c"))),
    "a failure that others proceed with": lambda: Flow(
        always_fails, tasks(task("a"), task("b", "a", on_dependency_failure="proceed"), task("c"))
    ),
    "an escalation": lambda: Flow(escalates, tasks(task("a"), task("b"))),
    "another worker": lambda: Flow(
        lambda call, who: escalate("out_of_scope") if call.worker == "clerk" and who.task == "a" else works(call, who),
        tasks(task("a"), task("b")),
        clerks(Worker("other", "Does other work")),
    ),
    "a planner and an extension": lambda: Flow(plans, None),
    "tools": lambda: Flow(
        uses_tool, tasks(task("a"), task("b", "a")), Team([Worker("clerk", "Does clerical work", tools=[lookup])])
    ),
    "large results": lambda: Flow(large, tasks(task("a"), task("b", "a"))),
    "no retries": lambda: Flow(fails_once, tasks(task("a"), task("b")), clerks(recovery=Policy(attempts=1))),
}


def by_task(events: Iterable[Event]) -> dict[str, list[Any]]:
    """Task -> its events in order, without what differs between any two runs."""
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.task is not None and event.kind not in ("budget_reserved", "budget_settled"):
            said = event.data.get("value") if event.kind == "decision" else event.data.get("status")
            found.setdefault(event.task, []).append((event.kind, event.attempt, event.data.get("key"), _steady(said)))
    return found


def _steady(value: Any) -> Any:
    """A decision without its random part."""
    return {name: each for name, each in value.items() if name != "after_s"} if isinstance(value, dict) else value


def essence(outcome: Outcome) -> tuple[Any, ...]:
    return (
        outcome.task,
        outcome.status,
        outcome.worker,
        outcome.summary,
        outcome.output,
        outcome.error,
        outcome.attempts,
    )


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_comes_to_the_same_on_both_engines(name: str, server: Server, tmp_path: Path) -> None:
    """Status, answer, gaps, outcomes, tokens and the events of each task are equal."""
    local, remote = FLOWS[name](), FLOWS[name]()
    local.seconds = remote.seconds = 0.01
    expected = local.run()
    report, events = run_on(server, tmp_path, remote)
    assert (report.status, report.answer) == (expected.status, expected.answer)
    assert [essence(each) for each in report.outcomes] == [essence(each) for each in expected.outcomes]
    assert report.gaps == expected.gaps
    assert report.usage.tokens == expected.usage.tokens
    assert by_task(events) == by_task(local.events)
    assert isinstance(report.plan, Plan)
