"""Arguments of the Python interface: what cannot be used is refused in the caller's line, and nothing is recorded."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import chargehand
from chargehand import Plan, Supervisor, Team, Worker, review
from chargehand.errors import InvalidPlan, UsageError
from chargehand.record.home import Home
from chargehand.runs.check_arguments import RULES, check_arguments
from chargehand.testing import ScriptedModel
from chargehand.values.argument_rules import show
from chargehand.values.plan import Problem

TEAM = Team([Worker("w", "Works"), Worker("v", "Writes")])
TASK = {"id": "a", "worker": "w", "instruction": "Do the one thing", "success_criterion": "It is done."}
PLAN = {"goal": "g", "tasks": [TASK]}
REQUEST: dict[str, Any] = {"request": "Do it"}
RULES_OF_MODEL = [{"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "x"}}}]


class City(BaseModel):
    name: str


def sync_person(question: object, wrong: object) -> str:
    return f"approve {question} {wrong}"


async def person_of_one(question: object) -> str:
    return f"approve {question}"


async def async_listener(event: object) -> None: ...


def make_supervisor(home: Path) -> Supervisor:
    return Supervisor(TEAM, model=ScriptedModel(RULES_OF_MODEL), home=home)


WRONG: list[dict[str, Any]] = [
    {"request": None},
    {"request": [{"role": "user", "content": "Compare"}]},
    {"plan": "plan.json"},
    {"plan": Path("plan.json")},
    {"material": 3},
    {"material": None},
    {"material": [3]},
    {"material": ["long text " * 1_000]},
    {"stdin": b"bytes"},
    {"tokens": "100"},
    {"tokens": True},
    {"tokens": 1.5},
    {"usd": float("nan")},
    {"deadline": "60"},
    {"deadline": timedelta(minutes=1)},
    {"wait": -1},
    {"max_tasks": 0},
    {"schema": City},
    {"output_type": str},
    {"output_type": list[City]},
    {"output_type": {"type": "object"}},
    {"output_type": City(name="Oslo")},
    {"output_type": City, "schema": {"type": "object"}},
    {"follow_up": 3},
    {"approve": "yes"},
    {"gaps": ["nothing"]},
    {"person": sync_person},
    {"person": person_of_one},
    {"on_event": 3},
    {"on_event": async_listener},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))
def test_a_wrong_argument_of_a_run_is_refused_before_anything_is_recorded(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    """In one sentence that names it, with the caller's line last in the traceback."""
    with pytest.raises(UsageError) as caught:
        make_supervisor(tmp_path).run_sync(**(REQUEST | wrong))
    assert next(iter(wrong)) in str(caught.value)
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["run_sync"]
    assert Home(tmp_path).runs() == []


def test_all_wrong_arguments_are_named_at_once(tmp_path: Path) -> None:
    """One line for each."""
    with pytest.raises(UsageError) as caught:
        make_supervisor(tmp_path).run_sync("Do it", tokens=0, usd=-1)
    assert [line.partition(" ")[0] for line in str(caught.value).splitlines()] == ["tokens", "usd"]


@pytest.mark.parametrize(
    "wrong", [{"model": 3}, {"model": ScriptedModel}, {"settings": {}}, {"home": 3}, {"team": [Worker("a", "A")]}]
)
def test_a_supervisor_refuses_what_it_cannot_use(wrong: dict[str, Any]) -> None:
    """A list of workers, a class that was not called, settings as a dict."""
    with pytest.raises(UsageError) as caught:
        Supervisor(**wrong)
    assert str(caught.value).startswith(f"{next(iter(wrong))} is ")


def test_a_run_is_named_by_its_id_and_answered_in_words(tmp_path: Path) -> None:
    """A report, a truth value and a Plan are refused with what to give."""
    door = make_supervisor(tmp_path)
    report = door.run_sync(plan=PLAN)
    wrong: list[tuple[str, Callable[[Any], Any]]] = [
        ("run", door.resume),
        ("run", door.rerun),
        ("run", door.fork),
        ("run", door.cancel),
        ("words", lambda given: door.answer(report.run, "plan", given)),
    ]
    for name, call in wrong:
        for given in (report, True, Plan()):
            with pytest.raises(UsageError) as caught:
                asyncio.run(call(given))
            assert str(caught.value).startswith(f"{name} is ")
    for look in (door.report, door.questions):
        with pytest.raises(UsageError, match=r"report\.run"):
            look(report)  # pyright: ignore[reportArgumentType]


def test_what_a_caller_means_is_accepted(tmp_path: Path) -> None:
    """One path instead of a list, and a whole number written as 1e5."""
    (tmp_path / "cities.csv").write_text("Oslo\n")
    door = make_supervisor(tmp_path / "home")
    for material in (str(tmp_path / "cities.csv"), tmp_path / "cities.csv", iter([tmp_path / "cities.csv"])):
        report = door.run_sync(plan=PLAN, material=material, tokens=100_000.0)  # pyright: ignore[reportArgumentType]
        start = door.home.state(report.run).start["request"]
        assert [each["name"] for each in start["material"]] == ["cities.csv"]
        assert start["budget"]["tokens"] == 100_000
    added = asyncio.run(door.resume(report.run, tokens=1e5))  # pyright: ignore[reportArgumentType, reportPossiblyUnboundVariable]
    assert added.status == "complete"


