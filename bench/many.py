"""200 runs of 5 tasks at once in one process, and one run: the longest stall of the loop, and CPU a task of both."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time

from bench.provider import MODEL, plan
from chargehand import Supervisor, Team, Worker

TASKS = 5
_BEAT_S = 0.002


async def longest_stall(done: asyncio.Event) -> tuple[float, float]:
    """How late the loop was at most, in seconds, and for how much of it this thread computed."""
    worst = (0.0, 0.0)
    last, last_cpu = time.perf_counter(), time.thread_time()
    while not done.is_set():
        await asyncio.sleep(_BEAT_S)
        now, now_cpu = time.perf_counter(), time.thread_time()
        worst = max(worst, (now - last - _BEAT_S, now_cpu - last_cpu))
        last, last_cpu = now, now_cpu
    return worst


async def runs_at_once(home: str, runs: int) -> tuple[tuple[float, float], float]:
    """The longest stall with its CPU time, and CPU milliseconds a task."""
    team = Team(workers=[Worker("clerk", "Looks figures up", prompt="You are a clerk. You look figures up.")])
    supervisor = Supervisor(team, model=f"openai:{MODEL}", home=home)
    done = asyncio.Event()
    watch = asyncio.create_task(longest_stall(done))
    await asyncio.sleep(10 * _BEAT_S)
    cpu = time.process_time()
    reports = await asyncio.gather(
        *(supervisor.run("Look up", plan=plan(TASKS), max_concurrent=8) for _ in range(runs))
    )
    cpu = time.process_time() - cpu
    done.set()
    assert {report.status for report in reports} == {"complete"}
    return await watch, cpu * 1000 / runs / TASKS


async def main(base: str, runs: int) -> None:
    os.environ |= {"OPENAI_API_KEY": "loopback", "OPENAI_BASE_URL": base}
    with tempfile.TemporaryDirectory() as home:
        await runs_at_once(home, 1)  # what is made at the first run is not what is measured
        _, alone = await runs_at_once(home, 1)
        (stall, computing), together = await runs_at_once(home, runs)
    figures = {"stall_ms": stall * 1000, "stall_cpu_ms": computing * 1000}
    print(json.dumps({**figures, "alone_cpu_ms": alone, "together_cpu_ms": together}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[3])))
