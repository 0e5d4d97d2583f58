"""Orders to a run, from any process: recorded once with a verdict, then acted on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker, tool
from chargehand.cli.show_task import read_task
from chargehand.errors import InvalidAnswer, NoOpenQuestion, UsageError
from chargehand.events import Control, Event, RunEnded
from chargehand.record.home import Home
from chargehand.record.index import summarise
from chargehand.record.mailbox import FolderMailbox, UnreadableOrder
from chargehand.record.memory_journal import MemoryJournal
from chargehand.record.replay import replay
from chargehand.runs.session import Session
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.text.plan_json import parse
from chargehand.trace.number_text import LEAST_SPEEDUP
from chargehand.trace.run_state import fold
from chargehand.values.effect import Question
from chargehand.values.order import new_order
from chargehand.values.plan import Plan
from chargehand.values.report import Report

DONE = {"json": {"summary": "Done.", "output": "done", "confidence": 90}}
LEFT_OUT = [{"task": task, "reason": "It says the same."} for task in ("t2", "t3")]
ANSWER = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t1].", "left_out": LEFT_OUT}}}
TEAM = Team([Worker("clerk", "Writes")])
Act = Callable[[Supervisor, str], Awaitable[Any]]
TWO = ("t1", "t2")


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


def calls(home: Path, run: str) -> list[str]:
    return [event.data["key"] for event in Home(home).events(run) if event.kind == "model_called"]


def model(**seconds: float) -> ScriptedModel:
    """Each task takes so many seconds, or one."""
    slow = [
        {"when": {"task": id, "role": "worker"}, "reply": DONE, "delay_ms": int(s * 1000)} for id, s in seconds.items()
    ]
    return ScriptedModel([ANSWER, *slow, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])


def steered(
    home: Path, made: Plan, says: ScriptedModel, act: Act, *, team: Team = TEAM, **options: Any
) -> tuple[Report, Any, float]:
    """The report of a run, what `act` came to beside it, and the seconds it took."""

    async def main() -> tuple[Report, Any]:
        door = Supervisor(team, model=says, home=home)
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def listen(event: Event) -> None:
            if event.kind == "attempt_started" and not begun.done():
                begun.set_result(event.run)

        async def steer() -> Any:
            run = await begun
            return await act(Supervisor(team, model=says, home=home), run)

        acting = asyncio.ensure_future(steer())
        report = await door.run("Write", plan=made, on_event=listen, **options)
        return report, await acting

    (report, acted), took = run_virtual(main())
    return report, acted, took


def controls(home: Path, run: str) -> list[Control]:
    return [event.body for event in Home(home).events(run) if isinstance(event.body, Control)]


def resume(home: Path, run: str, says: ScriptedModel) -> Report:
    return run_virtual(Supervisor(TEAM, model=says, home=home).resume(run))[0]


# -- what watchers see -----------------------------------------------------------------------------------------------


def test_the_end_of_a_task_is_on_the_record_soon_also_if_nothing_follows_from_it(tmp_path: Path) -> None:
    """Another process sees it within a second, though the next call ends a minute later."""

    async def look(door: Supervisor, run: str) -> list[str | None]:
        await asyncio.sleep(2)
        return [event.task for event in Home(tmp_path).events(run) if event.kind == "task_ended"]

    report, seen, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t2=60), look)
    assert report.status == "complete"
    assert seen == ["t1"]


# -- the mailbox -----------------------------------------------------------------------------------------------------


def test_orders_are_read_in_the_order_they_were_sent(tmp_path: Path) -> None:
    """Also two of one millisecond; what is removed is gone, and removing it again does nothing."""
    mailbox = FolderMailbox(tmp_path / "orders")
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
        (b"x" * 9_000_000, "it is longer than"),
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


def test_a_run_that_has_ended_is_not_paused(tmp_path: Path) -> None:
    """It came too late: nothing else is said, because nothing else was asked."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report, _ = run_virtual(door.run("Write", plan=plan(("t1",))))
    sent, _ = run_virtual(door.pause(report.run))
    assert (sent.verdict, sent.reason) == (
        "too_late",
        f"{report.run} has ended (complete): there is nothing to pause.",
    )