def test_a_listener_that_raises_is_a_note_of_the_report(tmp_path: Path) -> None:
    """In the report that is returned and in the one on the record."""

    def listen(event: object) -> None:
        raise KeyError("kind")

    door = make_supervisor(tmp_path)
    report = door.run_sync(plan=PLAN, on_event=listen)
    assert report.status == "complete"
    for each in (report, door.report(report.run)):
        assert sum("KeyError" in note for note in each.notes) == 1


@pytest.mark.parametrize("words", [None, 3])
def test_a_person_who_returns_no_text_is_an_error_of_the_caller(words: Any, tmp_path: Path) -> None:
    """The question stays open."""

    async def person(question: object, wrong: object) -> str:
        return words

    door = make_supervisor(tmp_path)
    with pytest.raises(UsageError, match="return the answer as a str"):
        door.run_sync(plan=PLAN, approve=True, person=person)
    assert [question.id for question in door.questions("last")] == ["plan"]


def test_a_person_who_raises_ends_the_call_with_a_short_traceback(tmp_path: Path) -> None:
    """Only the caller's line and its own function are in it, and the run can be resumed."""

    async def person(question: object, wrong: object) -> str:
        raise ValueError("no terminal")

    async def approve(question: object, wrong: object) -> str:
        return "approve"

    door = make_supervisor(tmp_path)
    with pytest.raises(UsageError) as caught:
        door.run_sync(plan=PLAN, approve=True, person=person)
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["run_sync"]
    assert isinstance(cause := caught.value.__cause__, ValueError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["person"]
    assert asyncio.run(door.resume("last", person=approve)).status == "complete"


def test_a_plan_of_the_wrong_shape_is_also_checked_against_the_team(tmp_path: Path) -> None:
    """An unknown field and an unknown worker are reported together."""
    plan = {**PLAN, "colour": "red", "tasks": [{**TASK, "worker": "nobody"}]}
    with pytest.raises(InvalidPlan) as caught:
        make_supervisor(tmp_path).run_sync(plan=plan)
    assert [getattr(problem, "code", "") for problem in caught.value.problems] == ["empty_plan", "unknown_worker"]


@pytest.mark.parametrize("wrong", [{"instrution": "x"}, {"worker": "nobody"}])
def test_a_plan_is_refused_with_a_line_for_each_problem(wrong: dict[str, Any], tmp_path: Path) -> None:
    """In the same form for a plan that cannot be read and for one that cannot be run; warnings are not among them."""
    data = {"goal": "g", "tasks": [TASK | {"instruction": "Find it."} | wrong, TASK | {"id": "b", "depends_on": ["z"]}]}
    with pytest.raises(InvalidPlan) as caught:
        make_supervisor(tmp_path).run_sync("Do it", plan=data)
    problems = [each for each in caught.value.problems if isinstance(each, Problem)]
    errors = [each.message for each in problems if each.severity == "error"]
    assert len(problems) > len(errors) == 2
    first, *lines = str(caught.value).splitlines()
    assert first.endswith(":")
    assert [line.removeprefix("  ") for line in lines] == errors


def test_a_plan_to_add_to_may_be_data_too(tmp_path: Path) -> None:
    """As the plan of a run; what is wrong with it is an InvalidPlan."""
    with pytest.raises(InvalidPlan):
        asyncio.run(make_supervisor(tmp_path).plan("Do it", plan={"colour": "red"}))


@pytest.mark.parametrize(
    "wrong",
    [{"fail_on": "bad"}, {"min_confidence": 300}, {"path": None}, {"all": 1}, {"on_event": 3}, {"person": sync_person}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_review_refuses_what_it_cannot_use(wrong: dict[str, Any], tmp_path: Path) -> None:
    """Before it reads a file."""
    given: dict[str, Any] = {"path": tmp_path, "home": tmp_path / "home", **wrong}
    with pytest.raises(UsageError) as caught:
        asyncio.run(review(**given))
    assert str(caught.value).startswith(f"{next(iter(wrong))} is ")


@pytest.mark.parametrize(
    "wrong", [{"path": 3}, {"out": 3}, {"unsafe_run": "yes"}, {"notify": 3}], ids=lambda wrong: next(iter(wrong))
)
def test_test_generation_refuses_what_it_cannot_use(wrong: dict[str, Any], tmp_path: Path) -> None:
    """In the same way."""
    given: dict[str, Any] = {"path": tmp_path, **wrong}
    with pytest.raises(UsageError) as caught:
        asyncio.run(chargehand.testgen(**given))
    assert str(caught.value).startswith(f"{next(iter(wrong))} is ")


def test_values_are_shown_in_a_few_words() -> None:
    """Short ones as they are, others by their kind."""
    shown = [show(value) for value in ("x" * 500, 3, City, City(name="a"), async_listener, sync_person, [1], list[int])]
    assert shown[0].endswith("...")
    assert shown[1:] == [
        "3",
        "the class City",
        "a City",
        "the coroutine function async_listener",
        "the function sync_person",
        "a list",
        "list[int]",
    ]


def test_every_rule_takes_what_callers_leave_out() -> None:
    """The default of each argument of a run passes its rule."""
    check_arguments({**dict.fromkeys(RULES), **_defaults()})


def _defaults() -> dict[str, Any]:
    flags = dict.fromkeys(("approve", "ask", "critic", "web", "stay", "retry_failed"), False)
    return {
        "request": "",
        "run": "last",
        "question": "plan",
        "words": "",
        "by": "",
        "gaps": (),
        "material": (),
        **flags,
    }
