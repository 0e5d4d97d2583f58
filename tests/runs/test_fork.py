"""A new run that parts from one on record: what it takes over, what it does again, and what it costs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.errors import InvalidPlan, UsageError
from chargehand.events import Event, ModelCalled, Reused, RunStarted
from chargehand.record.home import Home
from chargehand.record.replay import replay
from chargehand.team import Scrutiny
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.trace import RunState
from chargehand.trace.event_words import describe_event
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from tests.planner.test_extend import FAILS, script
from tests.planner.test_extend import task as found_task
from tests.runs.test_orders import plan

TEAM = Team([Worker("clerk", "Writes")])
ANSWER = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t1, t2, t3].", "confidence": 80}}}
# t1 and t4 rest on nothing, t2 on t1, t3 on t2.
CHAIN = plan(("t1",), ("t2", "t1"), ("t3", "t2"), ("t4",))


def says(output: str, *rules: dict[str, Any]) -> ScriptedModel:
    """A model whose workers all say the same; each call takes a second."""
    worker = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": output, "confidence": 90}}}
    return ScriptedModel([*rules, worker | {"delay_ms": 1_000}, ANSWER])


def run(home: Path, model: ScriptedModel, made: Plan | None = CHAIN, team: Team = TEAM, **options: Any) -> Report:
    return run_virtual(Supervisor(team, model=model, home=home).run("Write", plan=made, **options))[0]


def fork(home: Path, client: ScriptedModel, run: str, team: Team = TEAM, **options: Any) -> Report:
    return run_virtual(Supervisor(team, model=client, home=home).fork(run, **options))[0]


def outputs(report: Report) -> dict[str, Any]:
    return {outcome.task: outcome.output for outcome in report.outcomes}


def worked(model: ScriptedModel) -> list[str | None]:
    return [who.task for call, who in model.calls if call.role == "worker"]


# -- what is done again ----------------------------------------------------------------------------------------------


def test_a_task_and_what_rests_on_it_are_new(tmp_path: Path) -> None:
    """The others are as they were and are not asked again; the run it comes from is as it was."""
    before = run(tmp_path, says("old"))
    record = list(Home(tmp_path).events(before.run))
    model = says("new")
    after = fork(tmp_path, model, before.run, at="t2")
    assert after.run != before.run
    assert outputs(after) == {"t1": "old", "t2": "new", "t3": "new", "t4": "old"}
    assert worked(model) == ["t2", "t3"]
    assert [outcome.attempts for outcome in after.outcomes] == [1, 1, 1, 1]
    assert list(Home(tmp_path).events(before.run)) == record


def test_what_is_taken_over_costs_nothing(tmp_path: Path) -> None:
    """Neither in its outcome, nor in the report, nor in the budget."""
    before = run(tmp_path, says("old"))
    after = fork(tmp_path, says("new"), before.run, at="t3")
    kept, new = after.outcomes[0].usage, after.outcomes[2].usage
    assert (kept.tokens, kept.usd, kept.calls, kept.seconds) == (0, 0.0, 0, 0.0)
    assert new.calls == 1
    assert after.usage.tokens < before.usage.tokens
    state = Home(tmp_path).state(after.run)
    assert state.spending.tokens == after.usage.tokens


def test_the_record_says_what_it_comes_from(tmp_path: Path) -> None:
    """`forked_from` at its beginning, and each result that was taken over as `reused`, under the same key."""
    before = run(tmp_path, says("old"))
    after = fork(tmp_path, says("new"), before.run, at="t3")
    events = list(Home(tmp_path).events(after.run))
    assert isinstance(events[0].body, RunStarted)
    assert events[0].body.forked_from == {"run": before.run, "at": "t3"}
    assert not events[0].body.resumed
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    reused = [event.body for event in events if isinstance(event.body, Reused)]
    assert {body.key for body in reused} == {"t1/1/model/1", "t2/1/model/1", "t4/1/model/1"}
    assert {body.source for body in reused} == {before.run}


def test_another_model_alone_does_every_task_again_by_the_same_plan(tmp_path: Path) -> None:
    """The planner is not asked: the plan is taken over."""
    planner = {"when": {"role": "planner"}, "reply": {"json": CHAIN.to_json()}}
    before = run(tmp_path, says("old", planner), None)
    after = fork(tmp_path, says("old"), before.run, model=other_model(tmp_path))
    assert outputs(after) == dict.fromkeys(("t1", "t2", "t3", "t4"), "new")
    assert {model for _, model in asked(tmp_path, after.run)} == {other_model(tmp_path)}


def test_another_model_from_one_task_on(tmp_path: Path) -> None:
    """The task and what rests on it are done by the other model, and the answer is written by it."""
    before = run(tmp_path, says("old"))
    after = fork(tmp_path, says("old"), before.run, at="t3", model=other_model(tmp_path))
    assert outputs(after) == {"t1": "old", "t2": "old", "t3": "new", "t4": "old"}
    assert {*asked(tmp_path, after.run)} == {("t3", other_model(tmp_path)), (None, other_model(tmp_path))}


def other_model(folder: Path) -> str:
    worker = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "new", "confidence": 90}}}
    path = folder / "other.json"
    path.write_text(json.dumps({"replies": [worker, ANSWER]}))
    return f"scripted:{path}"


def asked(home: Path, run: str) -> list[tuple[str | None, str]]:
    """The task and the model of each call."""
    return [(e.task, e.body.model) for e in Home(home).events(run) if isinstance(e.body, ModelCalled)]


def test_an_edited_plan_does_again_what_it_changes(tmp_path: Path) -> None:
    """A changed task, what rests on it, and a new one; a task that is left out is gone."""
    before = run(tmp_path, says("old"))
    tasks = [task.to_json() for task in CHAIN.tasks[:3]]
    tasks[1]["instruction"] = "Write the letter t2 to a friend."
    added = {**tasks[0], "id": "t5", "instruction": "Write the letter t5 to a customer."}
    model = says("new")
    after = fork(tmp_path, model, before.run, plan={"goal": "Letters", "tasks": [*tasks, added]})
    assert outputs(after) == {"t1": "old", "t2": "new", "t3": "new", "t5": "new"}
    assert sorted(map(str, worked(model))) == ["t2", "t3", "t5"]


@pytest.mark.parametrize(
    ("different", "says_so"),
    [
        ({}, "`at`"),
        ({"at": "t9"}, "t1, t2, t3, t4"),
        ({"at": "t2/1/t1"}, "begin at t2"),
        ({"at": "t2.s.p1"}, "begin at t2"),
    ],
)
def test_what_cannot_be_forked_is_refused_before_anything_is_recorded(
    tmp_path: Path, different: dict[str, Any], says_so: str
) -> None:
    """With the tasks there are, or the one that it is within."""
    before = run(tmp_path, says("old"))
    with pytest.raises(UsageError, match=says_so):
        fork(tmp_path, says("new"), before.run, **different)
    assert len(Home(tmp_path).runs()) == 1


def test_a_plan_with_problems_is_refused(tmp_path: Path) -> None:
    """All of them are named, and no run is made."""
    before = run(tmp_path, says("old"))
    with pytest.raises(InvalidPlan):
        fork(tmp_path, says("new"), before.run, plan={"goal": "g", "tasks": [{"id": "t1", "worker": "nobody"}]})
    assert len(Home(tmp_path).runs()) == 1


# -- runs that stopped, and forks that do ----------------------------------------------------------------------------


def interrupted(home: Path, model: ScriptedModel, after_s: float, start: str = "", **options: Any) -> Report:
    """A run, or with `start` a fork of that run, that was interrupted after some seconds."""

    async def main() -> Report:
        door = Supervisor(TEAM, model=model, home=home)

        def stop(session: Any) -> None:
            asyncio.get_running_loop().call_later(after_s, session.interrupt)

        if start:
            return await door.fork(start, on_session=stop, **options)
        return await door.run("Write", plan=CHAIN, on_session=stop)

    return run_virtual(main())[0]


def test_a_run_that_was_interrupted_is_continued_from_what_it_has(tmp_path: Path) -> None:
    """What had not ended is done in the fork, and nothing that was committed is asked again."""
    before = interrupted(tmp_path, says("old"), 1.5)
    assert before.status == "interrupted"
    model = says("new")
    after = fork(tmp_path, model, before.run, at="t3")
    assert after.status in ("complete", "partial")
    done = outputs(before)
    assert outputs(after) == {"t1": "old", "t2": done.get("t2", "new"), "t3": "new", "t4": "old"}
    assert "t1" not in worked(model)


def test_a_fork_that_was_interrupted_is_resumed(tmp_path: Path) -> None:
    """It is a run like any other: nothing that it took over or did is done again."""
    before = run(tmp_path, says("old"))
    model = says("new")
    stopped = interrupted(tmp_path, model, 0.5, before.run, at="t2")
    assert stopped.status == "interrupted"
    after = run_virtual(Supervisor(TEAM, model=model, home=tmp_path).resume(stopped.run))[0]
    assert outputs(after) == {"t1": "old", "t2": "new", "t3": "new", "t4": "old"}
    assert worked(model) == ["t2", "t3"]
    assert Home(tmp_path).state(after.run).start["forked_from"] == {"run": before.run, "at": "t2"}


def test_a_fork_that_died_at_any_event_comes_to_the_same(tmp_path: Path) -> None:
    """Folded from the record as far as it goes, what was taken over is there from the first commit on."""
    before = run(tmp_path, says("old"))
    after = fork(tmp_path, says("new"), before.run, at="t3")
    events = list(Home(tmp_path).events(after.run))
    first_call = next(at for at, event in enumerate(events) if event.kind == "model_called")
    for cut in range(first_call, len(events)):
        state = replay(events[:cut], after.run)
        assert {"t1", "t2", "t4"} <= state.ended.keys()
        assert state.plan is not None


def test_a_fork_can_be_forked_and_rerun(tmp_path: Path) -> None:
    """What it took over is its own."""
    before = run(tmp_path, says("one"))
    second = fork(tmp_path, says("two"), before.run, at="t3")
    third = fork(tmp_path, says("three"), second.run, at="t4")
    assert outputs(third) == {"t1": "one", "t2": "one", "t3": "two", "t4": "three"}
    again = run_virtual(Supervisor(TEAM, model=says("four"), home=tmp_path).rerun(second.run))[0]
    assert again.status == second.status


def test_a_reopened_task_is_taken_over_as_it_ended_last(tmp_path: Path) -> None:
    """Done, in an attempt after those that had failed."""
    fails = {"when": {"role": "worker", "task": "t1"}, "reply": FAILS}
    before = run(tmp_path, says("old", fails))
    run_virtual(Supervisor(TEAM, model=says("old"), home=tmp_path).resume(before.run, retry_failed=True))
    after = fork(tmp_path, says("new"), before.run, at="t3")
    assert outputs(after) == {"t1": "old", "t2": "old", "t3": "new", "t4": "old"}


def test_the_lines_of_a_fork_say_what_happens_now(tmp_path: Path) -> None:
    """Of the tasks that are taken over, only the results: no attempt at them is made, and no call is sent again."""
    flaky = {"when": {"role": "worker", "task": "t1"}, "reply": {"error": {"status": 500}}, "times": 1}
    before = run(tmp_path, says("old", flaky))
    view, lines = RunState(), list[str | None]()

    def on_event(event: Event) -> None:
        view.apply(event)
        lines.append(describe_event(event, view))

    fork(tmp_path, says("new"), before.run, at="t3", on_event=on_event)
    shown = [line for line in lines if line]
    assert shown[0].partition(", ")[2] == f"a fork of {before.run}: {before.request}"
    kept = [line.split(":")[0] for line in shown if line.startswith(("t1", "t2", "t4"))]
    assert sorted(kept) == ["t1 done (reused)", "t2 done (reused)", "t4 done (reused)"]
    assert "t3 started by clerk" in shown


# -- tools, teams, parts, added tasks --------------------------------------------------------------------------------


def test_what_a_once_tool_did_is_not_done_again(tmp_path: Path) -> None:
    """Neither in a task that is kept, nor in one that is done again and asks for the very same."""
    sent: list[str] = []

    @tool(effect="once")
    def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    def sends(to: str) -> dict[str, Any]:
        call = {"name": "send", "arguments": {"to": to}}
        return {"when": {"role": "worker"}, "reply": {"tool_calls": [call]}, "times": 1}

    team, made = Team([Worker("clerk", "Writes", tools=[send])]), plan(("t1",))
    before = run(tmp_path, says("old", sends("ann")), made, team)
    same = fork(tmp_path, says("new", sends("ann")), before.run, team, at="t1")
    assert (sent, outputs(same)) == (["ann"], {"t1": "new"})
    fork(tmp_path, says("new", sends("bob")), before.run, team, at="t1")
    assert sent == ["ann", "bob"]


def test_a_nested_team_is_taken_over_with_its_task(tmp_path: Path) -> None:
    """Nothing of it is asked again; done again, all of it is."""
    desk = Team([Worker("clerk", "Writes")], name="desk")
    office = Team([Worker("clerk", "Has it written", kind="delegate", team=desk)])
    made = plan(("t1",), ("t2", "t1"))
    planner = {"when": {"role": "planner"}, "reply": {"json": plan(("n1",)).to_json()}}
    before = run(tmp_path, says("old", planner), made, office)
    model = says("new", planner)
    after = fork(tmp_path, model, before.run, office, at="t2")
    assert {who.task for _, who in model.calls if who.task} == {"t2", "t2/1/n1"}
    assert after.outcomes[0].output == before.outcomes[0].output
    assert after.outcomes[0].usage.calls == 0


def test_the_parts_of_a_split_are_taken_over_with_it(tmp_path: Path) -> None:
    """The task stays done by its parts."""
    long = {"when": {"role": "worker", "task": "t1"}, "reply": {"error": {"status": 413}}}
    parts = {"tasks": [found_task("p1", worker="clerk"), found_task("p2", worker="clerk")]}
    planner = {"when": {"role": "planner", "task": "t1"}, "reply": {"json": parts}}
    drafts = {"when": {"role": "planner"}, "reply": {"json": plan(("t1",), ("t2", "t1")).to_json()}}
    before = run(tmp_path, says("old", long, planner, drafts), None)
    assert set(before.outcomes[0].output) == {"t1.s.p1", "t1.s.p2"}
    model = says("new")
    after = fork(tmp_path, model, before.run, at="t2")
    assert worked(model) == ["t2"]
    assert after.outcomes[0].output == before.outcomes[0].output


def test_added_tasks_are_kept_when_the_fork_begins_with_one_of_them(tmp_path: Path) -> None:
    """The planner is not asked again; of two rounds the later one, which rested on this, is."""
    new = found_task("n1", instruction="Count the second number by hand.", replaces=["t2", "t3"])
    other = found_task("n2", instruction="Count the first number by hand.")
    team = Team([Worker("ann", "Finds numbers")], scrutiny=Scrutiny(extensions=1))
    before = run(tmp_path, ScriptedModel(script(new, other, answer="All [t1, x1.n1, x1.n2].")), None, team)
    assert [outcome.task for outcome in before.outcomes][3:] == ["x1.n1", "x1.n2"]
    model = ScriptedModel(script(answer="All [t1, x1.n1, x1.n2]."))
    after = fork(tmp_path, model, before.run, team, at="x1.n1")
    assert worked(model) == ["x1.n1"]
    assert not any(call.role == "planner" for call, _ in model.calls)
    assert [outcome.task for outcome in after.outcomes] == [outcome.task for outcome in before.outcomes]


def test_added_tasks_are_added_again_when_an_earlier_task_is_done_again(tmp_path: Path) -> None:
    """They were made for what those had come to."""
    new = found_task("n1", instruction="Count the second number by hand.", replaces=["t2", "t3"])
    team = Team([Worker("ann", "Finds numbers")])
    before = run(tmp_path, ScriptedModel(script(new, answer="All [t1, x1.n1].")), None, team)
    works = ScriptedModel([rule for rule in script(answer="All [t1, t2, t3].") if rule["reply"] is not FAILS])
    after = fork(tmp_path, works, before.run, team, at="t2")
    assert [outcome.task for outcome in after.outcomes] == ["t1", "t2", "t3"]
    assert after.status == "complete"


def test_a_persons_work_is_taken_over(tmp_path: Path) -> None:
    """A task that a person did is not asked for again."""
    asked: list[str] = []

    async def person(question: Any, wrong: str | None) -> str:
        asked.append(question.id)
        return "Said by a person."

    team = Team([Worker("clerk", "Writes"), Worker("boss", "Decides", kind="human")])
    tasks = [task.to_json() for task in plan(("t1",), ("t2", "t1")).tasks]
    tasks[0]["worker"] = "boss"
    made = {"goal": "g", "tasks": tasks}
    door = Supervisor(team, model=says("old"), home=tmp_path)
    before = run_virtual(door.run("Write", plan=made, person=person))[0]
    after = fork(tmp_path, says("new"), before.run, team, at="t2", person=person)
    assert len(asked) == 1
    assert after.outcomes[0].output == before.outcomes[0].output


def test_documents_of_kept_tasks_are_there(tmp_path: Path) -> None:
    """In the folder of the fork, where the result says they are."""
    call = {"name": "write_document", "arguments": {"name": "a.md", "text": "Words"}}
    writes = {"when": {"role": "worker", "task": "t1"}, "reply": {"tool_calls": [call]}, "times": 1}
    team = Team([Worker("clerk", "Writes", tools=["write_document"])])
    before = run(tmp_path, says("old", writes), plan(("t1",), ("t2", "t1")), team)
    assert [path.name for path in Home(tmp_path).documents(before.run)] == ["a.md"]
    kept = fork(tmp_path, says("new"), before.run, team, at="t2")
    assert [path.read_text() for path in Home(tmp_path).documents(kept.run)] == ["Words"]
    again = fork(tmp_path, says("new"), before.run, team, at="t1")
    assert Home(tmp_path).documents(again.run) == []
