"""What failed is planned for anew, once, with everything that is done kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.team import Scrutiny
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.trace.run_state import fold
from chargehand.values.effect import ModelCall
from chargehand.values.report import Report
from tests.flows import Flow, Said, shown, tasks, works
from tests.flows import task as flow_task

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
    (written,) = [call for call, _ in model.calls if call.role == "synthesizer"]
    assert "Task x1.n1, by ann" in written.messages[-1].text
    assert "Task t2, by ann" not in written.messages[-1].text, "what was replaced is no gap"
    (extension,) = [event for event in events if event.kind == "extension"]
    assert extension.data["fills"] == {"t2": ["x1.n1"], "t3": ["x1.n1"]}


def test_a_task_that_replaces_what_a_later_session_has_done_is_dropped(tmp_path: Path) -> None:
    """Neither the report nor the display counts it, and no warning names a call by its key."""
    new = task("n1", "t1", instruction="Work the second number out from the first.", replaces=["t2", "t3"])
    failing = [{"when": {"role": "worker", "task": "x1.n1"}, "reply": FAILS}, *script(new)]
    report, _ = run(tmp_path, ScriptedModel(failing))
    assert [outcome.task for outcome in report.outcomes if not outcome.ok] == ["t2", "t3", "x1.n1"]
    works = [rule for rule in script(new) if rule["when"].get("task") != "t2"]
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=ScriptedModel(works), home=tmp_path)
    again, _ = run_virtual(door.resume(report.run, retry_failed=True))
    assert [(outcome.task, outcome.status) for outcome in again.outcomes] == [(id, "done") for id in ("t1", "t2", "t3")]
    view = fold(door.source.events(report.run))
    assert list(view.tasks) == ["t1", "t2", "t3"]
    assert not [warning for warning in view.warnings if "@" in warning]


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
    assert extension or sum(call.role == "planner" for call, _ in model.calls) == 2, "none is a good answer"


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(task("t1"), id="the same task"),
        pytest.param(task("t1", context={"year": 2024}), id="with another context"),
        pytest.param(task("n1", instruction="Guess the first number.", replaces="t1"), id="another way to do it"),
    ],
)
def test_a_task_that_a_person_stopped_is_not_added_again(tmp_path: Path, again: Any) -> None:
    """Not at the end of the run and not after `--retry-failed`; the record says so, and other tasks are added."""
    other = task("n2", instruction="Count the second number by hand.", replaces=["t2", "t3"])
    model, report, events = run_and_stop_first_task(tmp_path / "with another", [again, other])
    assert [outcome.task for outcome in report.outcomes] == ["t1", "t2", "t3", "x1.n2"]
    assert [gap.task for gap in report.gaps] == ["t1"]
    said = [event.data["message"] for event in events if event.kind == "warning"]
    assert sum("which a person stopped" in each for each in said) == 1
    asked = [call.messages[-1].text for call, _ in model.calls if call.role == "planner"][-1]
    assert "Task t1, stopped by a person" in asked

    model, report, _ = run_and_stop_first_task(tmp_path / "alone", [again])
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path / "alone")
    resumed, _ = run_virtual(door.resume(report.run, retry_failed=True))
    for each in (report, resumed):
        assert [outcome.task for outcome in each.outcomes] == ["t1", "t2", "t3"]
    assert worked(model).count("t1") == 1


def run_and_stop_first_task(home: Path, extension: list[Any]) -> tuple[ScriptedModel, Report, list[Event]]:
    """A person stops t1 while its call is in flight; t2 fails, so the planner is asked for more tasks."""
    slow = {"when": {"role": "worker", "task": "t1"}, "reply": WORKS["reply"], "delay_ms": 500_000}
    model = ScriptedModel([slow, *script(*extension, answer="A [x1.n2].")])
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=home)
    events: list[Event] = []

    async def stop_first_task() -> Report:
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def listen(event: Event) -> None:
            events.append(event)
            if event.kind == "attempt_started" and not begun.done():
                begun.set_result(event.run)

        work = asyncio.ensure_future(door.run("How many?", on_event=listen))
        await door.steer(await begun, "t1", stop=True)
        return await work

    report, _ = run_virtual(stop_first_task())
    return model, report, events


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


@pytest.mark.parametrize(
    ("extension", "gaps"),
    [
        pytest.param((task("n1", instruction="Say good morning."),), ["t3"], id="nothing named: what failed"),
        pytest.param(
            (task("n1", instruction="Look around."), task("n2", "n1", instruction="Find it.", replaces="t2")),
            ["t3"],
            id="a helper fills nothing",
        ),
        pytest.param(
            (
                task("n1", instruction="Find the number called t1.", replaces=["t2", "t3"]),
                task("n2", instruction="Wave."),
            ),
            ["t2", "t3"],
            id="a task done before fills nothing",
        ),
    ],
)
def test_a_gap_is_filled_only_by_new_tasks_that_say_so(tmp_path: Path, extension: Any, gaps: list[str]) -> None:
    """Whatever else was done besides."""
    report, _ = run(tmp_path, ScriptedModel(script(*extension, answer="All [t1].")))
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", gaps)


@pytest.mark.parametrize("replaces", [5, True, {"t2": 1}, [2]])
def test_what_cannot_be_read_is_asked_for_again(tmp_path: Path, replaces: Any) -> None:
    """An odd answer of the planner's costs one more call and never the run."""
    odd = {"tasks": [task("n1", instruction="Count the second one.", replaces=replaces)]}
    rules = [{"when": {"role": "planner", "contains": ", a gap\n"}, "times": 1, "reply": {"json": odd}}]
    good = task("n1", instruction="Count the second one.", replaces=["t2", "t3"])
    model = ScriptedModel([*rules, *script(good, answer="All [t1, x1.n1].")])
    report, _ = run(tmp_path, model)
    assert report.status == "complete"
    asked = [call for call, _ in model.calls if call.role == "planner"]
    assert "replaces is a list" in asked[-1].messages[-1].text


