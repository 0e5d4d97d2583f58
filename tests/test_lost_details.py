"""What a drafted plan lost of its request, took from an example or made up."""

from __future__ import annotations

import pytest

from chargehand import Team, Worker
from chargehand.planner.lost_details import losses, with_lost_details
from chargehand.team.team_folder import load
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Material, Request

TEAM = Team([Worker("analyst", "Computes"), Worker("writer", "Writes")])


def plan(*instructions: str) -> Plan:
    tasks = [
        Task(id=f"t{n}", worker="analyst", instruction=text, success_criterion="A figure.")
        for n, text in enumerate(instructions, 1)
    ]
    return Plan(goal="g", tasks=tuple(tasks))


def codes(drafted: Plan, request: str, *names: str, team: Team = TEAM) -> list[str]:
    material = tuple(Material(name=name, path=f"/{name}") for name in names)
    return [problem.code for problem in losses(drafted, Request(text=request, material=material), team)]


VAT = "What is 17 % VAT on 4,350 EUR plus 19 % on 1,200 EUR?"


def test_a_plan_that_lost_the_figures_was_run() -> None:
    """Every figure of the request is in a task, however its thousands are written."""
    assert codes(plan("Compute the tax."), VAT) == ["dropped_detail"]
    assert codes(plan("Compute 17 % VAT on 4350 EUR.", "Compute 19 % VAT on 1.200 EUR."), VAT) == []
    assert codes(plan("Compute 17 % VAT on 4,350 EUR and 19 % of 12,000."), VAT) == ["dropped_detail"]


def test_a_plan_that_lost_a_name_was_run() -> None:
    """A word with a capital letter inside of a sentence; the first word of one is no name."""
    request = "Write to Mr. Okafor about the move to Gdynia. Keep it short."
    assert codes(plan("Write a letter about the move."), request) == ["dropped_detail"]
    assert codes(plan("Write to Mr. Okafor that we move to Gdynia."), request) == []


def test_what_a_repair_did_not_bring_back_is_put_in_by_code() -> None:
    """The tasks that begin the plan get the request's own words as context."""
    lost = plan("Compute the tax.")
    repaired = with_lost_details(lost, Request(text=VAT))
    assert VAT in str(repaired.tasks[0].context)
    whole = plan("Compute 17 % VAT on 4,350 EUR plus 19 % on 1,200 EUR.")
    assert with_lost_details(whole, Request(text=VAT)) is whole


def test_a_file_that_nobody_gave_was_read() -> None:
    """Named in an instruction, not among the material and not in the request."""
    assert codes(plan("Read prices.csv and add up."), "add up the prices", "costs.csv") == ["unknown_file"]
    assert codes(plan("Read costs.csv and add up."), "add up the prices", "costs.csv") == []
    assert codes(plan("Explain prices.csv."), "explain what prices.csv is for") == []


@pytest.mark.parametrize("name", ["general", "competitive"])
def test_a_plan_copied_from_a_shipped_example_was_run(name: str) -> None:
    """Its words are about another request; for the example's own request they are right."""
    team = load(name)
    assert team.examples
    example = team.examples[0]
    assert "copied_example" in codes(example.plan, "say how many legs a spider has", team=team)
    assert "copied_example" not in codes(example.plan, example.request, team=team)