def test_a_pause_that_comes_with_the_last_call_is_over_with_the_run(tmp_path: Path) -> None:
    """Nothing was left to begin: the run has ended, and is not paused when it is reopened."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), model(t1=5), pauses)
    state = Home(tmp_path).state(report.run)
    assert state.paused
    state.apply(Event(report.run, state.seq + 1, 0.0, None, None, RunEnded(status="complete")))
    assert not state.paused


def test_a_run_that_stays_is_continued_where_it_is(tmp_path: Path) -> None:
    """An hour of pause takes nothing from the deadline and from the time of a task. The call in flight is counted, so
    two calls one after the other are no speed-up.
    """

    async def act(door: Supervisor, run: str) -> Any:
        await door.pause(run)
        await asyncio.sleep(3_600)
        assert door.report(run).status == "paused"
        listed = [Home(tmp_path).runs()[0].status]
        sent = await door.unpause(run)
        await asyncio.sleep(1)
        assert [*listed, Home(tmp_path).runs()[0].status] == ["paused", "running"]
        return sent

    made = plan(("t1",), ("t2", "t1"), timeout_s=20)
    report, sent, took = steered(tmp_path, made, model(t1=5, t2=5), act, stay=True, deadline=60)
    assert (report.status, sent.verdict) == ("complete", "accepted")
    assert took > 3_600
    assert report.timing.wall_s == pytest.approx(10, abs=1)
    assert report.timing.speedup < LEAST_SPEEDUP
    view = fold(Home(tmp_path).events(report.run))
    assert view.elapsed_seconds() == pytest.approx(report.timing.wall_s, abs=0.5)


def test_a_paused_run_that_died_is_still_paused(tmp_path: Path) -> None:
    """What the record says of an order holds for the next session: only a person continues it."""
    says = model(t1=5)
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), says, pauses)
    state = Home(tmp_path).state(report.run)
    assert state.paused
    state.status, state.report = "running", None
    from chargehand.runs.report_from_record import report_so_far

    assert report_so_far(Home(tmp_path), state).status == "paused"


def test_ctrl_c_leaves_a_paused_run_paused_and_its_clock_still(tmp_path: Path) -> None:
    """Its process ends with exit code 4, and an hour of pause is in no figure of time, of any reader."""
    sessions: list[Session] = []

    async def act(door: Supervisor, run: str) -> Any:
        await door.pause(run)
        await asyncio.sleep(3_600)
        shown = door.report(run)
        sessions[0].interrupt()
        return shown

    made, says = plan(("t1",), ("t2", "t1")), model(t1=5)
    report, shown, took = steered(tmp_path, made, says, act, stay=True, on_session=sessions.append)
    assert took > 3_600
    assert (report.status, report.exit_code) == ("paused", 4)
    assert report.timing.wall_s == pytest.approx(shown.timing.wall_s, abs=0.6) == pytest.approx(5, abs=0.6)
    assert Supervisor(home=tmp_path).report(report.run).timing == report.timing
    assert Home(tmp_path).runs()[0].status == "paused"
    view = fold(Home(tmp_path).events(report.run))
    assert view.elapsed_seconds() == pytest.approx(report.timing.wall_s, abs=0.1)
    again = resume(tmp_path, report.run, says)
    assert (again.status, again.timing.wall_s) == ("complete", pytest.approx(6, abs=0.6))


def test_a_call_that_waits_to_be_sent_again_is_not_broken_off_by_a_pause(tmp_path: Path) -> None:
    """The provider has refused it: it has used nothing, and the clock of the paused run is still."""
    busy = {"when": {"task": "t1"}, "reply": {"error": {"status": 429, "retry_after": 20}}, "times": 1}
    says = ScriptedModel([ANSWER, busy, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])
    report, _, _ = steered(tmp_path, plan(("t1",)), says, pauses)
    assert (report.status, report.usage.tokens, report.notes) == ("paused", 0, ())
    again = resume(tmp_path, report.run, says)
    assert (again.status, again.usage.calls) == ("complete", 1)

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(3)
        await door.pause(run)
        await asyncio.sleep(3_600)
        shown, view = door.report(run), fold(Home(tmp_path).events(run))
        later = [(view.started or 0.0) + seconds for seconds in (100, 3_600)]
        seconds = [view.elapsed_seconds(at) for at in later]
        assert all(view.tasks["t1"].worked_seconds(view.counted_until(at)) < 5 for at in later)
        await door.unpause(run)
        return shown, view.is_still, seconds

    says = ScriptedModel([ANSWER, busy, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])
    report, (shown, is_still, seconds), _ = steered(tmp_path, plan(("t1",)), says, act, stay=True)
    assert (shown.status, shown.usage.tokens, shown.notes) == ("paused", 0, ())
    assert is_still
    assert seconds[0] == seconds[1] < 5
    assert (report.status, report.usage.calls) == ("complete", 1)


def test_a_call_that_waits_for_its_turn_to_be_sent_again_is_not_in_flight(tmp_path: Path) -> None:
    """After a refusal calls are sent again one by one: the clock of a paused run is still while others wait."""
    busy = [{"when": {"task": id}, "reply": {"error": {"status": 429, "retry_after": 5}}, "times": 1} for id in TWO]
    says = ScriptedModel([ANSWER, *busy, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 30_000}])

    async def act(door: Supervisor, run: str) -> list[Any]:
        await asyncio.sleep(10)
        await door.pause(run)
        found: list[Any] = []
        for seconds in (10, 40, 3_600):
            await asyncio.sleep(seconds)
            view = fold(Home(tmp_path).events(run))
            later = [view.elapsed_seconds((view.last_event or 0.0) + more) for more in (60, 120)]
            found.append((view.calls_in_flight, later[0] == later[1], door.report(run).status))
        await door.unpause(run)
        return found

    report, found, _ = steered(tmp_path, plan(*((id,) for id in TWO)), says, act, stay=True)
    assert found == [(1, False, "paused"), (0, True, "paused"), (0, True, "paused")]
    assert report.status == "complete"
    assert report.timing.wall_s < 100


def test_the_time_shown_never_jumps_while_a_question_is_open_and_orders_come(tmp_path: Path) -> None:
    """Paused, continued, refused: nothing runs, so no reader sees time pass."""

    async def person(question: Question, wrong: str | None) -> str:
        await asyncio.sleep(1_000)
        return "Signed by all of us."

    async def act(door: Supervisor, run: str) -> list[float]:
        found: list[float] = []
        sends = (door.pause, lambda run: door.steer(run, "t9", stop=True), door.unpause, door.pause, door.unpause)
        await asyncio.sleep(60)
        for send in sends:
            await send(run)
            await asyncio.sleep(60)
            view = fold(Home(tmp_path).events(run))
            found += [door.report(run).timing.wall_s, view.elapsed_seconds((view.last_event or 0.0) + 60)]
        return found

    report, found, _ = steered(tmp_path, ASKS, model(), act, team=MIXED, person=person, stay=True)
    assert found == pytest.approx([1] * 10, abs=0.1)
    assert report.timing.wall_s == pytest.approx(2, abs=0.2)


# -- stop ------------------------------------------------------------------------------------------------------------


def stops(task: str, reason: str = "", after: float = 0.0) -> Act:
    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(after)
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
    # The call that was broken off counts until then, for every reader.
    assert 0 < stopped.usage.seconds < 4
    view = fold(Home(tmp_path).events(report.run))
    assert view.tasks["t2"].worked_seconds(1e12) == stopped.usage.seconds
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
    assert sent.reason
    again = resume(tmp_path, report.run, says)
    assert [each.status for each in again.outcomes] == ["done", "failed"]


@pytest.mark.parametrize(("task", "reason"), [("", ""), ("t1", "x" * 1_000_001), ("t1", "\udcff")])
def test_an_order_that_is_not_one_is_not_sent(task: str, reason: str, tmp_path: Path) -> None:
    """The sender hears what to correct."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",))))[0]
    with pytest.raises(UsageError, match="was not sent"):
        run_virtual(door.steer(report.run, task, reason, stop=True))
    with pytest.raises(UsageError, match="nothing to order"):
        run_virtual(door.steer(report.run, "t1", " "))


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
    late = run_virtual(door.steer(report.run, "t1", "Use euros."))[0]
    assert "estart t1" in late.reason
    assert run_virtual(door.steer(report.run, "t9", "Use euros."))[0].verdict == "refused"
    assert Home(tmp_path).orders(report.run).pending() == []


# -- words to a worker -----------------------------------------------------------------------------------------------

SAY = "Use euros."
LOOK = {"tool_calls": [{"name": "look", "arguments": {}}]}


@tool(effect="read")
def look() -> str:
    """Looks something up."""
    return "a figure"


READER = Team([Worker("clerk", "Writes", tools=[look])])
LOOKS = {"when": {"role": "worker"}, "reply": LOOK, "delay_ms": 1_000, "times": 1}
HEARD = {"when": {"role": "worker", "contains": SAY}, "reply": DONE}
NOT_HEARD = {"when": {"role": "worker"}, "reply": {"json": {"summary": "In dollars.", "output": "dollars"}}}


def tells(task: str, text: str = SAY) -> Act:
    async def act(door: Supervisor, run: str) -> Any:
        return await door.steer(run, task, text)

    return act


def words_at(home: Path, run: str) -> dict[str, list[str]]:
    """Call -> the words that it came with."""
    decided = [event.data for event in Home(home).events(run) if event.data.get("decision") == "words"]
    return {each["key"].removesuffix("/words"): list(each["value"].values()) for each in decided}


