"""Workers a plan defines: made from what the team allows, at work like any other, gone on with after a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand import tool
from chargehand.errors import InvalidPlan
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryStore
from chargehand.runs.roster import factory
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.plan import Plan, WorkerSpec
from tests.flows import TIERS, Flow, Said, by_task, task, texts, works

SPEC = {"name": "adder", "description": "Adds", "prompt": "You add up.", "tools": ["calculate"], "tier": "small"}
SETTINGS = Settings(home="unused", tiers=TIERS)  # type: ignore[arg-type]


def crew(**fields: Any) -> Team:
    return Team([Worker("clerk", "Files")], factory_tools=["calculate"], **fields)


def plan() -> Plan:
    return Plan(goal="g", tasks=(task("a"), task("b", worker="adder")), workers=(WorkerSpec.model_validate(SPEC),))


def talk(call: ModelCall, who: Attribution) -> Said:
    if call.role == "planner":
        return plan().to_json()
    if call.worker == "adder" and len(call.messages) == 2:
        wish = ToolRequest(id="c1", name="calculate", arguments={"expression": "2+3"}, raw="{}")
        return Reply(tool_calls=(wish,), stop="tools")
    return works(call, who)


@pytest.mark.parametrize("given", [True, False])
def test_a_worker_of_the_plan_does_its_task(given: bool) -> None:
    """With its own prompt, its tool and its tier; in a plan that was given as in one that was made."""
    run = Flow(talk, plan() if given else None, team=crew())
    report = run.run()
    assert report.status in ("complete", "partial")
    assert by_task(report)["b"].ok
    (first, *_) = run.calls(task="b")
    assert first.model == "scripted:small"
    assert "You add up." in texts([first])
    assert [tool.name for tool in first.tools] == ["calculate", "escalate"]
    used = [event.data["tool"] for event in run.events if event.kind == "tool_called"]
    assert used == ["calculate"]


def test_only_a_planner_with_a_factory_hears_of_it() -> None:
    """Its prompt and its schema say what workers may have; another's say nothing."""

    def heard(team: Team) -> ModelCall:
        run = Flow(talk, None, team=team)
        run.run()
        return run.calls("planner")[0]

    call = heard(crew())
    assert "Tools they may have: calculate." in texts([call])
    assert call.output_schema is not None
    assert "workers" in call.output_schema["properties"]
    other = heard(Team([Worker("clerk", "Files")]))
    assert "define workers" not in texts([other])
    assert other.output_schema is not None
    assert "workers" not in other.output_schema["properties"]


def test_a_forbidden_tool_goes_back_to_the_planner() -> None:
    """The problem names the tool; the corrected plan runs."""
    drafts: list[dict[str, Any]] = [{**SPEC, "tools": ["read_file"]}, SPEC]

    def corrects(call: ModelCall, who: Attribution) -> Said:
        return plan().to_json() | {"workers": [drafts.pop(0)]} if call.role == "planner" else talk(call, who)

    run = Flow(corrects, None, team=crew())
    assert by_task(run.run())["b"].ok
    rejected = [event for event in run.events if event.kind == "plan_rejected"]
    assert [p["code"] for p in rejected[0].data["problems"] if p["severity"] == "error"] == ["forbidden_tool"]


def test_the_factory_has_no_way_to_another_tool() -> None:
    """Also when nobody has checked the plan."""
    makes = factory(crew(), SETTINGS)
    assert makes is not None
    with pytest.raises(InvalidPlan, match="may not have read_file"):
        makes.make_agents([WorkerSpec(name="x", description="d", tools=("read_file",))])
    assert factory(Team([Worker("clerk", "Files")]), SETTINGS) is None


def test_a_tool_that_does_not_work_here_is_not_the_factorys_to_give() -> None:
    """The planner hears so and plans without, in a nested team too; a plan on the record that has it does without."""
    wants = {**SPEC, "tools": ["calculate", "web"]}
    drafts: list[dict[str, Any]] = [wants, SPEC, wants, SPEC]

    def corrects(call: ModelCall, who: Attribution) -> Said:
        return plan().to_json() | {"workers": [drafts.pop(0)]} if call.role == "planner" else talk(call, who)

    @tool(effect="read", lacks=lambda: None if works_here[0] else "a key")
    def web(query: str) -> str:
        "Searches."
        return query

    works_here = [False]
    team = Team([Worker("clerk", "Files")], name="inner", factory_tools=["calculate", web])
    assert [problem.code for problem in team.problems()] == ["tool_not_offered"]
    assert by_task(Flow(corrects, None, team=team).run())["b"].ok
    lead = Worker("lead", "Hands on", kind="delegate", team=team)
    around = Flow(corrects, Plan(goal="g", tasks=(task("n", worker="lead"),)), team=Team([lead]))
    assert by_task(around.run())["n"].ok
    works_here[0] = True
    drafts[:] = [wants]
    begun = Flow(corrects, None, team=team)
    begun.run(interrupt_at=1.5)
    works_here[0] = False
    assert by_task(begun.run(number=1))["b"].ok
    assert Team.from_json(team.to_json(), {"web": web}) == team


def test_tiers_that_are_not_allowed_are_never_used() -> None:
    """A task that asks for more, or a ladder that goes up, gets the highest that is."""
    makes = factory(crew(factory_tiers=("small", "medium")), SETTINGS)
    assert makes is not None
    agent = makes.make_agents([WorkerSpec(name="x", description="d")])["x"]
    assert [agent.model_for(tier) for tier in ("small", "medium", "large", None)] == [
        "scripted:small", "scripted:medium", "scripted:medium", "scripted:medium",
    ]  # fmt: skip


def test_a_crash_anywhere_keeps_the_plans_workers() -> None:
    """They are in the plan on the record, and are made again from it."""
    whole = Flow(talk, None, team=crew())
    expected = [(o.task, o.worker, o.status) for o in whole.run().outcomes]
    for kept in range(2, len(whole.events), 3):
        cut = Flow(talk, None, team=crew())
        cut.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        assert [(o.task, o.worker, o.status) for o in cut.run(number=1).outcomes] == expected


def test_a_hired_worker_takes_over_from_another() -> None:
    """It is one of the roster: reassigning may reach it."""

    def hands_back(call: ModelCall, who: Attribution) -> Said:
        if call.worker == "clerk":
            wish = ToolRequest(
                id="c", name="escalate", arguments={"reason": "out_of_scope", "message": "No."}, raw="{}"
            )
            return Reply(tool_calls=(wish,), stop="tools")
        return talk(call, who)

    assert by_task(Flow(hands_back, plan(), team=crew()).run())["a"].worker == "adder"


def test_a_team_in_which_a_plan_defines_workers_is_stored() -> None:
    """As JSON and back."""
    team = crew(factory_tiers=("small",))
    assert Team.from_json(json.loads(json.dumps(team.to_json())), {}) == team
