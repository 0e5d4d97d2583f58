"""Orders to a run, from any process: recorded once with a verdict, then acted on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.errors import UsageError
from chargehand.record.home import Home
from chargehand.record.index import summarise
from chargehand.record.mailbox import FolderMailbox, MemoryMailbox, UnreadableOrder
from chargehand.record.memory_journal import MemoryJournal
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.text.plan_json import parse
from chargehand.trace.run_state import fold
from chargehand.values.event import Control, Event
from chargehand.values.order import new_order
from chargehand.values.plan import Plan
from chargehand.values.report import Report

DONE = {"json": {"summary": "Done.", "output": "done", "confidence": 90}}
LEFT_OUT = [{"task": task, "reason": "It says the same."} for task in ("t2", "t3")]
ANSWER = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t1].", "left_out": LEFT_OUT}}}
TEAM = Team([Worker("clerk", "Writes")])
Act = Callable[[Supervisor, str], Awaitable[Any]]


def plan(*tasks: tuple[str, ...], **limits: Any) -> Plan:
    return parse(
        {
            "goal": "Letters",
            "tasks": [
                {
                    "id": id,
                    "worker": "clerk",
                    "instruction": f"Write the letter {id} to a customer.",
                    "success_criterion": "It is written.",
                    "depends_on": list(needs),
                    **limits,
                }
                for id, *needs in tasks
            ],
        }
    )


def model(**seconds: float) -> ScriptedModel:
    """Each task takes so many seconds, or one."""
    slow = [
        {"when": {"task": id, "role": "worker"}, "reply": DONE, "delay_ms": int(s * 1000)} for id, s in seconds.items()
    ]
    return ScriptedModel([ANSWER, *slow, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])


def steered(home: Path, made: Plan, says: ScriptedModel, act: Act, **options: Any) -> tuple[Report, Any, float]:
    """The report of a run, what `act` came to beside it, and the seconds it took."""

    async def main() -> tuple[Report, Any]:
        door = Supervisor(TEAM, model=says, home=home)
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def listen(event: Event) -> None:
            if event.kind == "attempt_started" and not begun.done():
                begun.set_result(event.run)

        async def steer() -> Any:
            run = await begun
            return await act(Supervisor(TEAM, model=says, home=home), run)

        acting = asyncio.ensure_future(steer())
        report = await door.run("Write", plan=made, on_event=listen, **options)
        return report, await acting

    (report, acted), took = run_virtual(main())
    return report, acted, took


def controls(home: Path, run: str) -> list[Control]:
    return [event.body for event in Home(home).events(run) if isinstance(event.body, Control)]


def resume(home: Path, run: str, says: ScriptedModel) -> Report:
    return run_virtual(Supervisor(TEAM, model=says, home=home).resume(run))[0]


# -- the mailbox -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_orders_are_read_in_the_order_they_were_sent(kind: str, tmp_path: Path) -> None:
    """Also two of one millisecond; what is removed is gone, and removing it again does nothing."""
    mailbox = FolderMailbox(tmp_path / "orders") if kind == "folder" else MemoryMailbox()
    assert mailbox.pending() == []
    sent = [new_order("stop", task=f"t{number}", text="no") for number in range(20)]
    for order in reversed(sent):
        mailbox.send(order)
    assert mailbox.pending() == sent
    mailbox.remove(sent[0].id)
    mailbox.remove(sent[0].id)
    assert mailbox.pending() == sent[1:]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "it is not JSON"),
        (b'{"version": 1, "order', "it is not JSON"),
        (b'{"version": 7}', "it is of version 7"),
        (b"[]", "it is not an order"),
        (b'{"version": 1, "id": "X", "order": "fly"}', "it is not an order"),
        (b"x" * 2_000_000, "it is longer than"),
        (b"\xff\xfe", "it is not JSON"),
    ],
)
def test_what_is_not_an_order_is_named_with_its_problem(text: bytes, problem: str, tmp_path: Path) -> None:
    """Half-written ones have another name and are not read; others are refused and never stop the reader."""
    id = new_order("pause").id
    (tmp_path / f"{id}.json").write_bytes(text)
    (tmp_path / f"{new_order('pause').id}.tmp").write_bytes(b'{"version": 1')
    (tmp_path / "notes.json").write_bytes(b"{}")
    (read,) = FolderMailbox(tmp_path).pending()
    assert isinstance(read, UnreadableOrder)
    assert read.id == id
    assert problem in read.problem


# -- pause -----------------------------------------------------------------------------------------------------------


async def pauses(door: Supervisor, run: str) -> Any:
    return await door.pause(run)


def test_a_paused_run_finishes_its_calls_and_begins_nothing(tmp_path: Path) -> None:
    """Status `paused` and exit code 4; `resume` does the rest and repeats nothing."""
    says = model(t1=5)
    report, sent, took = steered(tmp_path, plan(("t1",), ("t2", "t1")), says, pauses)
    assert (report.status, report.exit_code, sent.verdict) == ("paused", 4, "accepted")
    assert [outcome.task for outcome in report.outcomes] == ["t1"]
    assert took == pytest.approx(5.5, abs=0.6)
    assert Supervisor(home=tmp_path).report(report.run).status == "paused"
    assert Home(tmp_path).runs()[0].status == "paused"
    again = resume(tmp_path, report.run, says)
    assert again.status == "complete"
    assert again.timing.wall_s == pytest.approx(6.0, abs=1.1)
    assert [each.order for each in controls(tmp_path, report.run)] == ["pause", "continue"]
    calls = [e.data["key"] for e in Home(tmp_path).events(report.run) if e.kind == "model_called"]
    assert len(calls) == len(set(calls))


def test_a_run_that_stays_is_continued_where_it_is(tmp_path: Path) -> None:
    """An hour of pause takes nothing from the deadline and from the time of a task."""

    async def act(door: Supervisor, run: str) -> Any:
        await door.pause(run)
        await asyncio.sleep(3_600)
        assert door.report(run).status == "paused"
        return await door.unpause(run)

    made = plan(("t1",), ("t2", "t1"), timeout_s=20)
    report, sent, took = steered(tmp_path, made, model(t1=5, t2=5), act, stay=True, deadline=60)
    assert (report.status, sent.verdict) == ("complete", "accepted")
    assert took > 3_600
    assert report.timing.wall_s < 10


def test_a_paused_run_that_died_is_still_paused(tmp_path: Path) -> None:
    """What the record says of an order holds for the next session: only a person continues it."""
    says = model(t1=5)
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), says, pauses)
    state = Home(tmp_path).state(report.run)
    assert state.paused
    state.status, state.report = "running", None
    from chargehand.runs.report_from_record import report_so_far

    assert report_so_far(Home(tmp_path), state).status == "paused"


# -- stop ------------------------------------------------------------------------------------------------------------


def stops(task: str, reason: str = "") -> Act:
    async def act(door: Supervisor, run: str) -> Any:
        return await door.steer(run, task, reason, stop=True)

    return act


def test_a_stopped_task_has_failed_for_good(tmp_path: Path) -> None:
    """Its call is broken off within a second, the ladder is not climbed, what depends on it is skipped."""
    made = plan(("t1",), ("t2",), ("t3", "t2"))
    report, sent, took = steered(tmp_path, made, model(t2=500), stops("t2", "not needed"))
    assert sent.verdict == "accepted"
    assert took < 4
    stopped, skipped = report.outcomes[1:]
    assert stopped.error is not None
    assert (stopped.status, stopped.error.kind, stopped.attempts) == ("failed", "cancelled", 1)
    assert "not needed" in stopped.error.message
    assert skipped.status == "skipped"
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    again = run_virtual(door.resume(report.run, retry_failed=True))[0]
    assert [each.status for each in again.outcomes] == ["done", "failed", "skipped"]


def test_a_task_that_waits_is_stopped_at_once(tmp_path: Path) -> None:
    """It has no attempt, and what it waits for goes on."""
    report, sent, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), model(t1=9), stops("t2"))
    assert sent.verdict == "accepted"
    assert [(each.status, each.attempts) for each in report.outcomes] == [("done", 1), ("failed", 0)]
    ended = [(e.task, e.at) for e in Home(tmp_path).events(report.run) if e.kind == "task_ended"]
    assert [task for task, _ in ended] == ["t2", "t1"]


@pytest.mark.parametrize(
    ("task", "verdict", "said"),
    [("t9", "refused", "has no task 't9'"), ("t1", "too_late", "t1 has ended (done)")],
)
def test_an_order_that_cannot_be_carried_out_gets_a_verdict_with_the_remedy(
    task: str, verdict: str, said: str, tmp_path: Path
) -> None:
    """Of a task that is not there, and of one that has ended; the run goes on."""

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(3)
        sent = await door.steer(run, task, stop=True)
        door.source.orders(run).send(new_order("stop", task=task))
        return sent

    report, sent, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t2=10), act)
    assert (sent.verdict, report.status) == (verdict, "complete")
    assert said in sent.reason
    recorded = controls(tmp_path, report.run)
    assert [(each.verdict, said in (each.reason or "")) for each in recorded] == [(verdict, True)] * 2


def test_an_order_that_cannot_be_read_is_refused_and_removed(tmp_path: Path) -> None:
    """It is on the record with its problem, and the run goes on."""

    async def act(door: Supervisor, run: str) -> None:
        folder = tmp_path / "runs" / run / "orders"
        folder.mkdir(parents=True)
        (folder / f"{new_order('pause').id}.json").write_text('{"version": 99, "order": "fly"}')

    report, _, _ = steered(tmp_path, plan(("t1",)), model(t1=3), act)
    (refused,) = controls(tmp_path, report.run)
    assert (report.status, refused.order, refused.verdict) == ("complete", "unreadable", "refused")
    assert "upgrade chargehand" in (refused.reason or "")
    assert Home(tmp_path).orders(report.run).pending() == []


def test_an_order_on_the_record_is_not_acted_on_again(tmp_path: Path) -> None:
    """A crash after the commit and before the file was removed leaves both: the file is removed, and that is all."""
    made, says = plan(("t1",), ("t2", "t1")), model(t1=5)
    report, _, _ = steered(tmp_path, made, says, pauses)
    (pause,) = controls(tmp_path, report.run)
    order = new_order("pause").model_copy(update={"id": pause.key.removeprefix("@control/")})
    Home(tmp_path).orders(report.run).send(order)
    assert resume(tmp_path, report.run, says).status == "complete"
    assert [each.order for each in controls(tmp_path, report.run)] == ["pause", "continue"]
    assert Home(tmp_path).orders(report.run).pending() == []


def test_an_order_to_a_run_that_nobody_owns_takes_effect_at_its_next_resume(tmp_path: Path) -> None:
    """The sender hears so; the stopped task is not begun."""
    made, says = plan(("t1",), ("t2", "t1")), model(t1=5)
    report, _, _ = steered(tmp_path, made, says, pauses)
    door = Supervisor(TEAM, model=says, home=tmp_path)
    sent = run_virtual(door.steer(report.run, "t2", stop=True))[0]
    assert sent.verdict is None
    assert f"chargehand resume {report.run}" in sent.reason
    again = resume(tmp_path, report.run, says)
    assert [each.status for each in again.outcomes] == ["done", "failed"]


@pytest.mark.parametrize(("task", "reason"), [("", ""), ("t1", "x" * 100_001), ("t1", "\udcff")])
def test_an_order_that_is_not_one_is_not_sent(task: str, reason: str, tmp_path: Path) -> None:
    """The sender hears what to correct."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",))))[0]
    with pytest.raises(UsageError, match="was not sent"):
        run_virtual(door.steer(report.run, task, reason, stop=True))
    with pytest.raises(UsageError, match="can only stop a task"):
        run_virtual(door.steer(report.run, "t1", "Write less."))


def test_a_run_that_dies_while_it_is_paused_is_listed_and_shown_as_paused(tmp_path: Path) -> None:
    """Its record ends without the end of the session."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), model(t1=5), pauses)
    *left, ended = Home(tmp_path).events(report.run)
    assert ended.kind == "run_ended"
    journal = MemoryJournal()
    asyncio.run(journal.append(left, {}))
    assert summarise(report.run, journal, 0.0).status == "paused"
    assert fold(left).status == "paused"


def test_orders_to_an_ended_run_are_too_late(tmp_path: Path) -> None:
    """Nothing is sent."""
    report = run_virtual(Supervisor(TEAM, model=model(), home=tmp_path).run("Write", plan=plan(("t1",))))[0]
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    for sending in (door.pause(report.run), door.steer(report.run, "t1", stop=True)):
        assert run_virtual(sending)[0].verdict == "too_late"
    assert Home(tmp_path).orders(report.run).pending() == []
