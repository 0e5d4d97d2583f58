"""With a model, a planner may add tasks to a given plan; whatever it answers, the plan's own tasks run as they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Team, Worker
from chargehand.apps.review.change import read_tree
from chargehand.apps.review.from_git import read_diff
from chargehand.apps.review.review_plan import make_review_plan, subject
from chargehand.errors import ModelError
from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.record.replay import replay
from chargehand.trace import fold
from chargehand.values.effect import ModelCall
from chargehand.values.plan import Plan, errors_in
from chargehand.values.request import Subject
from tests.apps.review.world import repository, write
from tests.flows import Flow, Said, task, texts, works

# As in the plan of a review: two groups of files for one reader, one of them also for another.
PLAN = Plan(
    goal="Review the code",
    tasks=(
        task("reader-1", worker="reader", context={
            "code": {"a.py": "1: IN-A", "b.py": "1: IN-B"}, "changed": {"a.py": [[1, 1]]},
            "rules": {"AGENTS.md": "RULE"},
        }),
        task("reader-2", worker="reader", context={"code": {"c.py": "1: IN-C"}, "changed": {}}),
        task("clerk-1", worker="clerk", context={"files": ["a.py", "b.py", "c.py"]}),
    ),
)  # fmt: skip
ABOUT = Subject(files={name: {"bytes": 7} for name in ("a.py", "b.py", "c.py")}, notes="a.py:1: NOTE, careful")
TEAM = Team([Worker("reader", "Reads code"), Worker("clerk", "Files things"), Worker("idle", "Has no task here")])


def new(id: str = "n1", **more: Any) -> dict[str, Any]:
    words = {"instruction": "Look whether a and c agree.", "success_criterion": "It is said."}
    return {"id": id, "worker": "reader", "files": ["a.py", "c.py"], "depends_on": [], **words, **more}


def flow(*rounds: Said, subject: Subject | None = ABOUT, **request: Any) -> Flow:
    """The planner's answers, one after the other, the last again and again."""
    said = list(rounds)

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner":
            return said.pop(0) if len(said) > 1 else said[0]
        return works(call, attribution)

    return Flow(talk, PLAN, TEAM, {"subject": subject, **request})


def of_kind(flow: Flow, kind: str) -> list[Event]:
    return [event for event in flow.events if event.kind == kind]


def test_tasks_are_added_and_the_plan_s_own_stay_as_they_are() -> None:
    """A new task is named by its worker and is given of its worker's contexts what is about its files, or none."""
    run = flow({"tasks": [new(depends_on=["clerk-1"]), new("n2", depends_on=["n1"], context="MINE")]})
    report = run.run()
    assert report.status == "complete"
    assert report.plan is not None
    assert report.plan.tasks[:3] == PLAN.tasks
    first, second = report.plan.tasks[3:]
    assert (first.id, first.depends_on, second.id, second.depends_on) == (
        "reader-x1", ("clerk-1",), "reader-x2", ("reader-x1",),
    )  # fmt: skip
    code = {"a.py": "1: IN-A", "c.py": "1: IN-C"}
    assert first.context == {"code": code, "changed": {"a.py": [[1, 1]]}, "rules": {"AGENTS.md": "RULE"}}
    assert second.context == first.context
    assert not errors_in(report.plan.problems(TEAM.names))
    assert [event.data["source"] for event in of_kind(run, "plan_drafted")] == ["given", "added"]
    draft = of_kind(run, "plan_drafted")[1]
    assert draft.data["renamed"] == {"n1": "reader-x1", "n2": "reader-x2"}
    assert fold(event for event in run.events if event.seq <= draft.seq).plan == PLAN
    (approved,) = of_kind(run, "plan_approved")
    assert (approved.data["given"], len(approved.data["plan"]["tasks"])) == (True, 5)
    assert approved.data["usage"]["calls"] == len(run.calls("planner")) == 1
    assert report.usage.calls == len(run.model.asked)