def test_words_come_before_the_next_model_call_of_the_worker(tmp_path: Path) -> None:
    """On the record with the key of that call; the order is accepted with it."""
    says = ScriptedModel([LOOKS, HEARD, NOT_HEARD])
    report, sent, _ = steered(tmp_path, plan(("t1",)), says, tells("t1"), team=READER)
    assert (sent.verdict, report.outcomes[0].summary) == ("accepted", "Done.")
    assert words_at(tmp_path, report.run) == {"t1/1/model/2": [SAY]}
    (control,) = controls(tmp_path, report.run)
    assert control.value == {"text": SAY, "call": "t1/1/model/2"}
    assert Home(tmp_path).orders(report.run).pending() == []


def test_a_rerun_drops_the_words_of_a_person(tmp_path: Path) -> None:
    """They were for that run; the call that had them is made again without."""
    says = ScriptedModel([LOOKS, HEARD, NOT_HEARD])
    report, _, _ = steered(tmp_path, plan(("t1",)), says, tells("t1"), team=READER)
    again = run_virtual(Supervisor(READER, model=says, home=tmp_path).rerun(report.run))[0]
    assert again.outcomes[0].summary == "In dollars."
    assert calls(tmp_path, again.run) == ["t1/1/model/2"]


def test_words_without_a_further_call_wait_for_the_next_attempt(tmp_path: Path) -> None:
    """And an attempt after that has them too: it begins without knowing what was said before."""
    failing = {"when": {"role": "worker"}, "reply": {"text": ""}, "delay_ms": 1_000, "times": 4}
    says = ScriptedModel([failing, {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Go."}}}, HEARD])
    report, sent, _ = steered(tmp_path, plan(("t1",)), says, tells("t1"))
    assert sent.verdict == "accepted"
    assert words_at(tmp_path, report.run) == {"t1/1/model/2": [SAY], "t1/2/model/1": [SAY], "t1/3/model/1": [SAY]}
    assert report.outcomes[0].ok


def test_words_to_a_worker_that_makes_no_further_call_are_too_late(tmp_path: Path) -> None:
    """The verdict is on the record when the task has ended, and nothing is left in the mailbox."""
    report, sent, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t1=2, t2=9), tells("t1"))
    assert sent.verdict == "too_late"
    assert "t1 has ended (done)" in sent.reason
    assert "estart t1" in sent.reason
    assert Home(tmp_path).orders(report.run).pending() == []


def test_words_to_a_task_that_is_stopped_before_its_next_call_have_one_verdict(tmp_path: Path) -> None:
    """They are too late when the task is stopped, and not once more when it has ended."""

    made, says = plan(("t1",), ("t2", "t1"), ("t3", "t2")), model(t1=5)
    report, _, _ = steered(tmp_path, made, says, pauses)
    for order in (new_order("tell", task="t3", text=SAY), new_order("stop", task="t3")):
        Home(tmp_path).orders(report.run).send(order)
    resume(tmp_path, report.run, says)
    verdicts = [(each.order, each.verdict) for each in controls(tmp_path, report.run)]
    words = [verdict for verdict in verdicts if verdict[0] == "tell"]
    assert words == [("tell", "too_late")]


def test_words_that_a_call_of_minutes_keeps_waiting_are_reported_as_sent(tmp_path: Path) -> None:
    """The sender does not wait for the call."""
    says = ScriptedModel([{**LOOKS, "delay_ms": 60_000}, HEARD])
    report, sent, _ = steered(tmp_path, plan(("t1",)), says, tells("t1"), team=READER)
    assert sent.verdict is None
    assert "t1" in sent.reason
    assert [each.verdict for each in controls(tmp_path, report.run)] == ["accepted"]


def test_a_resumed_run_keeps_the_words(tmp_path: Path) -> None:
    """The call that had them was cut off: it is sent again with them, and they come once."""
    says = ScriptedModel([LOOKS, {**HEARD, "delay_ms": 900_000, "times": 1}, HEARD])

    async def act(door: Supervisor, run: str) -> Any:
        await door.steer(run, "t1", SAY)
        await asyncio.sleep(2)
        return await door.cancel(run)

    report, _, _ = steered(tmp_path, plan(("t1",)), says, act, team=READER)
    assert report.status == "cancelled"
    again = run_virtual(Supervisor(READER, model=says, home=tmp_path).resume(report.run))[0]
    assert again.outcomes[0].summary == "Done."
    assert words_at(tmp_path, report.run) == {"t1/1/model/2": [SAY]}
    assert calls(tmp_path, report.run) == ["t1/1/model/1", "t1/1/model/2", "t1/1/model/2"]


def test_a_call_that_was_sent_is_sent_again_without_new_words(tmp_path: Path) -> None:
    """Its repeat is the same to the byte. The words that came in between are for the call after it."""
    says = ScriptedModel([{**LOOKS, "delay_ms": 900_000}, {**LOOKS, "delay_ms": 0}, HEARD])

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(1)
        return await door.cancel(run)

    report, _, _ = steered(tmp_path, plan(("t1",)), says, act, team=READER)
    door = Supervisor(READER, model=says, home=tmp_path)
    sent = run_virtual(door.steer(report.run, "t1", SAY))[0]
    assert sent.verdict is None
    again = run_virtual(door.resume(report.run))[0]
    assert again.outcomes[0].summary == "Done."
    assert words_at(tmp_path, report.run) == {"t1/1/model/2": [SAY]}


def test_every_member_of_a_best_of_gets_the_words(tmp_path: Path) -> None:
    """Each at its next call."""
    says = ScriptedModel([{**LOOKS, "times": 2}, HEARD])
    report, sent, _ = steered(tmp_path, plan(("t1",), best_of=2), says, tells("t1"), team=READER)
    assert (sent.verdict, report.outcomes[0].ok) == ("accepted", True)
    assert words_at(tmp_path, report.run) == {"t1/1/b1/model/2": [SAY], "t1/1/b2/model/2": [SAY]}


DESK = Team([Worker("clerk", "Writes", tools=[look])], name="desk")
OFFICE = Team([Worker("clerk", "Delegates", kind="delegate", team=DESK), Worker("boss", "Decides", kind="human")])


def test_words_reach_a_worker_of_a_nested_team_by_its_path(tmp_path: Path) -> None:
    """The delegate itself makes no call: it is refused, with the tasks that do."""
    inner = plan(("t2",)).to_json()
    says = ScriptedModel([{"when": {"role": "planner"}, "reply": {"json": inner}}, {**LOOKS, "delay_ms": 3_000}, HEARD])

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(0.5)
        return await door.steer(run, "t1", SAY), await door.steer(run, "t1/1/t2", SAY)

    report, (refused, sent), _ = steered(tmp_path, plan(("t1",)), says, act, team=OFFICE)
    assert (refused.verdict, sent.verdict) == ("refused", "accepted")
    assert "name a task of it, such as t1/1/t2" in refused.reason
    assert words_at(tmp_path, report.run) == {"t1/1/t2/1/model/2": [SAY]}
    assert report.outcomes[0].ok


# -- restart ---------------------------------------------------------------------------------------------------------


def restarts(task: str, after: float = 0.0, **more: Any) -> Act:
    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(after)
        return await door.steer(run, task, restart=True, **more)

    return act


def tokens_settled(home: Path, run: str) -> int:
    return sum(event.data["tokens"] for event in Home(home).events(run) if event.kind == "budget_settled")


CHAIN = plan(("t1",), ("t2", "t1"), ("t3",))


def test_a_live_run_restarts_a_task_and_all_that_rests_on_it_in_the_same_process(tmp_path: Path) -> None:
    """Attempts count on, nothing else is repeated, and what was used before stays in the report."""
    report, sent, _ = steered(tmp_path, CHAIN, model(t2=4, t3=9), restarts("t1", after=2))
    assert (sent.verdict, report.status) == ("accepted", "complete")
    made = calls(tmp_path, report.run)
    assert made == ["t1/1/model/1", "t3/1/model/1", "t2/1/model/1", "t1/2/model/1", "t2/2/model/1", "@synthesis/1"]
    assert report.usage.input_tokens + report.usage.output_tokens == tokens_settled(tmp_path, report.run)
    assert report.usage.calls == 6
    assert [each.attempts for each in report.outcomes] == [2, 2, 1]
    assert [each.tries for each in fold(Home(tmp_path).events(report.run)).tasks.values()] == [2, 2, 1]
    kinds = [event.kind for event in Home(tmp_path).events(report.run)]
    assert (kinds.count("run_started"), kinds.count("run_ended")) == (2, 1)


def test_a_restarted_task_is_broken_off_and_calls_of_other_tasks_are_finished(tmp_path: Path) -> None:
    """Nothing new begins in between."""
    report, sent, took = steered(tmp_path, plan(("t1",), ("t2",)), model(t1=500, t2=4), restarts("t1"))
    assert sent.verdict == "accepted"
    assert 500 < took < 508
    assert calls(tmp_path, report.run)[:3] == ["t1/1/model/1", "t2/1/model/1", "t1/2/model/1"]
    assert [each.status for each in report.outcomes] == ["done", "done"]
    assert report.usage.input_tokens + report.usage.output_tokens == tokens_settled(tmp_path, report.run)


def test_a_task_is_restarted_with_another_instruction_and_model(tmp_path: Path) -> None:
    """Of that task alone: the others keep theirs. The plan of the report has the instruction."""
    heard = {"when": {"role": "worker", "contains": "in French"}, "reply": {"text": "Bonjour, chers clients de Lyon."}}
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"replies": [heard]}))
    act = restarts("t1", instruction="Write it in French.", model=f"scripted:{other}")
    report, sent, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t1=4, t2=4), act)
    assert sent.verdict == "accepted"
    assert "Bonjour" in report.outcomes[0].summary
    assert report.plan is not None
    assert report.plan.tasks[0].instruction == "Write it in French."
    started = [e for e in Home(tmp_path).events(report.run) if e.kind == "attempt_started"]
    models = {(e.task, e.attempt): e.data["model"] for e in started}
    assert models["t1", 2] == f"scripted:{other}" != models["t1", 1] == models["t2", 1]
    assert fold(Home(tmp_path).events(report.run)).tasks["t1"].instruction == "Write it in French."


