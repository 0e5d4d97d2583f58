"""What a drafted plan lost of its request, took from an example or made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand import Team, Worker
from chargehand.planner.lost_details import losses, with_lost_details, with_request
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


def test_a_small_models_only_task_is_the_request_as_it_is() -> None:
    """What it made of the question is left out; of several tasks, those that begin get the request beside their own."""
    [task] = with_request(plan("Compute the tax."), Request(text=VAT), TEAM).tasks
    assert (task.id, task.instruction, task.success_criterion) == ("t1", VAT, "A figure.")
    both = with_request(plan("Compute the tax.", "Compare it."), Request(text=VAT), TEAM).tasks
    assert [task.instruction for task in both] == ["Compute the tax.", "Compare it."]
    assert all(VAT in str(task.context) for task in both)


def test_a_small_models_copies_of_a_task_are_one() -> None:
    """What depends on a copy depends on the first of them."""
    first, second, third = plan("Compute the tax.", "Compute the tax.", "Write it down.").tasks
    drafted = Plan(goal="g", tasks=(first, second, third.model_copy(update={"depends_on": ("t1", "t2")})))
    made = with_request(drafted, Request(text=VAT), TEAM).tasks
    assert [(task.id, task.depends_on) for task in made] == [("t1", ()), ("t3", ("t1",))]


@pytest.mark.parametrize(("length", "tasks"), [(10, 1), (30_000, 2)])
def test_a_small_models_chain_about_short_material_is_one_task(tmp_path: Path, length: int, tasks: int) -> None:
    """Done by the worker that can read; longer material takes the steps that were planned."""
    (tmp_path / "costs.txt").write_text("x" * length)
    request = Request(text="How much?", material=(Material(name="costs.txt", path=str(tmp_path / "costs.txt")),))
    team = Team([Worker("analyst", "Computes"), Worker("reader", "Reads", tools=["read_file"])])
    first, second = plan("Guess.", "Read costs.txt.").tasks
    chain = (first, second.model_copy(update={"worker": "reader", "depends_on": ("t1",)}))
    made = with_request(Plan(goal="g", tasks=chain), request, team).tasks
    assert len(made) == tasks
    if tasks == 1:
        assert (made[0].id, made[0].worker, made[0].instruction) == ("t1", "reader", "How much?")
        assert made[0].depends_on == ()


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


def test_nouns_of_a_language_that_capitalises_them_cost_a_planner_call() -> None:
    """One of several words in another form is given by code, without another call."""
    request = "Schreibe dem Kunden über die Lieferung der Maschine nach Gdynia."
    drafted = plan("Schreibe dem Auftraggeber, dass die Maschine nach Gdynia geliefert wird: Lieferungen im Mai.")
    assert codes(drafted, request) == []
    assert request in str(with_lost_details(drafted, Request(text=request)).tasks[0].context)


@pytest.mark.parametrize(
    ("request_text", "instruction"),
    [
        ("give 3 ideas for a name", "Give three ideas for a name."),
        ("what happened on 2023-05-01?", "Say what happened on 1 May 2023."),
        ("add 1.200,50 EUR", "Add 1200.5 EUR."),
        ("add 0.125 and 4,350.00", "Add 0,125 and 4350."),
        ("explain i18n", "Explain internationalization."),
        ("do this:\n1. wash the car\n12. dry it", "Wash the car and dry it."),
        ("WRITE ME A POEM ABOUT THE SEA", "Write a poem about waves."),
        ("say **Why** it rains and what I'm to do", "Say why it rains and what to do."),
        ("how is Okafor's car?", "Look at the car of Okafor."),
    ],
)
def test_a_plan_that_keeps_what_is_meant_is_not_sent_back(request_text: str, instruction: str) -> None:
    """Numbers as words, dates and thousands in another form, marks of lists and capitals that are not names."""
    assert codes(plan(instruction), request_text) == []


@pytest.mark.parametrize(
    ("request_text", "instruction"),
    [
        ("add 0.125 to it", "Add 125 to it."),
        ("write to Dr. Okafor", "Write the letter."),
        ("compare:\n- PostgreSQL\n- SQLite", "Compare the databases."),
        ("add 4.5 to it", "Add 45 to it."),
    ],
)
def test_a_plan_that_lost_what_is_meant_is_sent_back(request_text: str, instruction: str) -> None:
    """A decimal is not its digits, a title does not end a sentence, and names begin the lines of lists."""
    assert codes(plan(instruction), request_text) == ["dropped_detail"]


def test_a_text_pasted_into_the_request_reached_no_worker() -> None:
    """No plan repeats it: it is given to the tasks that begin, once, without another planner call."""
    text = "shorten this text: " + "it was a long day at sea and nothing happened. " * 60
    drafted = plan("Shorten the text.")
    assert codes(drafted, text) == []
    given = with_lost_details(drafted, Request(text=text))
    assert text in str(given.tasks[0].context)
    assert with_lost_details(given, Request(text=text)) is given


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["A-", "a-b/", "1.1,", "A'", "a.", "A ", "1-1-", "word. "])
def test_a_long_request_took_minutes(piece: str) -> None:
    """The time grows with the length of the text and not with its square."""
    text = piece * (200_000 // len(piece))
    drafted = plan(text)
    assert losses(drafted, Request(text=text), load("general")) == []
    with_lost_details(drafted, Request(text=text))