def test_the_planner_sees_names_and_notes_and_no_code() -> None:
    """What is in the files is for the workers; who has no task in the plan is not offered."""
    run = flow({"tasks": []})
    assert run.run().plan == PLAN
    asked = texts(run.calls("planner"))
    assert all(words in asked for words in ("reader-1", '"a.py", "b.py"', '"files": "all"', "NOTE", '"bytes": 7'))
    assert not any(words in asked for words in ("IN-A", "IN-B", "IN-C", "RULE", "idle"))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"tasks": [new(worker="nobody")]}, "unknown_worker"),
        ({"tasks": [new(worker="idle")]}, "unknown_worker"),
        ({"tasks": [new(worker="")]}, "unknown_worker"),
        ({"tasks": [new("reader-1")]}, "duplicate_id"),
        ({"tasks": [new(), new()]}, "duplicate_id"),
        ({"tasks": [new(depends_on=["n1"])]}, "self_dependency"),
        ({"tasks": [new(depends_on=["n2"]), new("n2", depends_on=["n1"])]}, "cycle"),
        ({"tasks": [new(depends_on=["nowhere"])]}, "unknown_dependency"),
        ({"tasks": [new(instruction="")]}, "missing_instruction"),
        ({"tasks": [new(success_criterion="")]}, "missing_criterion"),
        ({"tasks": [new(files=["/etc/passwd"])]}, "missing_instruction"),
        ({"tasks": [new(files=[])]}, "missing_instruction"),
        ({"tasks": [new(files="a.py")]}, "missing_instruction"),
        ({"tasks": [new(files=["a.py", "b.py", "c.py"])]}, "over_budget"),
        ({"tasks": [new(f"n{n}") for n in range(21)]}, "fan_out"),
        ({"tasks": ["read it all"]}, "missing_instruction"),
        ({"tasks": "none"}, "empty_plan"),
        ("I would add nothing.", "empty_plan"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_not_added(answer: Said, code: str) -> None:
    """It goes back with its problems, twice; then the plan runs as it was, which is a warning and no failure."""
    run = flow(answer)
    report = run.run()
    assert (report.status, report.plan) == ("complete", PLAN)
    assert len(run.calls("planner")) == 3
    for rejected in of_kind(run, "plan_rejected"):
        assert code in {problem["code"] for problem in rejected.data["problems"]}
    (warning,) = of_kind(run, "warning")
    assert "No tasks were added" in warning.data["message"]


def test_a_repaired_answer_is_added() -> None:
    """The planner is told what was wrong, all at once."""
    run = flow({"tasks": [new(worker="nobody", files=["z.py"])]}, {"tasks": [new()]})
    report = run.run()
    assert [outcome.task for outcome in report.outcomes][3:] == ["reader-x1"]
    told = run.calls("planner")[1].messages[-1].text
    assert "'nobody'" in told
    assert "'z.py'" in told
    assert not of_kind(run, "warning")


@pytest.mark.parametrize("request_", [{"subject": None}, {"max_tasks": 3}, {"subject": Subject()}])
def test_where_nothing_can_be_added_nobody_is_asked(request_: dict[str, Any]) -> None:
    """A plan that is given runs as it is, unless its request says what it is about."""
    run = flow({"tasks": [new()]}, **request_)
    assert run.run().plan == PLAN
    assert not run.calls("planner")


def test_the_most_tasks_a_run_may_have_count_the_plan_s_own() -> None:
    """Two would be too many."""
    run = flow({"tasks": [new(), new("n2")]}, {"tasks": [new()]}, max_tasks=4)
    report = run.run()
    assert report.plan is not None
    assert (len(report.plan.tasks), len(run.calls("planner"))) == (4, 2)


@pytest.mark.parametrize(
    ("said", "request_", "why"),
    [
        (ModelError("bad_request", "no such thing"), {}, "no such thing"),
        ({"tasks": [new()]}, {"budget": {"tokens": 300}}, "budget"),
    ],
)  # fmt: skip
def test_a_planner_that_cannot_answer_stops_nothing(said: Said, request_: dict[str, Any], why: str) -> None:
    """Nor does one there is no budget for."""
    run = flow(said, **request_)
    assert run.run().plan == PLAN
    assert why in of_kind(run, "warning")[0].data["message"]


def test_a_slow_planner_leaves_the_plan_most_of_the_time() -> None:
    """A fifth of the deadline is over when the plan begins to run."""

    async def slow(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "planner":
            await asyncio.sleep(1_000)
        return works(call, attribution)

    run = Flow(slow, PLAN, TEAM, {"subject": ABOUT, "deadline_s": 100.0})
    report = run.run()
    assert (report.status, report.plan) == ("complete", PLAN)
    assert 20 <= run.took < 30
    assert "not enough time" in of_kind(run, "warning")[0].data["message"]


@pytest.mark.parametrize("at", [0.5, 1.5, 2.5])
def test_resume_never_plans_again(at: float) -> None:
    """Stopped while the planner thinks, or later: what it answered stands, and the plan it is added to is known."""
    run = flow({"tasks": [new()]})
    run.run(interrupt_at=at)
    state = replay(run.events)
    assert state.plan_given
    assert state.drafted == PLAN.to_json()
    report = run.run(number=1)
    assert report.plan is not None
    assert [task.id for task in report.plan.tasks[3:]] == ["reader-x1"]
    assert len(run.calls("planner")) == 1
    assert len(of_kind(run, "plan_approved")) == 1


def test_of_a_review_the_planner_is_told_what_readers_read(tmp_path: Path) -> None:
    """Names, sizes, of a change how many lines, and what was said before; no line of the code."""
    files = {"a.py": "one = 1\n", "b.py": "two = 2\n", "notes.md": "# Notes\n"}
    root = repository(tmp_path / "r", files)
    write(root, {"a.py": "one = 1\nmore = 11\nlast = 111\n", "notes.md": "# New notes\n"})
    whole, change = read_tree(root), read_diff(root, "HEAD")
    of_all = subject(make_review_plan(whole, model=True), whole)
    assert of_all == Subject(files={"a.py": {"bytes": 29}, "b.py": {"bytes": 8}})
    of_change = subject(make_review_plan(change, model=True), change, "a.py:1: careful")
    assert of_change == Subject(files={"a.py": {"bytes": 29, "changed_lines": 2}}, notes="a.py:1: careful")