def test_a_task_that_was_skipped_may_be_given_again(tmp_path: Path) -> None:
    """It had no attempt: with its input replaced it can be done now."""
    new = task("n1", instruction="Count the second one.", replaces="t2")
    again = task("n2", "n1", instruction="Find the number called t3.", replaces="t3")
    report, _ = run(tmp_path, ScriptedModel(script(new, again, answer="All [t1, x1.n1, x1.n2].")))
    assert (report.status, [o.task for o in report.outcomes][3:]) == ("complete", ["x1.n1", "x1.n2"])


def test_an_extension_leaves_time_for_the_answer(tmp_path: Path) -> None:
    """A planner that takes too long is stopped when workers are; the answer is written all the same."""
    rules = script(task("n1", instruction="Count the second one."))
    model = ScriptedModel([{**rules[0], "delay_ms": 60_000}, *rules[1:]])
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    report, took = run_virtual(door.run("How many?", deadline=20))
    assert report.answer == "All of it [t1]."
    assert took < 17


def test_an_approved_plan_is_not_added_to(tmp_path: Path) -> None:
    """The person has seen these tasks and no others."""
    model = ScriptedModel(script(task("n1", instruction="Count the second one.", replaces=["t2", "t3"])))
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)

    async def approve(*_: Any) -> str:
        return "approve"

    report, _ = run_virtual(door.run("How many?", approve=True, person=approve))
    assert (report.status, len(report.outcomes)) == ("partial", 3)


def test_new_tasks_that_failed_are_tried_again_with_the_rest(tmp_path: Path) -> None:
    """`--retry-failed` reaches tasks that were added, and leaves alone what was replaced."""
    new = task("n1", instruction="Count the second one.", replaces=["t2", "t3"])
    fails_first = {"when": {"role": "worker", "task": "x1.n1"}, "times": 3, "reply": FAILS}
    model = ScriptedModel([fails_first, *script(new, answer="All [t1, x1.n1].")])
    report, _ = run(tmp_path, model)
    assert [gap.task for gap in report.gaps] == ["t2", "t3", "x1.n1"]
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    again = asyncio.run(door.resume(report.run, retry_failed=True))
    assert (again.status, again.gaps) == ("complete", ())
    before = len(model.calls)
    once_more = asyncio.run(door.resume(report.run, retry_failed=True))
    assert once_more.status == "complete"
    assert [who.task for call, who in model.calls[before:] if call.role == "worker"] == []


