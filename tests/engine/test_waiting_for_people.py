"""The time people take is theirs: no timeout, no task's seconds and no deadline runs while a task waits for one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.engine.local import call_time
from chargehand.events import Event
from chargehand.models import Attribution, provider_settings
from chargehand.record.replay import replay
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.text.plan_json import parse
from chargehand.values.effect import ModelCall, Question
from chargehand.values.plan import Plan
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from tests.events import make_event
from tests.flows import Flow, Said, escalate, works
from tests.flows import task as flow_task
from tests.flows import tasks as flow_tasks
from tests.kernel import result

HOUR = 3_600.0
DONE = {"json": {"summary": "Done.", "output": "done", "confidence": 90}}
LEFT_OUT = [{"task": "t2", "reason": "It says the same."}]
ANSWER = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t1].", "left_out": LEFT_OUT}}}


def paying() -> Team:
    @tool(approve=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    return Team([Worker("clerk", "Pays", tools=[pay])], recovery=Policy(attempts=1))


def model(last_s: float = 1.0, other_s: float = 1.0) -> ScriptedModel:
    """t1 wants to pay after a second, and after that takes `last_s` to answer; the others take `other_s`."""
    pays = {"tool_calls": [{"name": "pay", "arguments": {"amount": 7}}]}
    return ScriptedModel(
        [
            ANSWER,
            {"when": {"task": "t1"}, "reply": pays, "times": 1, "delay_ms": 1_000},
            {"when": {"task": "t1"}, "reply": DONE, "delay_ms": int(last_s * 1_000)},
            {"when": {"role": "worker"}, "reply": DONE, "delay_ms": int(other_s * 1_000)},
        ]
    )


def plan(*ids: str, **limits: Any) -> Plan:
    tasks: list[dict[str, Any]] = [
        {"id": id, "worker": "clerk", "instruction": f"Pay the bill of {id}.", "success_criterion": "It is paid."}
        for id in ids
    ]
    tasks[0] |= limits
    return parse({"goal": "Bills", "tasks": tasks})


async def yes(asked: Question, wrong: str | None) -> str:
    """Approves after an hour, and takes over no task that failed."""
    if asked.kind == "tool":
        await asyncio.sleep(HOUR)
        return "approve"
    return "escalate: not mine"


def run(made: Plan, home: Path, says: ScriptedModel, **options: Any) -> tuple[Report, list[str]]:
    """The report, and which limits were reached."""
    reached: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "decision" and event.data["decision"] in ("timeout", "deadline"):
            reached.append(event.data["decision"])

    door = Supervisor(paying(), model=says, home=home)
    return run_virtual(door.run("Pay", plan=made, ask=True, person=yes, on_event=listen, **options))[0], reached


@pytest.fixture(autouse=True)
def _calls_may_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest that a call may take by itself is not what is tried here."""
    monkeypatch.setattr(provider_settings, "FIRST_EVENT_S", 10 * HOUR)
    monkeypatch.setattr(call_time, "LONGEST_S", 10 * HOUR)


LIMITS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"timeout_s": 5}, {}, "timeout"),
    ({"budget": {"seconds": 5}}, {}, "timeout"),
    # Workers stop a fifth before the deadline.
    ({}, {"deadline": 6.25}, "deadline"),
]
NAMES = ["task timeout", "task seconds", "deadline"]


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "options", "kind"), LIMITS, ids=NAMES)
def test_an_approval_takes_nothing_from_a_limit(
    limits: dict[str, Any], options: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    """An hour to approve a call leaves an attempt of five seconds its five seconds."""
    report, reached = run(plan("t1", **limits), tmp_path, model(), **options)
    assert (report.status, reached) == ("complete", [])
    assert report.timing.wall_s == pytest.approx(2, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "options", "kind"), LIMITS, ids=NAMES)
def test_a_limit_still_fires_in_the_middle_of_the_call_after_the_answer(
    limits: dict[str, Any], options: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    """One second was used before the question: four are left after it."""
    report, reached = run(plan("t1", **limits), tmp_path, model(last_s=1_000), **options)
    assert reached == [kind]
    assert report.timing.wall_s == pytest.approx(5, abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "kind"), [(each[0], each[2]) for each in LIMITS[:2]], ids=NAMES[:2])
