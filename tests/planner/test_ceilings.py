"""What one task of a model-made plan may use at most when the plan does not say."""

from __future__ import annotations

from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.planner.draft import PLAN_SCHEMA
from chargehand.team import Worker
from chargehand.values.budget import SMALLEST_CEILING, Budget, ceiling
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, ToolRequest
from chargehand.values.plan import Plan
from tests.flows import Flow, Said, by_task, clerks, task, tasks, works

LIMIT = 20_000
# Eight tasks share what is left when a fifth is held back for writing the answer.
CEILING = 3 * 16_000 // 8
# By how much a call may cost more than was estimated.
ERROR = 1_000


def drafted(plan: Plan, talk: Any = works, **request: Any) -> Flow:
    """A run whose planner drafts this plan."""

    def answers(call: ModelCall, attribution: Attribution) -> Said:
        return plan.to_json() if call.role == "planner" else talk(call, attribution)

    return Flow(answers, None, request={"budget": Budget(tokens=LIMIT), **request})


def endless(name: str) -> Any:
    """A worker that never comes to an end with this task: each step costs 1,500 tokens."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role != "worker" or attribution.task is None or not attribution.task.startswith(name):
            return works(call, attribution)
        wish = ToolRequest(id="call_1", name="look", arguments={}, raw="{}")
        return Reply(tool_calls=(wish,), stop="tools", usage=TokenCount(input_tokens=600, output_tokens=900))

    return talk


def eight(**fields: Any) -> Plan:
    return tasks(*(task(f"t{n}", **(fields if n == 1 else {})) for n in range(1, 9)))


@pytest.mark.parametrize(
    ("limit", "synthesis", "number", "most"),
    [
        (100_000, 9_692, 8, 3 * 90_308 // 8),
        (100_000, 0, 1, 100_000),
        (100_000, 9_692, 2, 90_308),
        (100_000, 9_692, 3, 90_308),
        (1_000, 9_692, 2, 800),
        (500_000, 9_692, 1_000, SMALLEST_CEILING),
        (3_000, 9_692, 6, 2_400),
    ],
)
def test_a_ceiling_is_three_shares(limit: int, synthesis: int, number: int, most: int) -> None:
    """Of what the synthesis leaves; never more than all of that, and room for a call as long as there is."""
    assert ceiling(limit, synthesis, number) == most


def test_a_planner_that_the_budget_denies_did_not_fail() -> None:
    """No model was called: the report blames the budget, not a model."""
    report = drafted(eight(), budget=Budget(tokens=500)).run()
    assert report.error is not None
    assert report.error.kind == "budget"
    assert "model failed" not in report.error.message
    assert report.usage.calls == 0


def test_one_task_of_a_model_made_plan_used_the_whole_budget() -> None:
    """It stops at three times its share, and all others are done."""
    flow = drafted(eight(), endless("t1"))
    report = flow.run()
    found = by_task(report)
    assert found["t1"].error is not None
    assert found["t1"].error.kind == "budget"
    assert "task t1's budget of 6,000 tokens" in found["t1"].error.message
    assert found["t1"].usage.tokens <= CEILING + ERROR
    assert all(found[f"t{n}"].ok for n in range(2, 9))


def test_the_ceiling_is_on_the_record_and_not_in_the_plan() -> None:
    """The plan stays as it was drafted, so that it can be run again with `--plan`."""
    flow = drafted(eight())
    report = flow.run()
    [approved] = [event.data for event in flow.events if event.kind == "plan_approved"]
    assert approved["ceiling"] == {"tokens": CEILING, "of": LIMIT}
    assert report.plan is not None
    assert all(each.budget is None for each in report.plan.tasks)
    assert report.plan.problems(None, budget_tokens=LIMIT) == []


def test_a_task_with_a_token_budget_keeps_to_that() -> None:
    """What the planner states goes before what code derives, in both directions."""
    for tokens in (3_000, 12_000):
        flow = drafted(eight(budget=Budget(tokens=tokens, steps=5)), endless("t1"))
        error = by_task(flow.run())["t1"].error
        assert error is not None
        assert f"{tokens:,} tokens" in error.message if tokens == 3_000 else "5 steps" in error.message


def test_a_budget_of_steps_alone_leaves_the_ceiling() -> None:
    """It says nothing of tokens."""
    flow = drafted(eight(budget=Budget(steps=9)), endless("t1"))
    error = by_task(flow.run())["t1"].error
    assert error is not None
    assert "6,000 tokens" in error.message


def test_a_given_plan_has_no_ceilings() -> None:
    """Its tasks share the budget as they come."""
    flow = Flow(endless("t1"), eight(), request={"budget": Budget(tokens=LIMIT)})
    error = by_task(flow.run())["t1"].error
    assert error is not None
    assert "task t1's budget" not in error.message
    [approved] = [event.data for event in flow.events if event.kind == "plan_approved"]
    assert approved["ceiling"] is None


def test_a_run_that_was_cut_off_goes_on_with_the_ceiling_it_had() -> None:
    """What the task has used counts against it; nothing is computed anew."""
    flow = drafted(eight(), endless("t1"))
    flow.run(interrupt_at=3.5)
    report = flow.run(number=1)
    found = by_task(report)["t1"]
    assert found.error is not None
    assert "6,000 tokens" in found.error.message
    assert found.usage.tokens <= CEILING + ERROR
    assert len([event for event in flow.events if event.kind == "plan_approved"]) == 1


def test_tokens_that_are_added_raise_the_ceiling() -> None:
    """Else a task that ended for lack of them would end at once again."""
    flow = drafted(eight(), endless("t1"))
    before = by_task(flow.run())["t1"].usage.tokens
    flow.request["budget"] = Budget(tokens=LIMIT + 6_000)
    after = by_task(flow.run(number=1, reopen=("t1",)))["t1"]
    assert after.error is not None
    assert before + 3_000 < sum(e.data["tokens"] for e in flow.events if e.kind == "budget_settled" and e.task == "t1")


def test_tasks_that_are_added_have_the_ceiling_too() -> None:
    """Those of an extension as the rest."""
    plan = eight()

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner":
            extra = {**task("n1").to_json(), "instruction": "Work out the part in another way.", "replaces": ["t1"]}
            return {"tasks": [extra]} if ", a gap\n" in call.messages[-1].text else plan.to_json()
        if call.role == "worker" and attribution.task == "t1":
            return Reply(text="", stop="refused")
        return endless("x1.")(call, attribution)

    flow = Flow(talk, None, request={"budget": Budget(tokens=LIMIT)})
    found = by_task(flow.run())["x1.n1"]
    assert found.error is not None
    assert "task x1.n1's budget of 6,000 tokens" in found.error.message


def test_parts_of_a_task_share_its_ceiling() -> None:
    """What takes its place has what it had left."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner" and attribution.task == "t1":
            return {"goal": "g", "tasks": [task("a").to_json(), task("b").to_json()]}
        if call.role == "worker" and attribution.task == "t1":
            return Reply(text="", stop="length")
        return endless("t1.s.")(call, attribution)

    flow = drafted(eight(), talk)
    report = flow.run()
    spent = sum(e.data["tokens"] for e in flow.events if e.kind == "budget_settled" and (e.task or "").startswith("t1"))
    assert not by_task(report)["t1"].ok
    assert spent <= CEILING + ERROR