def test_a_long_plan_fits_the_planners_window(tmp_path: Path) -> None:
    """However much was done, the question about what was not stays within half of the window."""
    tasks = [task(f"t{n}") for n in range(1, 301)]
    rules = script(answer="All [t1].")
    rules[1] = {"when": {"role": "planner"}, "reply": {"json": {"goal": "Numbers", "tasks": tasks}}}
    rules[4] = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s" * 3_000, "output": "Words."}}}
    model = ScriptedModel(rules)
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    run_virtual(door.run("How many?", tokens=50_000_000))
    (asked,) = [call for call, _ in model.calls if call.role == "planner" and ", a gap\n" in call.messages[-1].text]
    assert sum(len(message.text) for message in asked.messages) < 32_000 * 3 * 0.6


def test_what_is_tried_again_was_paid_for_all_the_same(tmp_path: Path) -> None:
    """The report of a run whose failed tasks were reopened counts every call there was."""
    model = ScriptedModel(script(answer="All [t1]."))
    report, _ = run(tmp_path, model)
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    again = asyncio.run(door.resume(report.run, retry_failed=True))
    assert again.usage.calls == sum(1 for call, _ in model.calls)


# -- thin results, and what a draft lacks ------------------------------------------------------------------------------


TWO_TASKS = {"goal": "Numbers", "tasks": [task("t1"), task("t2")]}
NEW = task("n1", "t1", instruction="Work the prices out from the first.")
LACKS = {"answer": "Numbers [t1, t2], and no prices.", "gaps": [{"task": None, "reason": "NO-PRICES", "impact": "x"}]}
HAS = {"answer": "Numbers [t1, t2] and prices [x1.n1].", "gaps": [], "confidence": 70}


def lacking(*extension: dict[str, Any], confidence: int = 80, first: Any = LACKS, then: Any = HAS) -> list[Any]:
    """A plan of two, both done; the answer lacks something until a third is done as well."""
    sure = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "Words.", "confidence": 90}}}
    unsure = {"json": {"summary": "s", "output": "Words.", "confidence": confidence}}
    return [
        {"when": {"role": "planner", "contains": "A plan was run"}, "reply": {"json": {"tasks": list(extension)}}},
        {"when": {"role": "planner"}, "reply": {"json": TWO_TASKS}},
        {"when": {"role": "worker", "task": "t1"}, "reply": unsure},
        sure,
        {"when": {"role": "synthesizer", "contains": "Task x1.n1, by"}, "reply": {"json": then}},
        {"when": {"role": "synthesizer"}, "reply": {"json": first}},
    ]


def roles(model: ScriptedModel) -> list[str]:
    return [call.role for call, _ in model.calls]


def test_a_thin_result_is_planned_for_in_another_way(tmp_path: Path) -> None:
    """Under 40 a worker says itself that it does not know; what replaces its task takes its place in the answer."""
    model = ScriptedModel(lacking(NEW | {"replaces": ["t1"]}, confidence=10, then=HAS | {"answer": "So [t2, x1.n1]."}))
    report, _ = run(tmp_path, model)
    assert (report.status, [each.task for each in report.outcomes]) == ("complete", ["t1", "t2", "x1.n1"])
    asked = next(call for call, _ in model.calls if "A plan was run" in call.messages[0].text)
    assert "Task t1, thin" in asked.messages[-1].text
    assert "Task t2, done" in asked.messages[-1].text
    assert roles(model).count("synthesizer") == 1, "it is known before the answer is written"
    (written,) = [call for call, _ in model.calls if call.role == "synthesizer"]
    assert "Task t1, by" not in written.messages[-1].text


@pytest.mark.parametrize("confidence", [40, 90])
def test_a_result_that_is_sure_enough_is_not_thin(tmp_path: Path, confidence: int) -> None:
    """Nobody is asked for more."""
    model = ScriptedModel(lacking(NEW, confidence=confidence, first=HAS | {"answer": "So [t1, t2]."}))
    report, _ = run(tmp_path, model)
    assert (report.status, roles(model).count("planner")) == ("complete", 1)


def test_a_thin_result_that_nothing_replaces_stays(tmp_path: Path) -> None:
    """It is done, and may be used; the planner had nothing better."""
    model = ScriptedModel(lacking(confidence=10, first=HAS | {"answer": "So [t1, t2]."}))
    report, _ = run(tmp_path, model)
    assert (report.status, roles(model).count("planner")) == ("complete", 2)


