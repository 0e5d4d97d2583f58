"""Runs on Temporal that begin from others, and the server over them: rerun, fork, diff, documents, HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from chargehand.models import Attribution
from chargehand.runs.supervisor import Supervisor
from chargehand.settings.settings import Settings, TemporalSettings
from chargehand.team import Team, Worker
from chargehand.tools import BUILTIN
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from tests.engine.temporal.fleet import Fleet, Server
from tests.flows import TIERS, Flow, Said, by_task, task, tasks, works
from tests.server.serving import serving

pytestmark = pytest.mark.xdist_group("temporal")


def writes_document(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a" and not any(m.role == "tool" for m in call.messages):
        arguments: dict[str, Any] = {"name": "notes.md", "text": "# Notes\n"}
        wish = ToolRequest(id="1", name="write_document", arguments=arguments, raw=json.dumps(arguments))
        return Reply(tool_calls=(wish,), stop="tools")
    return works(call, attribution)


def supervisor_on(server: Server, folder: Path, team: Team) -> Supervisor:
    (folder / "blobs").mkdir()
    temporal = TemporalSettings(address=server.address, blobs=(folder / "blobs").as_uri())
    settings = Settings(home=str(folder / "home"), tiers=TIERS, engine="temporal", temporal=temporal)  # type: ignore[arg-type]
    return Supervisor(team, settings=settings)


def fleet_of(flow: Flow, supervisor: Supervisor, client: Any) -> Fleet:
    from chargehand.runs.temporal.connection import open_store

    return Fleet(client, open_store(supervisor.settings.temporal), flow)


def test_a_run_is_run_again_and_forked_without_repeating_what_has_not_changed(server: Server, tmp_path: Path) -> None:
    """A rerun calls nobody; a fork does one task again with what rests on it; documents go along; diff names them."""
    team = Team([Worker("clerk", "Does clerical work", tools=[BUILTIN["write_document"]])])
    plan = tasks(task("a"), task("b", "a"), task("c"))
    flow = Flow(writes_document, plan, team, seconds=0.01)
    supervisor = supervisor_on(server, tmp_path, team)
    (tmp_path / "facts.txt").write_text("Oslo lies on a fjord.", encoding="utf-8")

    async def work() -> None:
        fleet = fleet_of(flow, supervisor, await server.connect())
        async with fleet.working():
            first = await supervisor.run("The request.", plan=plan, material=[tmp_path / "facts.txt"])
            assert [path.read_text() for path in supervisor.source.documents(first.run)] == ["# Notes\n"]
            asked = len(flow.model.asked)
            again = await supervisor.rerun(first.run)
            assert (again.status, again.answer, len(flow.model.asked)) == (first.status, first.answer, asked)
            assert supervisor.source.state(again.run).start["rerun_of"] == first.run
            other = await supervisor.fork(first.run, at="b")
        assert other.status == "complete"
        ran = [who.task for call, _, who in flow.model.asked[asked:] if call.role == "worker"]
        assert ran == ["b"]
        assert {o.output for o in other.outcomes} == {o.output for o in first.outcomes}
        state = supervisor.source.state(other.run)
        assert state.start["forked_from"] == {"run": first.run, "at": "b"}
        assert [path.name for path in supervisor.source.documents(other.run)] == ["notes.md"]
        assert by_task(other)["a"].usage.input_tokens == 0
        assert [each.task for each in supervisor.diff(first.run, other.run).tasks] == ["a", "b", "c"]
        assert [info.run for info in supervisor.source.runs()] == [other.run, again.run, first.run]

    asyncio.run(work())


def test_the_server_starts_watches_and_orders_runs_on_temporal(server: Server, tmp_path: Path) -> None:
    """Start, list, state, events, stream, stop of a task, report and page, over HTTP; the run is not of its process."""
    gate = asyncio.Event()

    async def talk(call: ModelCall, attribution: Attribution) -> Said:
        if attribution.task == "b":
            await gate.wait()
        return works(call, attribution)

    plan = tasks(task("a"), task("b"))
    team = Team([Worker("clerk", "Does clerical work")])
    flow = Flow(talk, plan, team, seconds=0.01)
    supervisor = supervisor_on(server, tmp_path, team)

    async def work() -> None:
        fleet = fleet_of(flow, supervisor, await server.connect())
        async with fleet.working():
            await asyncio.to_thread(watch, fleet)

    def watch(fleet: Fleet) -> None:
        with serving(supervisor) as client:
            run = client.start(request="The request.", plan=plan.to_json())
            asyncio.run(fleet.until(run, "task_ended"))
            listed = client.get("/api/v1/runs").json["runs"]
            assert [(each["run"], each["status"]) for each in listed] == [(run, "running")]
            state = client.get(f"/api/v1/runs/{run}/state").json
            assert {each["id"]: each["status"] for each in state["tasks"]} == {"a": "done", "b": "running"}
            stopped = client.post(f"/api/v1/runs/{run}/tasks/b/stop", {"reason": "Enough."})
            assert (stopped.status, stopped.json.get("verdict")) == (200, "accepted"), stopped
            numbers: list[int] = []
            with client.stream(f"/api/v1/runs/{run}/stream") as events:
                for event in events:
                    numbers.append(int(event["id"]))
                    if json.loads(event["data"])["kind"] == "run_ended":
                        break
            assert numbers == list(range(1, len(numbers) + 1))
            assert client.get(f"/api/v1/runs/{run}").json["status"] == "partial"
            lines = client.get(f"/api/v1/runs/{run}/events").body.splitlines()
            assert [json.loads(line)["seq"] for line in lines] == numbers
            assert client.get(f"/runs/{run}").status == 200
            again = client.post(f"/api/v1/runs/{run}/rerun").json["run"]
            gate.set()
            client.wait(again)
            assert client.get(f"/api/v1/runs/{again}").json["status"] == "complete"
            assert [each["run"] for each in client.get("/api/v1/runs").json["runs"]] == [again, run]

    asyncio.run(work())
