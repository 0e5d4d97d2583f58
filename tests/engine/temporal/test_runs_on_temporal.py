"""Runs on Temporal: no texts in histories, replays, lost workers, people, cancelling, and what cannot work."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN
from chargehand.engine.temporal.workflow_engine import WorkflowEngine
from chargehand.errors import UsageError
from chargehand.models import Attribution
from chargehand.runs.make_steps import RunJob
from chargehand.runs.temporal.client import check_size
from chargehand.runs.temporal.connection import connect
from chargehand.runs.temporal.run_workflow import OrderNotice
from chargehand.runs.temporal.stored_run import BlobMailbox
from chargehand.settings.settings import TemporalSettings
from chargehand.team import Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.order import new_order
from chargehand.values.request import Request
from chargehand.values.step import Head
from tests.engine.temporal.fleet import Fleet, Server, free_port
from tests.flows import Flow, Said, task, tasks, works
from tests.kernel import result
from tests.pace import PATIENCE_S, Timed

pytestmark = pytest.mark.xdist_group("temporal")
CANARY = "CANARY-7f3a"


def says_canary(call: ModelCall, attribution: Attribution) -> Said:
    if call.role == "worker" and attribution.task == "a":
        # Without a result: the words of the failure are in decisions.
        return {"summary": CANARY, "output": None, "claims": [], "findings": [], "confidence": 10}
    return result(f"{CANARY} " + "x" * 100_000) if call.role == "worker" else works(call, attribution)


def test_a_history_holds_no_texts_and_replays_under_any_hash_seed(server: Server, tmp_path: Path) -> None:
    """No words of the request, of results or of failures; a few kB for results of 100 kB; the same decisions again."""

    async def work() -> None:
        flow = Flow(says_canary, tasks(*(task(f"{name}", context=CANARY) for name in "abcdef")), seconds=0.01)
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            report = await fleet.report(run)
        assert report.status == "partial"
        history = await fleet.client.get_workflow_handle(run).fetch_history()
        text = history.to_json()
        assert CANARY not in text
        assert "The request." not in text
        assert sum(event.ByteSize() for event in history.events) < 30_000
        (tmp_path / "history.json").write_text(text, encoding="utf-8")

    asyncio.run(work())
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "tests.engine.temporal.replay_history", str(tmp_path / "history.json")],
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip


def test_a_lost_worker_is_replaced_and_no_committed_call_is_repeated(server: Server, tmp_path: Path) -> None:
    """A worker that is gone in the middle of a run: another one continues, each task is done once, same answer."""

    plan = tasks(*(task(f"t{n}") for n in range(6)), task("z", "t0", "t1"))
    expected = Flow(works, plan).run()

    async def work() -> None:
        flow = Flow(works, plan, request={"max_concurrent": 2}, seconds=0.3)
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            await fleet.until(run, "task_ended", 2)
        before = [event for event in fleet.events(run) if event.kind == "model_replied"]
        async with fleet.working():
            report = await fleet.report(run)
        assert report.status == "complete"
        replied = [event.data["key"] for event in fleet.events(run) if event.kind == "model_replied"]
        assert len(replied) == len(set(replied))
        assert len(before) < len(replied)
        assert report.answer == expected.answer

    asyncio.run(work())


def test_a_person_answers_and_the_run_continues(server: Server, tmp_path: Path) -> None:
    """A step that asks is parked; the answer is in the store, the workflow gets a notice without it."""

    async def work() -> None:
        team = Team([Worker("clerk", "Does clerical work"), Worker("boss", "Decides", kind="human")])
        flow = Flow(works, tasks(task("a"), task("b", "a", worker="boss")), team, {"ask": True}, seconds=0.01)
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            waiting = await fleet.report(run)
            assert waiting.status == "waiting"
            asked = next(event.data["question"]["id"] for event in fleet.events(run) if event.kind == "question_asked")
            order = new_order("answer", question=asked, text=f"Yes, {CANARY}.")
            BlobMailbox(fleet.store, run, RUN).send(order)
            handle: Any = fleet.client.get_workflow_handle(run)
            await handle.execute_update("order", OrderNotice(order.id, "b"))
            report = await fleet.report(run)
        assert report.outcomes[1].output == f"Yes, {CANARY}."
        assert CANARY not in (await fleet.client.get_workflow_handle(run).fetch_history()).to_json()

    asyncio.run(work())


def test_cancelling_reaches_a_hanging_call(server: Server, tmp_path: Path) -> None:
    """A call that never returns is broken off within seconds, and the record says that the run was cancelled."""

    async def work() -> None:
        flow = Flow(works, tasks(task("a"), task("b")), seconds=600)
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            await fleet.until(run, "model_called")
            with Timed() as timed:
                await fleet.client.get_workflow_handle(run).cancel()
                report = await fleet.report(run)
            assert timed.within(15.0)
        assert report.status == "cancelled"

    asyncio.run(work())


def test_a_decision_may_take_seconds(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide plan on a busy machine takes its time: no task of the workflow fails, and nothing is decided twice."""
    end_task, decisions = WorkflowEngine.end_task, list[str]()

    def decide_slowly(self: WorkflowEngine, head: Head) -> None:
        decisions.append(head.task)
        threading.Event().wait(2.5)
        end_task(self, head)

    monkeypatch.setattr(WorkflowEngine, "end_task", decide_slowly)

    async def work() -> None:
        flow = Flow(works, tasks(task("a")), seconds=0.01)
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            assert (await fleet.report(run)).status == "complete"
        history = (await fleet.client.get_workflow_handle(run).fetch_history()).to_json()
        assert "WORKFLOW_TASK_FAILED" not in history

    asyncio.run(work())
    assert decisions == ["a"]


def test_what_cannot_work_is_said_before_anything_is_started(server: Server) -> None:
    """No server, an unknown namespace, a plan of 20,000 tasks: UsageError within seconds."""

    async def work() -> None:
        with pytest.raises(UsageError, match="No Temporal server"):
            await connect(TemporalSettings(address=f"127.0.0.1:{free_port()}"))
        with pytest.raises(UsageError, match="nowhere"):
            await connect(TemporalSettings(address=server.address, namespace="nowhere"))

    asyncio.run(server.connect())
    asyncio.run(work())
    flow = Flow(works, tasks(*(task(f"t{n}") for n in range(20_000))))
    fleet = Fleet(None, None, flow)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="20,000"):
        check_size(RunJob("r", Request(text="x"), flow.team, fleet.settings, flow.plan))
