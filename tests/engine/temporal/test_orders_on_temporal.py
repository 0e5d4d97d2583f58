"""Orders to runs on Temporal, given by commands in processes of their own: verdicts and effects as on one machine."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.events import Control
from chargehand.models import Attribution
from chargehand.record.home import Home, new_run_id
from chargehand.runs.temporal.all_runs import AllRuns, note_run
from chargehand.settings.settings import TemporalSettings
from chargehand.team import Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from tests.engine.temporal.fleet import Fleet, Server
from tests.flows import Flow, Said, by_task, task, tasks, texts, works
from tests.pace import PATIENCE_S

pytestmark = pytest.mark.xdist_group("temporal")


class CommandResult(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass
class Gates:
    """Lets the calls of chosen tasks wait until a test opens them."""

    closed: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    says: Callable[[ModelCall, Attribution], Said] = works

    def close(self, *tasks: str) -> None:
        self.closed |= {task: asyncio.Event() for task in tasks}

    def open(self, *tasks: str) -> None:
        for each in tasks:
            self.closed.pop(each).set()

    async def talk(self, call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "worker" and (gate := self.closed.get(attribution.task or "")) is not None:
            await gate.wait()
        return self.says(call, attribution)


@dataclass
class Ordered:
    """A run under way with a worker in this process, and commands about it in other processes."""

    fleet: Fleet
    home: Path
    run: str

    async def command(self, name: str, *args: object) -> CommandResult:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "chargehand", name, self.run, *map(str, args),
            env={**os.environ, "CHARGEHAND_HOME": str(self.home), "CHARGEHAND_MODEL": "scripted:medium"},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        return CommandResult(process.returncode or 0, out.decode(), err.decode())

    def verdicts(self) -> list[tuple[str, str]]:
        bodies = [event.body for event in self.fleet.events(self.run)]
        return [(body.order, body.verdict) for body in bodies if isinstance(body, Control)]

    def replies(self) -> list[str]:
        return [event.data["key"] for event in self.fleet.events(self.run) if event.kind == "model_replied"]


@asynccontextmanager
async def under_way(server: Server, folder: Path, flow: Flow) -> AsyncIterator[Ordered]:
    blobs, home = folder / "blobs", folder / "home"
    blobs.mkdir()
    fleet = Fleet(await server.connect(), BlobStore(blobs.as_uri()), flow)
    run = new_run_id(1.7e9)
    note_run(Home(home), run, TemporalSettings(address=server.address, blobs=blobs.as_uri()))
    async with fleet.working():
        await fleet.start(run)
        yield Ordered(fleet, home, run)


def play(server: Server, folder: Path, flow: Flow, act: Callable[[Ordered], Awaitable[None]]) -> None:
    async def work() -> None:
        async with under_way(server, folder, flow) as run:
            await act(run)

    asyncio.run(work())


def test_a_task_is_stopped_and_a_worker_is_told_something(server: Server, tmp_path: Path) -> None:
    """Stop breaks off a hanging call and is final, its reason is on the record; words come before the next call."""
    gates = Gates()

    def says(call: ModelCall, attribution: Attribution) -> Said:
        if attribution.task == "a" and not any(message.role == "tool" for message in call.messages):
            return Reply(tool_calls=(ToolRequest(id="1", name="none", arguments={}, raw="{}"),), stop="tools")
        return works(call, attribution)

    gates.says = says
    flow = Flow(gates.talk, tasks(task("a"), task("b", "c"), task("c")), seconds=0.01)

    async def act(run: Ordered) -> None:
        gates.close("a", "c")
        await run.fleet.until(run.run, "model_called", 2)
        told, stopped = await asyncio.gather(
            run.command("steer", "a", "Use metres."), run.command("steer", "c", "--stop", "Not needed.")
        )
        assert (stopped.code, told.code) == (0, 0), (stopped, told)
        await run.fleet.until(run.run, "task_ended", 1)
        late, unknown = await asyncio.gather(
            run.command("steer", "c", "--stop"), run.command("steer", "nowhere", "Hello.")
        )
        assert (late.code, unknown.code) == (1, 2), (late, unknown)
        gates.open("a")
        report = await run.fleet.report(run.run)
        ends = by_task(report)
        assert [ends[each].status for each in "abc"] == ["done", "skipped", "failed"]
        assert ends["c"].error is not None
        assert (ends["c"].error.kind, "Not needed." in ends["c"].summary) == ("cancelled", True)
        assert ends["c"].usage.seconds > 0, "the call that was broken off counts until then"
        assert texts(flow.calls(task="a")[1:]).count("Use metres.") == 1
        assert set(run.verdicts()) == {
            ("stop", "accepted"),
            ("stop", "too_late"),
            ("tell", "accepted"),
            ("tell", "refused"),
        }
        history = await run.fleet.client.get_workflow_handle(run.run).fetch_history()
        assert "metres" not in history.to_json()
        assert "Not needed" not in history.to_json()

    play(server, tmp_path, flow, act)


def test_a_paused_run_begins_nothing_until_a_person_continues_it(server: Server, tmp_path: Path) -> None:
    """The call in flight is committed, no other begins in any step; a limit that is refused leaves it paused."""
    gates = Gates()
    flow = Flow(gates.talk, tasks(task("a"), task("b", "a")), request={"budget": {"tokens": 100_000}}, seconds=0.01)

    async def act(run: Ordered) -> None:
        gates.close("a")
        await run.fleet.until(run.run, "model_called")
        paused = await run.command("pause")
        assert paused.code == 0, paused
        gates.open("a")
        waiting = await run.fleet.report(run.run)
        assert waiting.status == "paused"
        replied = run.replies()
        refused = await run.command("resume", "--usd", 1)
        assert refused.code == 2, refused
        assert ((await run.fleet.report(run.run)).status, run.replies()) == ("paused", replied)
        grown = await run.command("resume", "--tokens", 5_000, "--json")
        assert grown.code == 0, grown
        report = await run.fleet.report(run.run)
        assert report.status == "complete"
        assert len(run.replies()) == len(set(run.replies()))
        assert run.verdicts() == [
            ("pause", "accepted"),
            ("top_up", "refused"),
            ("top_up", "accepted"),
            ("continue", "accepted"),
        ]
        state = AllRuns(Home(run.home)).state(run.run)
        assert state.start["request"]["budget"]["tokens"] == 105_000

    play(server, tmp_path, flow, act)


def test_a_task_of_a_run_under_way_is_restarted_with_all_that_rests_on_it(server: Server, tmp_path: Path) -> None:
    """Its own call is broken off, calls of other tasks are finished and not repeated, attempts count on."""
    gates = Gates()
    flow = Flow(gates.talk, tasks(task("a"), task("b", "a"), task("c")), seconds=0.01)

    async def act(run: Ordered) -> None:
        gates.close("b", "c")
        await run.fleet.until(run.run, "model_called", 3)
        ordered = asyncio.ensure_future(
            run.command("steer", "a", "--restart", "--instruction", "Work out OTHER-WORDS.")
        )
        await run.fleet.until(run.run, "control")
        gates.open("c")
        assert (await ordered).code == 0
        gates.open("b")
        report = await run.fleet.report(run.run)
        assert report.status == "complete"
        started = [(e.task, e.attempt) for e in run.fleet.events(run.run) if e.kind == "attempt_started"]
        assert sorted(started) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]
        assert "OTHER-WORDS" in texts(flow.calls(task="a")[1:])
        assert len(flow.calls(task="c")) == 1
        assert len(run.replies()) == len(set(run.replies()))
        again = await run.command("steer", "c", "--restart")
        assert (again.code, "resume" in again.err) == (0, True), again
        resumed = await run.command("resume")
        assert resumed.code == 0, resumed
        assert len(flow.calls(task="c")) == 2
        assert len(flow.calls(task="a")) == 2

    play(server, tmp_path, flow, act)


def test_the_first_answer_of_a_person_counts(server: Server, tmp_path: Path) -> None:
    """A run that waits continues by itself with it; the same again is fine, another is refused with the first."""
    team = Team([Worker("clerk", "Does clerical work"), Worker("boss", "Decides", kind="human")])
    gates = Gates()
    plan = tasks(task("a"), task("b", "a", worker="boss"), task("c", "b"))
    flow = Flow(gates.talk, plan, team, {"ask": True}, seconds=0.01)

    async def act(run: Ordered) -> None:
        gates.close("c")
        assert (await run.fleet.report(run.run)).status == "waiting"
        asked = next(e.data["question"]["id"] for e in run.fleet.events(run.run) if e.kind == "question_asked")
        first = await run.command("answer", asked, "Yes, do it.")
        assert first.code == 0, first
        same, other = await asyncio.gather(
            run.command("answer", asked, "Yes, do it."), run.command("answer", asked, "No.")
        )
        assert same.code == 0, same
        assert other.code == 2, other
        assert "Yes, do it." in other.err
        gates.open("c")
        assert by_task(await run.fleet.report(run.run))["b"].output == "Yes, do it."

    play(server, tmp_path, flow, act)


def test_an_answer_with_resume_follows_the_run_to_its_end(server: Server, tmp_path: Path) -> None:
    """Before that, `show` says for whom the run waits, and how to answer; the answer is all that it needs."""
    team = Team([Worker("clerk", "Does clerical work"), Worker("boss", "Decides", kind="human")])
    plan = tasks(task("a"), task("b", "a", worker="boss"))
    flow = Flow(works, plan, team, {"ask": True}, seconds=0.01)

    async def act(run: Ordered) -> None:
        assert (await run.fleet.report(run.run)).status == "waiting"
        asked = next(e.data["question"]["id"] for e in run.fleet.events(run.run) if e.kind == "question_asked")
        shown = json.loads((await run.command("show", "--json")).out)
        assert shown["status"] == "waiting"
        assert asked in shown["answer"]
        assert f"chargehand answer {run.run} {asked}" in (await run.command("show")).out
        followed = await run.command("answer", asked, "Yes, do it.", "--resume")
        report = await run.fleet.report(run.run)
        assert (followed.code, followed.out) == (report.exit_code, f"{report.answer}\n")

    play(server, tmp_path, flow, act)


@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_a_run_that_was_ended_by_hand_is_resumed(how: str, server: Server, tmp_path: Path) -> None:
    """Cancelled by command, or terminated at the server: `resume` continues, no committed call is repeated."""
    gates = Gates()
    flow = Flow(gates.talk, tasks(task("a"), task("b", "a"), task("c")), seconds=0.01)

    async def act(run: Ordered) -> None:
        gates.close("b")
        await run.fleet.until(run.run, "task_ended", 2)
        await run.fleet.until(run.run, "model_called", 3)
        if how == "cancel":
            cancelled = await run.command("cancel")
            assert cancelled.code == 0, cancelled
        else:
            await run.fleet.client.get_workflow_handle(run.run).terminate("by hand")
            shown = await run.command("show", "--json")
            assert '"status": "interrupted"' in shown.out, shown
        gates.open("b")
        resumed = await run.command("resume", "--json")
        assert resumed.code == 0, resumed
        assert '"status": "complete"' in resumed.out
        assert [len(flow.calls(task=each)) for each in "ac"] == [1, 1]
        # The call of `b` was broken off; or it ended before its worker knew, and then it counts.
        assert len(run.replies()) == len(set(run.replies()))

    play(server, tmp_path, flow, act)