def test_what_the_first_draft_lacks_is_planned_for_and_the_answer_written_once_more(tmp_path: Path) -> None:
    """The planner is told the gap and the outcomes; the second answer rests on all of it."""
    model = ScriptedModel(lacking(NEW))
    report, events = run(tmp_path, model)
    assert (report.status, report.answer, report.gaps) == ("complete", HAS["answer"], ())
    assert roles(model) == ["planner", "worker", "worker", "synthesizer", "planner", "worker", "synthesizer"]
    asked = model.calls[4][0].messages[-1].text
    assert "NO-PRICES" in asked
    assert "Task t1, done" in asked
    keys = [event.data["key"] for event in events if event.kind == "model_called"]
    assert keys[3:] == ["@synthesis/1", "@extend/1/1", "x1.n1/1/model/1", "@synthesis/x1/1"]
    (decision,) = [event.data for event in events if event.kind == "decision" and event.data["decision"] == "extend"]
    assert (decision["key"], decision["value"]) == ("@extend/1/gaps", True)
    assert report.usage.calls == len(model.calls)


def test_a_gap_that_is_still_there_leaves_the_run_partial(tmp_path: Path) -> None:
    """There is one round: the second answer stands with what it lacks."""
    model = ScriptedModel(lacking(NEW, then=HAS | {"gaps": LACKS["gaps"]}))
    report, _ = run(tmp_path, model)
    assert (report.status, report.answer, [gap.reason for gap in report.gaps]) == (
        "partial", HAS["answer"], ["NO-PRICES"],
    )  # fmt: skip
    assert roles(model).count("planner") == 2


@pytest.mark.parametrize("extension", [(), (task("n1", worker="bob"),)])
def test_a_draft_that_nothing_is_added_to_is_the_answer(tmp_path: Path, extension: Any) -> None:
    """It is corrected and reviewed then, and not written again for nothing."""
    accepts = {"when": {"role": "critic"}, "reply": {"json": {"verdict": "accept", "problems": []}}}
    model = ScriptedModel([accepts, *lacking(*extension)])
    report, _ = run(tmp_path, model, scrutiny=Scrutiny(critic=True))
    assert (report.status, report.answer) == ("partial", LACKS["answer"])
    assert (roles(model).count("synthesizer"), roles(model)[-1]) == (1, "critic")


def test_a_draft_is_reviewed_only_once_nothing_is_added(tmp_path: Path) -> None:
    """A critic looks at the answer that goes out, not at the draft before tasks were added."""
    accepts = {"when": {"role": "critic"}, "reply": {"json": {"verdict": "accept", "problems": []}}}
    model = ScriptedModel([accepts, *lacking(NEW)])
    report, _ = run(tmp_path, model, scrutiny=Scrutiny(critic=True))
    assert (report.status, roles(model).count("critic")) == ("complete", 1)


@pytest.mark.parametrize("more", [{"plan": TWO_TASKS}, {"approve": True}, {"max_tasks": 2}])
def test_a_gap_adds_no_task_where_none_may_be_added(tmp_path: Path, more: dict[str, Any]) -> None:
    """To a plan that was given or approved, or that is as large as it may be."""
    model = ScriptedModel(lacking(NEW))
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)

    async def approve(*_: Any) -> str:
        return "approve"

    report, _ = run_virtual(door.run("How many?", person=approve, **more))
    assert (report.status, report.answer) == ("partial", LACKS["answer"])
    assert roles(model).count("planner") == (0 if "plan" in more else 1)


def test_a_draft_stands_when_there_is_no_time_to_add_anything(tmp_path: Path) -> None:
    """Workers stop at four fifths of the deadline; a draft that is ready after that is the answer."""
    rules = lacking(NEW)
    rules[-1] = {**rules[-1], "delay_ms": 17_000}
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=ScriptedModel(rules), home=tmp_path)
    report, took = run_virtual(door.run("How many?", deadline=20))
    assert (report.status, report.answer, took < 20) == ("partial", LACKS["answer"], True)


def test_a_second_answer_that_comes_too_late_leaves_the_first(tmp_path: Path) -> None:
    """What was written is better than a list of results; that it uses nothing of what was added is stated."""
    rules = lacking(NEW)
    rules[-2] = {**rules[-2], "delay_ms": 60_000}
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=ScriptedModel(rules), home=tmp_path)
    report, _ = run_virtual(door.run("How many?", deadline=20))
    assert (report.status, report.answer) == ("partial", LACKS["answer"])
    assert report.provenance.unused == ("x1.n1",)
    assert [gap.reason for gap in report.gaps] == ["NO-PRICES"]