def test_a_tasks_own_time_stands_still_while_others_work(limits: dict[str, Any], kind: str, tmp_path: Path) -> None:
    """The run's clock goes on with the other task, the clock of the task that waits does not."""
    both = plan("t1", "t2", **limits)
    report, reached = run(both, tmp_path, model(other_s=2 * HOUR))
    assert ([outcome.status for outcome in report.outcomes], reached) == (["done", "done"], [])
    assert report.timing.wall_s == pytest.approx(2 * HOUR, abs=0.5)
    cut, reached = run(both, tmp_path, model(last_s=1_000, other_s=2 * HOUR))
    assert reached == [kind]
    assert cut.outcomes[0].usage.seconds == pytest.approx(5, abs=0.1)


def test_a_resumed_attempt_has_the_time_it_had_before_it_waited(tmp_path: Path) -> None:
    """While it waited the run worked on something else for a minute: that is not the task's, in no session."""

    async def main(last_s: float) -> Report:
        door = Supervisor(paying(), model=model(last_s=last_s, other_s=60), home=tmp_path)
        report = await door.run("Pay", plan=plan("t1", "t2", timeout_s=5), ask=True)
        assert report.status == "waiting"
        (asked,) = door.questions(report.run)
        await door.answer(report.run, asked.id, "approve")
        return await door.resume(report.run, person=yes)

    assert run_virtual(main(3.5))[0].status == "complete"
    assert [outcome.status for outcome in run_virtual(main(4.5))[0].outcomes] == ["escalated", "done"]


def test_two_questions_at_once_pause_a_task_once() -> None:
    """The waits of a task that overlap are one wait; those of the supervisor are nobody's."""
    question: dict[str, Any] = {"question": {"id": "q", "kind": "tool", "prompt": "?"}}

    def event(seq: int, at: float, kind: Any, task: str | None = "t1", **data: Any) -> Event:
        return make_event(kind, task, 1, seq=seq, at=at, **data)

    events = [
        event(1, 0.0, "run_started", None, request={}, team={}, settings={}),
        event(2, 1.0, "attempt_started"),
        event(3, 2.0, "question_asked", key="a", **question),
        event(4, 3.0, "question_asked", key="b", **question),
        event(5, 3.0, "question_asked", None, key="@plan/approve", **question),
        event(6, 7.0, "question_answered", key="a", answer="approve"),
        event(7, 9.0, "question_answered", key="b", answer="approve"),
        event(8, 20.0, "attempt_started"),
        event(9, 21.0, "question_asked", key="c", **question),
        event(10, 24.0, "warning", None, message="x"),
    ]
    state = replay(events)
    assert state.waits.by_task(state.owned_s) == {"t1": pytest.approx(7 + 3)}
    assert state.begun == {"t1": 1.0, "t1/1": 1.0}


@pytest.mark.slow
def test_an_approval_is_waiting_and_not_work(tmp_path: Path) -> None:
    """What the person took while another task went on is in the task's waiting time and in the report's."""
    report, _ = run(plan("t1", "t2"), tmp_path, model(other_s=2 * HOUR))
    asking = report.outcomes[0].usage
    assert (asking.seconds, asking.waiting_s) == (pytest.approx(2, abs=0.1), pytest.approx(HOUR, abs=1))
    assert report.timing.waiting_s == pytest.approx(HOUR, abs=1)


def test_a_run_parked_while_the_statements_of_a_long_result_were_checked() -> None:
    """It waits for people once nothing else can go on: what is worked out beside the loop goes on, and what follows."""
    claims = [{"statement": f"Number {n} is a number.", "confidence": 90, "sources": []} for n in range(3000)]

    async def talk(call: ModelCall, who: Attribution) -> Said:
        if who.task == "a":
            return escalate("ambiguous_input")
        if who.task == "b":
            await asyncio.sleep(60)
            return result("Numbers.", claims=claims)
        return works(call, who)

    flow = Flow(talk, flow_tasks(flow_task("a"), flow_task("b"), flow_task("c", "b")), request={"ask": True})
    assert flow.run().status == "waiting"
    assert [e.task for e in flow.events if e.kind == "task_ended"] == ["b", "c"]