def test_a_single_task_may_use_the_whole_budget() -> None:
    """Three times the share of one is not more than there is."""
    flow = drafted(tasks(task("t1")))
    assert flow.run().status == "complete"
    [approved] = [event.data for event in flow.events if event.kind == "plan_approved"]
    assert approved["ceiling"] == {"tokens": LIMIT, "of": LIMIT}


def test_the_planner_can_state_limits() -> None:
    """Its schema has them, its prompt says when, and unknown fields of a budget are left out."""
    fields = PLAN_SCHEMA["properties"]["tasks"]["items"]["properties"]
    assert set(fields["budget"]["properties"]) == {"tokens", "steps"}
    assert {"timeout_s", "best_of", "tier"} <= set(fields)
    limits = {"budget": {"tokens": 9_000, "steps": 3, "calls": 4}, "timeout_s": 60, "best_of": 2, "tier": "small"}
    plan = {"goal": "g", "tasks": [{**task("t1").to_json(), **limits}]}

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        return plan if call.role == "planner" else works(call, attribution)

    flow = Flow(talk, None, team=clerks(Worker("other", "Does other work")))
    report = flow.run()
    assert report.plan is not None
    [stated] = report.plan.tasks
    assert (stated.budget, stated.timeout_s, stated.best_of, stated.tier) == (
        Budget(tokens=9_000, steps=3),
        60,
        2,
        "small",
    )
    [asked] = flow.calls("planner")
    prompt = asked.messages[0].text
    for name in ("budget", "tokens", "steps", "timeout_s", "best_of", "tier"):
        assert f'"{name}"' in prompt, name