def test_the_file_of_a_model_is_found_from_the_folder_of_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run may be resumed in another folder."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",))))[0]
    heard = {"when": {"role": "worker"}, "reply": {"text": "Bonjour, chers clients de Lyon."}}
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "other.json").write_text(json.dumps({"replies": [heard]}))
    monkeypatch.chdir(tmp_path / "here")
    run_virtual(door.steer(report.run, "t1", restart=True, model="scripted:other.json"))
    monkeypatch.chdir(tmp_path)
    again = run_virtual(door.resume(report.run))[0]
    assert again.outcomes[0].usage.models[-1] == f"scripted:{tmp_path / 'here' / 'other.json'}"


def test_a_finished_run_is_reopened_by_a_restart(tmp_path: Path) -> None:
    """`resume` carries it out; without one the run stays as it ended."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    first = run_virtual(door.run("Write", plan=CHAIN))[0]
    sent = run_virtual(door.steer(first.run, "t2", restart=True))[0]
    assert sent.verdict is None
    assert sent.reason
    again = run_virtual(door.resume(first.run))[0]
    assert (again.status, again.usage.calls) == ("complete", 6)
    assert calls(tmp_path, first.run)[4:] == ["t2/2/model/1", "@synthesis/1"]
    assert run_virtual(door.resume(first.run))[0] == again


def test_a_restart_takes_back_a_stop(tmp_path: Path) -> None:
    """And nothing else does. A stop after it holds."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t2=500), stops("t2"))
    assert report.outcomes[1].error is not None
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    run_virtual(door.steer(report.run, "t2", restart=True))
    again = run_virtual(door.resume(report.run))[0]
    assert [each.status for each in again.outcomes] == ["done", "done"]
    run_virtual(door.steer(report.run, "t2", restart=True))
    Home(tmp_path).orders(report.run).send(new_order("stop", task="t2"))
    assert [each.status for each in run_virtual(door.resume(report.run))[0].outcomes] == ["done", "failed"]


def seconds_everywhere(home: Path, report: Report) -> list[float]:
    """The seconds of each task in the report, which every reader of the record counts as well."""
    view = fold(Home(home).events(report.run))
    found = [each.usage.seconds for each in report.outcomes]
    assert [view.tasks[each.task].worked_seconds(1e12) for each in report.outcomes] == pytest.approx(found)
    assert [view.tasks[each.task].tries for each in report.outcomes] == [each.attempts for each in report.outcomes]
    return found