def test_a_gap_adds_nothing_that_the_budget_has_no_room_for(tmp_path: Path) -> None:
    """The money for the second answer is set aside before anything is added."""
    rules = lacking(NEW)
    rules[-1] = {**rules[-1], "usage": {"input_tokens": 9_000, "output_tokens": 1_500}}
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=ScriptedModel(rules), home=tmp_path)
    report, _ = run_virtual(door.run("How many?", tokens=12_000))
    assert (report.status, report.answer, len(report.outcomes)) == ("partial", LACKS["answer"], 2)


def test_more_rounds_fill_what_each_draft_lacks(tmp_path: Path) -> None:
    """With two rounds allowed, the second draft may ask for more; the third is the answer."""
    second = HAS | {"gaps": [{"task": None, "reason": "NO-NAMES", "impact": "x"}]}
    third = {"answer": "All [t1, t2, x1.n1, x2.n1]."}
    names = {"tasks": [task("n1", instruction="Find the names.")]}
    rules = [
        {"when": {"role": "planner", "contains": "NO-NAMES"}, "reply": {"json": names}},
        {"when": {"role": "synthesizer", "contains": "Task x2.n1, by"}, "reply": {"json": third}},
        *lacking(NEW, then=second),
    ]
    report, _ = run(tmp_path, ScriptedModel(rules), scrutiny=Scrutiny(extensions=2))
    assert (report.status, report.answer) == ("complete", third["answer"])


def test_a_run_cut_off_anywhere_comes_to_the_same_extension() -> None:
    """Whatever call it stopped at: no committed call is made twice, and what was decided stays so."""

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner" and "A plan was run" in call.messages[0].text:
            return {"tasks": [NEW | {"worker": "clerk", "depends_on": ["a"]}]}
        if call.role == "planner":
            return tasks(flow_task("a"), flow_task("b")).to_json()
        if call.role == "synthesizer":
            more = "x1.n1" in shown(call)
            gaps = [] if more else [{"task": None, "reason": "No prices.", "impact": "x"}]
            return {"answer": f"All. [{', '.join(shown(call))}]", "gaps": gaps}
        return works(call, attribution)

    whole = Flow(talk, None)
    report = whole.run()
    assert (report.status, report.answer) == ("complete", "All. [a, b, x1.n1]")
    keys = [event.data["key"] for event in whole.events if event.kind == "model_called"]
    total = int(whole.took)
    assert total == 7
    for number in range(2 * total):
        flow = Flow(talk, None)
        flow.run(interrupt_at=number / 2)
        again = flow.run(number=1)
        assert (again.status, again.answer) == (report.status, report.answer), number
        replied = [event.data["key"] for event in flow.events if event.kind == "model_replied"]
        assert sorted(replied) == sorted(keys), number
        assert again.usage.calls == report.usage.calls, number
        assert list(flow.decisions("extend")) == ["@extend/1/gaps"], number


def test_what_was_added_for_a_draft_is_there_when_failed_tasks_are_tried_again(tmp_path: Path) -> None:
    """The answer is written anew, from all tasks at once; the added one is not paid for twice."""
    rules = [{"when": {"role": "worker", "task": "x1.n2"}, "reply": FAILS, "times": 3}, *lacking(NEW, task("n2"))]
    model = ScriptedModel([{"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Do."}}}, *rules])
    report, _ = run(tmp_path, model)
    assert (report.status, [gap.task for gap in report.gaps]) == ("partial", ["x1.n2"])
    before = len(model.calls)
    door = Supervisor(Team([Worker("ann", "Finds numbers")]), model=model, home=tmp_path)
    again = asyncio.run(door.resume(report.run, retry_failed=True))
    assert [outcome.task for outcome in again.outcomes] == ["t1", "t2", "x1.n1", "x1.n2"]
    assert all(outcome.ok for outcome in again.outcomes)
    made = [(call.role, who.task) for call, who in model.calls[before:]]
    assert made[0] == ("worker", "x1.n2")
    assert {role for role, _ in made[1:]} == {"synthesizer"}
    assert again.usage.calls == len(model.calls)
