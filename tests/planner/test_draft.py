"""A model's draft: everything wrong with it goes back at once, its shape and its sense together."""

from __future__ import annotations

import json
from typing import Any

from chargehand import Team, Worker
from chargehand.models import Attribution
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.planner.draft import make_plan
from chargehand.planner.planning_result import Planned, Unplanned
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.plan import errors_in
from chargehand.values.request import Request
from tests.kernel import MODEL, FunctionModel, engine, stored


def task(id: str, *depends_on: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": "ann",
        "instruction": "Find one number.",
        "success_criterion": "A number.",
        "depends_on": depends_on,
        **fields,
    }


def test_shape_and_sense_go_back_in_one_round() -> None:
    """One repair is enough for a draft that is wrong in both; ids are still rewritten, not complained about."""
    bad = {"goal": "g", "tasks": [task("a b", tier="huge"), task("c", "a b", "x", worker="nobody")], "extra": 1}
    good = {"goal": "g", "tasks": [task("a b"), task("c", "a b")]}
    drafts = [bad, good]

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        return Reply(text=json.dumps(drafts.pop(0)))

    model, store = FunctionModel(answer), MemoryStore()

    async def main() -> Any:
        async with engine(model, MemoryJournal(store)) as local:
            team = Team(workers=[Worker("ann", "Finds numbers")])
            return await make_plan(Request(text="r"), team, local, SupervisorModel(model=MODEL))

    planned, _ = run_virtual(main())
    assert isinstance(planned, Planned)
    assert [each.id for each in planned.plan.tasks] == ["a_b", "c"]
    [rejected] = [event for event in stored(store) if event.kind == "plan_rejected"]
    assert sorted(problem["code"] for problem in rejected.data["problems"]) == [
        "unknown_dependency",
        "unknown_worker",
        "unknown_worker",
    ]
    told = model.asked[1][0].messages[-1].text
    assert "tasks[0].tier" in told
    assert "'nobody'" in told
    assert "'x'" in told


def test_a_plan_that_stays_wrong_is_reported_with_a_line_for_each_error() -> None:
    """Warnings did not stop it; they are among the problems only."""
    vague = task("a", worker="nobody", instruction="Analyze.")

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        return Reply(text=json.dumps({"goal": "g", "tasks": [vague, task("b", "x")]}))

    async def main() -> Any:
        async with engine(FunctionModel(answer), MemoryJournal(MemoryStore())) as local:
            team = Team(workers=[Worker("ann", "Finds numbers")])
            return await make_plan(Request(text="r"), team, local, SupervisorModel(model=MODEL))

    failed, _ = run_virtual(main())
    assert isinstance(failed, Unplanned)
    errors = [problem.message for problem in errors_in(failed.problems)]
    assert len(failed.problems) > len(errors) == 2
    assert [line.strip() for line in failed.fault.message.splitlines()[1:]] == errors


def test_a_planner_that_called_a_tool_was_refused_by_the_provider() -> None:
    """No tool is offered to it: its call goes back as words, which every provider takes."""
    good = {"goal": "g", "tasks": [task("a")]}
    replies = [
        Reply(tool_calls=(ToolRequest(id="c1", name="make_plan", arguments={}),), stop="tools"),
        Reply(text=json.dumps(good)),
    ]

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        return replies.pop(0)

    model = FunctionModel(answer)

    async def main() -> Any:
        async with engine(model, MemoryJournal(MemoryStore())) as local:
            team = Team(workers=[Worker("ann", "Finds numbers")])
            return await make_plan(Request(text="r"), team, local, SupervisorModel(model=MODEL))

    planned, _ = run_virtual(main())
    assert isinstance(planned, Planned)
    assert [message.tool_calls for message in model.asked[1][0].messages] == [()] * 4
    assert "make_plan" in model.asked[1][0].messages[2].text