def test_the_time_of_an_attempt_that_was_broken_off_stays_with_its_task(tmp_path: Path) -> None:
    """By a restart while it ran, or by a stop that a restart takes back later."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t1=20, t2=4), restarts("t1", after=3))
    first, second = seconds_everywhere(tmp_path, report)
    assert 20 + 3 <= first < 20 + 5
    assert second == pytest.approx(4)
    assert report.usage.seconds == pytest.approx(first + second)
    stopped, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t2=500), stops("t2"))
    before = stopped.outcomes[1].usage.seconds
    assert before > 0
    door = Supervisor(TEAM, model=model(t2=5), home=tmp_path)
    run_virtual(door.steer(stopped.run, "t2", restart=True))
    again = run_virtual(door.resume(stopped.run))[0]
    assert seconds_everywhere(tmp_path, again)[1] == pytest.approx(before + 5)


def test_a_stopped_task_keeps_its_attempt_and_its_time_when_a_task_before_it_is_restarted(tmp_path: Path) -> None:
    """It is not tried again, and nothing that it did is forgotten."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2", "t1")), model(t2=500), stops("t2", after=2))
    before = report.outcomes[1]
    assert (before.status, before.attempts) == ("failed", 1)
    assert before.usage.seconds > 0
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    run_virtual(door.steer(report.run, "t1", restart=True))
    again = run_virtual(door.resume(report.run))[0]
    assert [(each.status, each.attempts) for each in again.outcomes] == [("done", 2), ("failed", 1)]
    assert seconds_everywhere(tmp_path, again)[1] == pytest.approx(before.usage.seconds)
    detail = read_task(Home(tmp_path), report.run, "t2")
    assert [each["seconds"] for each in detail["attempts"]] == [pytest.approx(before.usage.seconds)]


def test_a_wait_to_be_sent_again_is_not_part_of_the_time_of_a_task(tmp_path: Path) -> None:
    """Neither when its call is broken off during the wait, nor while others have their turn after it."""
    busy = {"when": {"task": "t1"}, "reply": {"error": {"status": 429, "retry_after": 20}}, "times": 1}
    says = ScriptedModel([ANSWER, busy, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), says, stops("t1", after=5))
    assert seconds_everywhere(tmp_path, report)[0] < 1
    says = ScriptedModel([ANSWER, busy, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 4_000}])
    report, _, _ = steered(tmp_path, plan(("t1",)), says, restarts("t1", after=22))
    assert 4 <= seconds_everywhere(tmp_path, report)[0] < 8


def test_a_call_that_a_killed_process_left_counts_until_its_last_event(tmp_path: Path) -> None:
    """The time of its task only grows, over the kill and the resume."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t1=3, t2=10), pauses)
    events = list(Home(tmp_path).events(report.run))
    assert report.status == "paused"
    end = next(n for n, each in enumerate(events) if each.kind == "task_ended")
    seen = 0.0
    for number in range(1, len(events) + 1):
        view = fold(events[:number])
        if (task := view.tasks.get("t2")) is not None:
            now = task.worked_seconds(events[number - 1].at)
            assert now >= seen
            seen = now
    journal = MemoryJournal()
    asyncio.run(journal.append(events[: end + 1], {}))
    state = replay(journal.events(), report.run)
    assert state.earlier_usage()["t2"].seconds == pytest.approx(3, abs=0.2)


def test_the_same_calls_count_in_all_times_of_a_report(tmp_path: Path) -> None:
    """After a restart as well: those of the answer that is written again too, and what calls waited."""
    slow = {"when": {"role": "synthesizer"}, "reply": ANSWER["reply"], "delay_ms": 3_000}
    says = ScriptedModel([slow, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 1_000}])
    door = Supervisor(TEAM, model=says, home=tmp_path)
    first = run_virtual(door.run("Write", plan=CHAIN, max_concurrent=1))[0]
    run_virtual(door.steer(first.run, "t2", restart=True))
    again = run_virtual(door.resume(first.run))[0]
    assert again.usage.seconds == again.timing.sequential_s == pytest.approx(4 * 1 + 2 * 3)
    assert again.timing.wall_s == pytest.approx(again.timing.sequential_s, abs=0.5)
    assert again.timing.speedup == pytest.approx(1, abs=0.1)
    assert again.usage.waiting_s == again.timing.waiting_s
    assert again.usage.waiting_s == pytest.approx(sum(each.usage.waiting_s for each in again.outcomes))
    assert again.timing.critical_path_s <= again.timing.sequential_s


def test_a_restart_on_the_record_is_carried_out_after_a_crash(tmp_path: Path) -> None:
    """The session died between the verdict and the reopening: the next one reopens, once."""
    door = Supervisor(TEAM, model=model(t1=5), home=tmp_path)
    report, _, _ = steered(tmp_path, CHAIN, model(t1=5), pauses)
    control = Control(key=new_order("restart").key, order="restart", by="x", sent_at=0.0, verdict="accepted", value={})

    async def die() -> None:
        journal = Home(tmp_path).open(report.run)
        seq = Home(tmp_path).last_event(report.run) + 1
        await journal.append([Event(report.run, seq, 0.0, "t1", None, control)], {})
        journal.close()

    asyncio.run(die())
    again = run_virtual(door.resume(report.run))[0]
    assert again.status == "complete"
    assert calls(tmp_path, report.run).count("t1/2/model/1") == 1
    assert "t1/3/model/1" not in calls(tmp_path, report.run)


@pytest.mark.parametrize(
    ("task", "more", "said"),
    [
        ("t9", {}, "has no task 't9'"),
        ("t1", {"model": "nobody:x"}, "nobody"),
        ("t1/1/t2", {}, "has no task"),
    ],
)
def test_a_restart_that_cannot_be_done_is_refused_and_the_run_continues(
    task: str, more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Nothing is broken off for it."""
    report, sent, _ = steered(tmp_path, plan(("t1",)), model(t1=4), restarts(task, **more))
    assert (sent.verdict, report.status) == ("refused", "complete")
    assert said in sent.reason
    assert calls(tmp_path, report.run) == ["t1/1/model/1"]


