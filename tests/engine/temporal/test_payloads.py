"""Large replies, wide fans of them and long conversations: a history stays small, and no text gets into it or,
with a key, into an object."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.models import Attribution
from chargehand.team import Team, Worker
from chargehand.tools import tool
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolRequest
from tests.counts import count
from tests.engine.temporal.fleet import Fleet, Server
from tests.flows import Flow, Said, task, tasks, works
from tests.kernel import result

pytestmark = pytest.mark.xdist_group("temporal")
CANARY = "CANARY-51c9"
MOST_BYTES = 1_000_000
TURNS = count(1_000)
WIDE = count(200)


def replies(size: int) -> Callable[[ModelCall, Attribution], Said]:
    def talk(call: ModelCall, attribution: Attribution) -> Said:
        return result(f"{CANARY} " + "x" * size) if call.role == "worker" else works(call, attribution)

    return talk


@tool(effect="read")
def look(at: int) -> str:
    """Look at something."""
    return f"{CANARY} {at}"


def asks_on(call: ModelCall, attribution: Attribution) -> Said:
    """One question after the other to a tool, then a result."""
    turn = sum(message.role == "tool" for message in call.messages)
    if call.role != "worker" or turn >= TURNS:
        return works(call, attribution)
    wish = ToolRequest(id=f"c{turn}", name="look", arguments={"at": turn}, raw="{}")
    return Reply(text=f"{CANARY} I look.", tool_calls=(wish,), stop="tools")


def talkative() -> Flow:
    team = Team([Worker("clerk", f"Does clerical work {CANARY}", prompt=f"{CANARY}", tools=[look], max_steps=2_000)])
    return Flow(asks_on, tasks(task("a", context=CANARY)), team, {"budget": {"tokens": 1_000_000_000}})


FLOWS: dict[str, Callable[[], Flow]] = {
    "replies of 3 MB": lambda: Flow(replies(3_000_000), tasks(*(task(f"t{n}") for n in range(count(3))))),
    "a fan of 300 kB each": lambda: Flow(
        replies(300_000), tasks(*(task(f"t{n}", context=CANARY) for n in range(WIDE))), request={"max_concurrent": 16}
    ),
    "a long conversation": talkative,
}


@pytest.mark.parametrize("name", FLOWS)
def test_a_history_stays_small_whatever_is_said(name: str, server: Server, tmp_path: Path) -> None:
    """Under 1 MB, without a word of it; nor is one in a name or body of an encrypted object."""

    async def work() -> tuple[Any, str, int]:
        flow = FLOWS[name]()
        flow.seconds = 0.0
        fleet = Fleet(await server.connect(), BlobStore(tmp_path.as_uri(), b"a secret"), flow)
        async with fleet.working():
            run = await fleet.start(text=f"The request {CANARY}.")
            report = await fleet.report(run, 150)
        history = await fleet.client.get_workflow_handle(run).fetch_history()
        return report, history.to_json(), sum(event.ByteSize() for event in history.events)

    report, history, size = asyncio.run(work())
    assert all(outcome.ok for outcome in report.outcomes)
    assert size < MOST_BYTES
    assert CANARY not in history
    for folder, _, files in os.walk(tmp_path):
        for file in files:
            assert CANARY.encode() not in os.path.join(folder, file).encode() + Path(folder, file).read_bytes()
