"""The same calls by chargehand, journal on. Prints one line of JSON.

With BENCH_AGAIN=yes the process has done a small run before: what it imports and compiles for the first is not counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile

import aiohttp  # noqa: F401 -- both sides have it imported when the clock starts

from bench.measure import measured
from bench.provider import MODEL, chains
from chargehand import Supervisor, Team, Worker


async def main(base: str, kind: str, tasks: int) -> None:
    os.environ |= {"OPENAI_API_KEY": "loopback", "OPENAI_BASE_URL": base}
    prompt = "You are a clerk. You look figures up." + (" Use two tools." if kind == "tools" else "")
    tools = ["calculate"] if kind == "tools" else []
    team = Team(workers=[Worker("clerk", "Looks figures up", prompt=prompt, tools=tools)])
    with tempfile.TemporaryDirectory() as home:
        supervisor = Supervisor(team, model=f"openai:{MODEL}", home=home)
        plan = chains() if kind == "chains" else None
        limits = {"max_concurrent": max(tasks, 8), "max_tasks": max(tasks, 8), "tokens": 1_000_000_000}
        if os.environ.get("BENCH_AGAIN") == "yes":
            await supervisor.run("Look up the figures: a fan of 2", **limits)
        with measured(tasks):
            report = await supervisor.run(f"Look up the figures: a fan of {tasks}", plan=plan, **limits)
        assert report.status == "complete", report.answer
        assert len(report.outcomes) == tasks


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