def test_a_restarted_human_task_asks_again(tmp_path: Path) -> None:
    """The open question of the attempt before is not asked any more."""
    office = Team([Worker("clerk", "Decides", kind="human")])
    door = Supervisor(office, home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",))))[0]
    assert [question.id for question in door.questions(report.run)] == ["t1"]
    run_virtual(door.steer(report.run, "t1", restart=True, instruction="Say yes or no."))
    again = run_virtual(door.resume(report.run))[0]
    assert again.status == "waiting"
    (question,) = door.questions(report.run)
    assert "Say yes or no." in question.prompt


def test_a_rerun_with_the_answer_of_a_person_asks_nobody(tmp_path: Path) -> None:
    """The record says where the answer is from, and the task counts as reused, as one whose calls are."""
    office = Team([Worker("clerk", "Decides", kind="human")])
    door = Supervisor(office, model=model(), home=tmp_path)
    first = run_virtual(door.run("Write", plan=plan(("t1",))))[0]
    run_virtual(door.answer(first.run, "t1", "Yes, as planned."))
    done = run_virtual(door.resume(first.run))[0]
    assert [each.status for each in done.outcomes] == ["done"]
    again = run_virtual(door.rerun(first.run))[0]
    for report, source in ((done, None), (again, first.run)):
        events = list(Home(tmp_path).events(report.run))
        assert [event.data.get("source") for event in events if event.kind == "question_asked"] == [source]
        assert fold(events).tasks["t1"].reused == (source is not None)


# -- answers ---------------------------------------------------------------------------------------------------------

MIXED = Team([Worker("boss", "Decides", kind="human"), Worker("clerk", "Writes")])
ASKS = parse(
    {
        "goal": "Letters",
        "tasks": [
            {**task.to_json(), "worker": "boss" if task.id == "t1" else "clerk"}
            for task in plan(("t1",), ("t2",), ("t3", "t1")).tasks
        ],
    }
)


def test_an_answer_reaches_a_run_of_another_process(tmp_path: Path) -> None:
    """What waited for it begins while other tasks are under way. The same again is fine, another one is refused."""

    async def act(door: Supervisor, run: str) -> list[Any]:
        await asyncio.sleep(1)
        said: list[Any] = [await door.answer(run, "t1", "Yes, to all of them."), door.questions(run)]
        said.append(await door.answer(run, "t1", "Yes, to all of them."))
        for question, words in (("t1", "No."), ("t7", "Yes.")):
            with pytest.raises(NoOpenQuestion) as refused:
                await door.answer(run, question, words)
            said.append(str(refused.value))
        return said

    report, said, took = steered(tmp_path, ASKS, model(t2=20), act, team=MIXED)
    assert said[:3] == [(), (), ()]
    assert "answered already, and the first answer counts: Yes, to all of them." in said[3]
    assert "asks no question 't7'" in said[4]
    assert (report.status, report.outcomes[0].output) == ("complete", "Yes, to all of them.")
    assert took < 22
    answered = [event.body for event in Home(tmp_path).events(report.run) if event.kind == "question_answered"]
    assert [(each.answer, each.by) for each in answered] == [("Yes, to all of them.", "order")]


@pytest.mark.parametrize(("words", "status"), [("approve", "complete"), ("perhaps", "waiting")])
def test_who_is_told_of_a_question_can_answer_it_in_the_same_stream(words: str, status: str, tmp_path: Path) -> None:
    """The question is on the record with its event. The run parks only if no answer to it can be used."""

    async def main() -> Report:
        door = Supervisor(TEAM, model=model(), home=tmp_path)
        async for event in door.stream("Write", plan=plan(("t1",)), approve=True):
            if event.kind == "question_asked":
                door.source.orders(event.run).send(new_order("answer", question="plan", text="perhaps"))
                with contextlib.suppress(InvalidAnswer):
                    await door.answer(event.run, event.data["question"]["id"], words)
        return door.report("last")

    assert run_virtual(main())[0].status == status


def test_an_answer_may_be_data(tmp_path: Path) -> None:
    """An edited plan as it is in Python, without a detour over its text."""
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report = door.run_sync("Write", plan=plan(("t1",), ("t2",)), approve=True)
    assert asyncio.run(door.answer(report.run, "plan", plan(("t1",)).to_json())) == ()
    assert [each.task for each in asyncio.run(door.resume(report.run)).outcomes] == ["t1"]


def test_of_two_answers_at_once_the_first_counts(tmp_path: Path) -> None:
    """The owner decides: the other one is refused with what is recorded."""

    async def act(door: Supervisor, run: str) -> list[Any]:
        await asyncio.sleep(1)
        return await asyncio.gather(*(door.answer(run, "t1", f"Letter {n}.") for n in (1, 2)), return_exceptions=True)

    report, (first, second), _ = steered(tmp_path, ASKS, model(t2=20), act, team=MIXED)
    assert first == ()
    assert isinstance(second, NoOpenQuestion)
    assert "counts: Letter 1." in str(second)
    assert report.outcomes[0].output == "Letter 1."
    assert [each.verdict for each in controls(tmp_path, report.run)] == ["accepted", "refused"]


def test_an_answer_from_elsewhere_takes_the_question_from_the_terminal(tmp_path: Path) -> None:
    """The person there is not asked any more, and the time of waiting is not the run's."""
    asked: list[str] = []

    async def person(question: Question, wrong: str | None) -> str:
        asked.append(question.id)
        try:
            await asyncio.sleep(1_000_000)
        except asyncio.CancelledError:
            asked.append("not any more")
            raise
        return "Too late."

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(3_600)
        return await door.answer(run, "t1", "Yes.")

    report, _, took = steered(tmp_path, ASKS, model(t2=20), act, team=MIXED, person=person)
    assert (report.status, report.outcomes[0].output) == ("complete", "Yes.")
    assert asked == ["t1", "not any more"]
    assert took > 3_600
    assert report.timing.wall_s < 30


def test_an_answer_that_cannot_be_used_is_refused_by_the_owner_too(tmp_path: Path) -> None:
    """One that was sent by another program: the run continues to wait for another."""

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(1)
        with pytest.raises(InvalidAnswer):
            await door.answer(run, "t1", " ")
        door.source.orders(run).send(new_order("answer", question="t1", text=" "))
        await asyncio.sleep(1)
        return await door.answer(run, "t1", "Yes.")

    report, _, _ = steered(tmp_path, ASKS, model(t2=20), act, team=MIXED)
    assert report.status == "complete"
    assert [each.verdict for each in controls(tmp_path, report.run)] == ["refused", "accepted"]


def test_a_restart_during_a_pause_takes_nothing_from_the_deadline(tmp_path: Path) -> None:
    """The pause is over for the first session and lasts for the second: neither part of it is running time."""

    async def act(door: Supervisor, run: str) -> list[Any]:
        await door.pause(run)
        await asyncio.sleep(3_600)
        found: list[Any] = []
        for task in ("t9", "t2"):
            sent = await door.steer(run, task, restart=True)
            await asyncio.sleep(3_600)
            report, view = door.report(run), fold(Home(tmp_path).events(run))
            seconds = report.timing.wall_s, view.elapsed_seconds((view.last_event or 0.0) + 60)
            found.append((sent.verdict, report.status, view.status, *seconds))
        await door.unpause(run)
        return found

    report, found, _ = steered(tmp_path, CHAIN, model(t1=5, t2=5, t3=5), act, stay=True, deadline=30)
    assert [each[:3] for each in found] == [("refused", "paused", "paused"), ("accepted", "paused", "paused")]
    assert [seconds for each in found for seconds in each[3:]] == pytest.approx([5] * 4, abs=0.6)
    assert report.status == "complete"
    assert report.timing.wall_s == pytest.approx(10, abs=1)
    assert fold(Home(tmp_path).events(report.run)).elapsed_seconds() == pytest.approx(report.timing.wall_s, abs=0.5)


def test_a_restart_during_a_question_takes_nothing_from_the_deadline(tmp_path: Path) -> None:
    """The time in which the run only waited for the person is over for the session that ends."""

    async def person(question: Question, wrong: str | None) -> str:
        await asyncio.sleep(100)
        return "Signed by all of us."

    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(60)
        return await door.steer(run, "t1", restart=True)

    report, sent, took = steered(tmp_path, ASKS, model(), act, team=MIXED, person=person, stay=True, deadline=30)
    assert (sent.verdict, report.status) == ("accepted", "complete")
    assert took > 160
    assert report.timing.wall_s < 5
    assert fold(Home(tmp_path).events(report.run)).elapsed_seconds() == pytest.approx(report.timing.wall_s, abs=0.5)


ESCALATES = {
    "when": {"task": "t1", "role": "worker"},
    "reply": {
        "tool_calls": [
            {
                "name": "escalate",
                "arguments": {"reason": "ambiguous_input", "message": "Which currency?", "partial": None},
            }
        ]
    },
}


@pytest.mark.parametrize(("made", "team", "options"), [(CHAIN, TEAM, {"ask": True}), (ASKS, MIXED, {})])
def test_a_task_that_asks_is_stopped_at_the_next_resume(
    made: Plan, team: Team, options: dict[str, Any], tmp_path: Path
) -> None:
    """Before its question is asked again, which is closed: it cannot be answered any more."""
    answer = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t3].", "left_out": LEFT_OUT[:1]}}}
    says = ScriptedModel([answer, ESCALATES, {"when": {"role": "worker"}, "reply": DONE}])
    door = Supervisor(team, model=says, home=tmp_path)
    report = run_virtual(door.run("Write", plan=made, **options))[0]
    (asked,) = door.questions(report.run)
    assert report.status == "waiting"
    run_virtual(door.steer(report.run, "t1", "no need", stop=True))
    again = run_virtual(door.resume(report.run))[0]
    assert again.status == "partial"
    assert again.outcomes[0].error is not None
    assert again.outcomes[0].error.kind == "cancelled"
    assert not Home(tmp_path).state(report.run).open_questions()
    assert not fold(Home(tmp_path).events(report.run)).questions
    with pytest.raises(NoOpenQuestion):
        run_virtual(door.answer(report.run, asked.id, "euros"))


