"""Runs of twenty shapes -> their histories as files: `python -m tests.engine.temporal.store_histories`.

To be run after a change to what a workflow decides. Runs that began before the change continue on workers of the
version before it, so that such a change is allowed; but it has to be noticed.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN
from chargehand.runs.temporal.run_workflow import OrderNotice
from chargehand.runs.temporal.stored_run import BlobMailbox
from chargehand.team import Team, Worker
from chargehand.values.order import new_order
from tests.engine.temporal.fleet import Fleet, Server, free_port
from tests.engine.temporal.temporal_flows import FLOWS
from tests.flows import Flow, task, tasks, works

HISTORIES = Path(__file__).parent / "histories"
# Who did it on which machine, and what the server alone needs.
_NOT_NEEDED = ("identity", "requestId", "retryPolicy", "meteringMetadata", "historySizeBytes", "workerVersion")
Act = Callable[[Fleet, str], Awaitable[None]]


async def end(fleet: Fleet, run: str) -> None:
    await fleet.report(run)


async def cancel(fleet: Fleet, run: str) -> None:
    await fleet.until(run, "model_called")
    await fleet.client.get_workflow_handle(run).cancel()
    await fleet.report(run)


async def answer(fleet: Fleet, run: str) -> None:
    await fleet.report(run)
    asked = next(event.data["question"]["id"] for event in fleet.events(run) if event.kind == "question_asked")
    order = new_order("answer", question=asked, text="Yes.")
    BlobMailbox(fleet.store, run, RUN).send(order)
    handle: Any = fleet.client.get_workflow_handle(run)
    await handle.execute_update("order", OrderNotice(order.id, "b"))
    await fleet.report(run)


def people() -> Flow:
    team = Team([Worker("clerk", "Does clerical work"), Worker("boss", "Decides", kind="human")])
    return Flow(works, tasks(task("a"), task("b", "a", worker="boss")), team, {"ask": True})


def limited() -> Flow:
    plan = tasks(*(task(f"t{n}") for n in range(4)), task("z", "t1", "t2"))
    return Flow(works, plan, request={"budget": {"tokens": 120_000}, "max_concurrent": 2})


def hanging() -> Flow:
    flow = Flow(works, tasks(task("a"), task("b")))
    flow.seconds = 600
    return flow


RUNS: dict[str, tuple[Callable[[], Flow], Act]] = {
    **{name: (flow, end) for name, flow in FLOWS.items() if name not in ("one task", "large results", "no retries")},
    "a budget": (limited, end),
    "a person": (people, answer),
    "cancelled": (hanging, cancel),
}


def drop_unneeded(value: Any) -> Any:
    match value:
        case dict():
            return {name: drop_unneeded(each) for name, each in value.items() if name not in _NOT_NEEDED}
        case list():
            return [drop_unneeded(each) for each in value]
        case _:
            return value


async def store(server: Server, folder: Path) -> None:
    client = await server.connect()
    for number, (name, (make, act)) in enumerate(RUNS.items()):
        flow = make()
        flow.seconds = min(flow.seconds, 0.01) if flow.seconds < 600 else flow.seconds
        fleet = Fleet(client, BlobStore(folder.as_uri()), flow)
        async with fleet.working(prefix=f"h{number}"):
            run = await fleet.start(f"run-{number}", prefix=f"h{number}")
            await act(fleet, run)
        history = await client.get_workflow_handle(run).fetch_history()
        kept = drop_unneeded(json.loads(history.to_json()))
        path = HISTORIES / f"{name.replace(' ', '_')}.json"
        path.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"{path.stat().st_size:7,} bytes, {len(history.events):3} events: {name}")


def main() -> None:
    HISTORIES.mkdir(exist_ok=True)
    for path in HISTORIES.glob("*.json"):
        path.unlink()
    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place) / "server.db", free_port())
        server.start()
        try:
            (Path(place) / "blobs").mkdir()
            asyncio.run(store(server, Path(place) / "blobs"))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
