"""MCP over HTTP through the death of the server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.server.mcp_clients import ERAS, over_http, run, write_script
from tests.server.server_process import server_process
from tests.server.serving import ANSWERS


@pytest.mark.parametrize("mode", ERAS)
def test_a_run_over_http_survives_the_death_of_the_server(mode: str, tmp_path: Path) -> None:
    """kill -9 while a task is at work: the next server continues the run, and a new client gets its answer."""
    slow = {**ANSWERS[1], "delay_ms": 60_000, "when": {"role": "worker", "task": "b"}}
    script = json.loads(write_script(tmp_path, [ANSWERS[0], slow, *ANSWERS[1:]]).read_text())
    with server_process(tmp_path, script) as server:

        async def begin() -> str:
            async with over_http(server.port, mode) as client:
                begun = await client.session.call_tool("run_team", {"request": "Do both parts", "approve": True})
                name = begun.structured_content["run"]
                answered = server.client.post(f"/api/v1/runs/{name}/answers/plan", {"answer": "approve"})
                assert answered.status == 200, answered.body
                going = await client.call_tool("wait_run", {"run": name, "seconds": 1})
                assert going.structured_content["status"] == "running"
                return name

        async def finish(name: str) -> None:
            async with over_http(server.port, mode) as client:
                told = (await client.call_tool("wait_run", {"run": name, "seconds": 45})).structured_content
                assert (told["status"], told["run"]) == ("complete", name)

        name = asyncio.run(begin())
        server.kill()
        write_script(tmp_path)  # the same answers without the delay, at the same place
        server.start()
        run(finish(name))