def test_the_question_of_a_stopped_task_is_closed_while_the_run_continues(tmp_path: Path) -> None:
    """Its answer is refused; the questions of other tasks stay open."""

    async def act(door: Supervisor, run: str) -> list[Any]:
        await asyncio.sleep(1)
        sent = await door.steer(run, "t1", stop=True)
        await asyncio.sleep(1)
        Home(tmp_path).orders(run).send(new_order("answer", question="t1", text="yes"))
        await asyncio.sleep(1)
        return [sent.verdict, [question.id for question in door.questions(run)]]

    report, found, _ = steered(tmp_path, ASKS, model(t2=60), act, team=MIXED)
    assert found == ["accepted", []]
    assert [each.verdict for each in controls(tmp_path, report.run)] == ["accepted", "refused"]


# -- more budget and time --------------------------------------------------------------------------------------------


def adds(after: float = 0.0, **more: Any) -> Act:
    async def act(door: Supervisor, run: str) -> Any:
        await asyncio.sleep(after)
        return await door.top_up(run, **more)

    return act


WIDE = plan(*((f"t{number}",) for number in range(1, 7)))


def test_calls_that_wait_for_room_continue_when_tokens_are_added(tmp_path: Path) -> None:
    """At once, and not when a call in flight frees enough."""
    slow = {f"t{number}": 100.0 for number in range(1, 7)}
    short = steered(tmp_path / "short", WIDE, model(**slow), adds(tokens=1), tokens=9_000)
    report, sent, took = steered(tmp_path, WIDE, model(**slow), adds(after=1, tokens=100_000), tokens=9_000)
    assert sent.verdict == "accepted"
    assert [each.status for each in report.outcomes] == ["done"] * 6
    assert took < 110 < short[2]
    assert Home(tmp_path).state(report.run).start["request"]["budget"]["tokens"] == 109_000


def test_tasks_that_ended_for_lack_of_tokens_run_again_when_some_are_added(tmp_path: Path) -> None:
    """In the same process; what is done is not repeated."""
    tasks = plan(("t1",), ("t2", "t1"), ("t3",)).tasks
    long = tasks[1].model_copy(update={"instruction": "Write a letter about all of this: " + "word " * 9_000})
    made = Plan(goal="Letters", tasks=(tasks[0], long, tasks[2]))
    report, sent, _ = steered(tmp_path, made, model(t3=60), adds(after=10, tokens=100_000), tokens=9_000)
    assert sent.verdict == "accepted"
    assert [each.status for each in report.outcomes] == ["done"] * 3
    (control,) = controls(tmp_path, report.run)
    assert control.value is not None
    assert control.value["tasks"] == ["t2"]
    assert calls(tmp_path, report.run).count("t1/1/model/1") == 1


def test_more_time_for_a_run_under_way_counts_from_now(tmp_path: Path) -> None:
    """Calls in flight are finished, whatever the deadline was, and the rest has the time that was added."""
    made = plan(("t1",), ("t2", "t1"), ("t3", "t2"))
    seconds = {"t1": 8.0, "t2": 8.0, "t3": 8.0}
    report, sent, _ = steered(tmp_path, made, model(**seconds), adds(after=2, deadline=60), deadline=10)
    assert sent.verdict == "accepted"
    assert [each.status for each in report.outcomes] == ["done"] * 3
    assert 62 <= Home(tmp_path).state(report.run).start["request"]["deadline_s"] <= 63
    made_calls = [key for key in calls(tmp_path, report.run) if key.startswith("t")]
    assert made_calls == ["t1/1/model/1", "t2/1/model/1", "t3/1/model/1"]


def test_limits_that_a_run_does_not_have_cannot_be_added_to(tmp_path: Path) -> None:
    """The reason names them, whether a process has the run or not."""
    report, sent, _ = steered(tmp_path, plan(("t1",)), model(t1=3), adds(usd=3.0, deadline=5))
    assert (sent.verdict, report.status) == ("refused", "complete")
    with pytest.raises(UsageError) as refused:
        run_virtual(Supervisor(TEAM, model=model(), home=tmp_path).resume(report.run, usd=3.0, deadline=5))
    assert str(refused.value) == sent.reason


# -- resumes that cannot help ----------------------------------------------------------------------------------------


def made_by(home: Path, run: str, says: ScriptedModel, **added: Any) -> tuple[list[str], str]:
    """The calls of a resume, and what it said."""
    before, said = len(calls(home, run)), list[str]()
    door = Supervisor(TEAM, model=says, home=home)
    door.say = said.append
    report = door.report(run)
    again = run_virtual(door.resume(run, **added))[0]
    made = calls(home, run)[before:]
    assert made or again == report
    return made, " ".join(said)


