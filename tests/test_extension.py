"""What failed is planned for anew, once, with everything that is done kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.event import Event
from chargehand.report import Report
from chargehand.team import Scrutiny
from chargehand.testing import ScriptedModel, run_virtual

FAILS = {"error": {"status": 400}}


def task(id: str, *depends_on: str, instruction: str = "", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "worker": "ann",
        "instruction": instruction or f"Find the number called {id}.",
        "success_criterion": "A number is there.",
        "depends_on": list(depends_on),
        **more,
    }


# t2 fails for good, t3 rests on it.
PLAN = {"goal": "Numbers", "tasks": [task("t1"), task("t2"), task("t3", "t2")]}
WORKS = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "Words.", "confidence": 80}}}


def script(*extension: dict[str, Any], answer: str = "All of it [t1].") -> list[dict[str, Any]]:
    return [
        {"when": {"role": "planner", "contains": ", a gap\n"}, "reply": {"json": {"tasks": list(extension)}}},
        {"when": {"role": "planner"}, "reply": {"json": PLAN}},
        {"when": {"role": "worker", "task": "t2"}, "reply": FAILS},
        {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Find it in another way, please."}}},
        WORKS,
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": answer, "confidence": 70}}},
    ]


def run(home: Path, model: ScriptedModel, **more: Any) -> tuple[Report, list[Event]]:
    events: list[Event] = []
    door = Supervisor(Team([Worker("ann", "Finds numbers")], **more), model=model, home=home)
    report, _ = run_virtual(door.run("How many?", on_event=events.append))
    return report, events


def worked(model: ScriptedModel) -> list[str | None]:
    return [who.task for call, who in model.calls if call.role == "worker"]


def test_new_tasks_take_the_place_of_those_that_failed(tmp_path: Path) -> None:
    """They see what is done, the gaps they replace are filled, and the run is complete."""
    new = task("n1", "t1", instruction="Work the second number out from the first.", replaces=["t2", "t3"])
    model = ScriptedModel(script(new, answer="All of it [t1, x1.n1]."))
    report, events = run(tmp_path, model)
    assert (report.status, report.gaps) == ("complete", ())
    assert [outcome.task for outcome in report.outcomes] == ["t1", "t2", "t3", "x1.n1"]
    assert report.plan is not None
    assert report.plan.tasks[-1].depends_on == ("t1",)
    asked = next(call for call, who in model.calls if who.task == "x1.n1")
    assert "Result of task t1" in asked.messages[-1].text
    (extension,) = [event for event in events if event.kind == "extension"]
    assert extension.data["fills"] == {"t2": ["x1.n1"], "t3": ["x1.n1"]}


def test_what_no_new_task_replaces_stays_a_gap(tmp_path: Path) -> None:
    """Filling one gap says nothing of the other."""
    new = task("n1", instruction="Count the second number by hand.", replaces="t2")
    model = ScriptedModel(script(new, answer="A [t1, x1.n1]."))
    report, _ = run(tmp_path, model)
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["t3"])


def test_a_new_task_that_fails_fills_nothing(tmp_path: Path) -> None:
    """It is a gap beside the one it was to fill, and there is no second round."""
    new = task("t2", instruction="Count the second number by hand.", replaces=["t2", "t3"])
    model = ScriptedModel([{"when": {"role": "worker", "task": "x1.t2"}, "reply": FAILS}, *script(new)])
    report, _ = run(tmp_path, model)
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["t2", "t3", "x1.t2"])
    assert sum(call.role == "planner" for call, _ in model.calls) == 2


@pytest.mark.parametrize(
    "extension",
    [
        pytest.param((), id="nothing more to do"),
        pytest.param(PLAN["tasks"], id="the same plan again"),
        pytest.param((task("n1", worker="bob"),), id="an unknown worker"),
        pytest.param((task("n1", "n2"), task("n2", "n1")), id="a cycle"),
    ],
)
def test_without_new_tasks_the_gaps_stand(tmp_path: Path, extension: Any) -> None:
    """An answer of none, of the same again or of what is not valid adds nothing; a task is never given twice."""
    model = ScriptedModel(script(*extension))
    report, _ = run(tmp_path, model)
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["t2", "t3"])
    assert worked(model) == ["t1", "t2", "t2", "t2"]


def test_a_given_plan_is_never_extended(tmp_path: Path) -> None:
    """Nor is one where nothing failed, or where the team wants no extension."""
    model = ScriptedModel(script(task("n1", instruction="Count the second number by hand.")))
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    report, _ = run_virtual(door.run(plan=PLAN))
    assert (report.status, any(call.role == "planner" for call, _ in model.calls)) == ("partial", False)
    model = ScriptedModel(script(task("n1", instruction="Count the second number by hand.")))
    run(tmp_path, model, scrutiny=Scrutiny(extensions=0))
    assert sum(call.role == "planner" for call, _ in model.calls) == 1


def test_another_round_extends_what_is_still_open(tmp_path: Path) -> None:
    """With two rounds allowed, the second is about what the first left."""
    rest = script(answer="All [t1, x1.n1, x2.n1].")
    model = ScriptedModel(
        [
            {
                "when": {"role": "planner", "contains": "Task x1.n1, done"},
                "reply": {"json": {"tasks": [task("n1", instruction="Count the third one.", replaces="t3")]}},
            },
            {
                "when": {"role": "planner", "contains": ", a gap\n"},
                "reply": {"json": {"tasks": [task("n1", instruction="Count the second one.", replaces="t2")]}},
            },
            *rest[1:],
        ]
    )
    report, _ = run(tmp_path, model, scrutiny=Scrutiny(extensions=2))
    assert (report.status, report.gaps) == ("complete", ())
    assert [outcome.task for outcome in report.outcomes][3:] == ["x1.n1", "x2.n1"]


def test_a_resumed_run_keeps_its_extension(tmp_path: Path) -> None:
    """What was added and done stays so when the rest is tried again; nothing of it is paid for twice."""
    new = task("n1", instruction="Count the second number by hand.", replaces="t2")
    model = ScriptedModel(script(new, answer="A [t1, x1.n1]."))
    report, _ = run(tmp_path, model)
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    before = len(model.calls)
    again = asyncio.run(door.resume(report.run, retry_failed=True))
    made = [(call.role, who.task) for call, who in model.calls[before:]]
    assert ("planner", None) not in made
    assert ("worker", "x1.n1") not in made
    assert [outcome.task for outcome in again.outcomes] == ["t1", "t2", "t3", "x1.n1"]