def test_a_resume_tries_nothing_if_it_does_not_add_what_the_tasks_lacked(tmp_path: Path) -> None:
    """The report stays as it is. With what they lacked, the tasks run again, and a rerun reuses that attempt."""
    tasks = plan(("t1",), ("t2", "t1"), ("t3",)).tasks
    long = tasks[1].model_copy(update={"instruction": "Write a letter about all of this: " + "word " * 9_000})
    made = Plan(goal="Letters", tasks=(tasks[0], long, tasks[2]))
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    report = run_virtual(door.run("Write", plan=made, tokens=9_000, deadline=500))[0]
    assert [each.status for each in report.outcomes] == ["done", "failed", "done"]
    for added in ({"retry_failed": True}, {"deadline": 60.0}, {"retry_failed": True, "deadline": 60.0}):
        calls_made, said = made_by(tmp_path, report.run, model(), **added)
        assert (calls_made, "--tokens" in said) == ([], True)
    calls_made, _ = made_by(tmp_path, report.run, model(), tokens=100_000)
    assert calls_made == ["t2/2/model/1", "@synthesis/1"]
    again = run_virtual(door.rerun(report.run))[0]
    assert (again.status, calls(tmp_path, again.run)) == ("complete", [])


def test_a_limit_that_leaves_room_for_no_call_loses_no_result(tmp_path: Path) -> None:
    """Neither a top-up that is too small nor a restart reopens anything: each call would be denied."""
    tasks = plan(("t1",), ("t2", "t1"), ("t3",)).tasks
    long = tasks[1].model_copy(update={"instruction": "Write a letter about all of this: " + "word " * 9_000})
    door = Supervisor(TEAM, model=model(), home=tmp_path)
    made = Plan(goal="Letters", tasks=(tasks[0], long, tasks[2]))
    report = run_virtual(door.run("Write", plan=made, tokens=9_000))[0]
    calls_made, said = made_by(tmp_path, report.run, model(), tokens=1)
    assert (calls_made, "--tokens" in said) == ([], True)
    run_virtual(door.steer(report.run, "t1", restart=True))
    calls_made, said = made_by(tmp_path, report.run, model())
    assert (calls_made, "--tokens" in said) == ([], True)
    calls_made, _ = made_by(tmp_path, report.run, model(), tokens=100_000)
    assert calls_made[0] == "t1/2/model/1", "the order still waited"


def test_a_retry_without_time_for_workers_tries_nothing(tmp_path: Path) -> None:
    """The failed task would be stopped at once, and its error would be lost."""
    broken = {"when": {"task": "t2"}, "reply": {"error": {"status": 400}}}
    says = ScriptedModel([broken, ANSWER, {"when": {"role": "worker"}, "reply": DONE, "delay_ms": 9_000}])
    door = Supervisor(TEAM, model=says, home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",), ("t2",)), deadline=10))[0]
    assert [each.error.kind for each in report.outcomes if each.error] == ["deadline", "bad_request"]
    calls_made, said = made_by(tmp_path, report.run, says, retry_failed=True)
    assert (calls_made, "--deadline" in said) == ([], True)
    noted = run_virtual(Supervisor(TEAM, model=says, home=tmp_path).resume(report.run, retry_failed=True))[0]
    assert any("deadline=" in note for note in noted.notes), "in Python a note says it, in words of Python"


def test_a_worker_that_was_taken_out_is_tried_again_with_its_tasks(tmp_path: Path) -> None:
    """A person tries again because something changed."""
    team = Team(workers=[Worker("w", "Does it")])
    many = Plan(goal="All", tasks=tuple(each.model_copy(update={"worker": "w"}) for each in plan(*_FOUR).tasks))
    broken = ScriptedModel([{"when": {"role": "worker"}, "reply": {"error": {"status": 400}}}, ANSWER])
    report = run_virtual(Supervisor(team, model=broken, home=tmp_path).run("Write", plan=many))[0]
    assert {each.status for each in report.outcomes} == {"failed"}
    works = ScriptedModel([{"when": {"role": "worker"}, "reply": DONE}, ANSWER])
    again = run_virtual(Supervisor(team, model=works, home=tmp_path).resume(report.run, retry_failed=True))[0]
    assert {each.status for each in again.outcomes} == {"done"}


_FOUR = (("t1",), ("t2",), ("t3",), ("t4",))


def test_a_plan_that_was_never_valid_is_not_asked_for_again_from_the_record(tmp_path: Path) -> None:
    """The same replies would make the same problems: the sentence says to start another run."""
    says = ScriptedModel([{"when": {"role": "planner"}, "reply": {"json": {"goal": "x", "tasks": []}}}])
    report = run_virtual(Supervisor(TEAM, model=says, home=tmp_path).run("Write"))[0]
    assert report.status == "failed"
    events = list(Home(tmp_path).events(report.run))
    calls_made, said = made_by(tmp_path, report.run, says, retry_failed=True)
    assert (calls_made, "another run" in said) == ([], True)
    assert list(Home(tmp_path).events(report.run)) == events


def test_a_run_under_way_gets_time_and_not_the_tasks_that_lacked_tokens(tmp_path: Path) -> None:
    """Only what the raised limit had ended runs again."""
    tasks = plan(("t1",), ("t2",), ("t3",)).tasks
    long = tasks[1].model_copy(update={"instruction": "Write a letter about all of this: " + "word " * 9_000})
    made = Plan(goal="Letters", tasks=(tasks[0], long, tasks[2]))
    act = adds(after=10, deadline=600)
    report, sent, _ = steered(tmp_path, made, model(t3=60), act, tokens=9_000, deadline=500)
    assert sent.verdict == "accepted"
    assert [(each.status, each.attempts) for each in report.outcomes] == [("done", 1), ("failed", 1), ("done", 1)]


def test_a_retry_of_a_stopped_task_tries_nothing(tmp_path: Path) -> None:
    """Only a restart takes the stop back, and the sentence names it."""
    report, _, _ = steered(tmp_path, plan(("t1",), ("t2",)), model(t2=500), stops("t2"))
    calls_made, said = made_by(tmp_path, report.run, model(), retry_failed=True)
    assert calls_made == []
    assert f"chargehand steer {report.run} t2 --restart" in said


def test_more_time_writes_an_answer_that_the_deadline_left_no_time_for(tmp_path: Path) -> None:
    """All tasks are done: nothing but the answer is made, and more tokens alone do not make it."""
    slow = {**ANSWER, "delay_ms": 60_000, "times": 1}
    says = ScriptedModel([slow, ANSWER, {"when": {"role": "worker"}, "reply": DONE}])
    door = Supervisor(TEAM, model=says, home=tmp_path)
    report = run_virtual(door.run("Write", plan=plan(("t1",), ("t2",)), deadline=10))[0]
    assert [each.ok for each in report.outcomes] == [True, True]
    calls_made, said = made_by(tmp_path, report.run, says, tokens=1_000)
    assert (calls_made, "--deadline" in said) == ([], True)
    assert made_by(tmp_path, report.run, says, deadline=60)[0] == ["@synthesis/1"]
