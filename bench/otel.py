"""What telemetry costs a run: CPU time a task with and without a collector, on the loop and in all.

`python -m bench.otel [--tasks 500] [--rounds 5]`: both in turns, each in its own process, as the collector is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


async def _run(base: str, tasks: int) -> None:
    import aiohttp  # noqa: F401 -- both have it imported when the clock starts

    from bench.provider import MODEL
    from chargehand import Supervisor, Team, Worker

    os.environ |= {"OPENAI_API_KEY": "loopback", "OPENAI_BASE_URL": base}
    team = Team(workers=[Worker("clerk", "Looks figures up", prompt="You are a clerk. You look figures up.")])
    with tempfile.TemporaryDirectory() as home:
        supervisor = Supervisor(team, model=f"openai:{MODEL}", home=home)
        limits: Any = {"max_concurrent": max(tasks, 8), "max_tasks": max(tasks, 8), "tokens": 1_000_000_000}
        await supervisor.run("Look up the figures: a fan of 2", **limits)
        cpu, loop = time.process_time(), time.thread_time()
        report = await supervisor.run(f"Look up the figures: a fan of {tasks}", **limits)
        loop = time.thread_time() - loop
        if (sender := sys.modules.get("chargehand.runs.send_telemetry")) is not None:
            sender.wait_for_senders()
        cpu = time.process_time() - cpu
        assert report.status == "complete", report.answer
    print(json.dumps({"loop_ms": loop * 1000 / tasks, "all_ms": cpu * 1000 / tasks, "imported": sender is not None}))


@contextmanager
def _collector() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    from bench.__main__ import provider

    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    got: dict[str, list[dict[str, float]]] = {"off": [], "on": []}
    with provider() as base, _collector() as collector:
        for _ in range(given.rounds):
            for name, found in got.items():
                env = os.environ | ({"OTEL_EXPORTER_OTLP_ENDPOINT": collector} if name == "on" else {})
                command = [sys.executable, "-m", "bench.otel", "--child", base, str(given.tasks)]
                done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
    assert not any(each["imported"] for each in got["off"])
    print("| ms of CPU a task | off | on | more |\n|---|---|---|---|")
    for name, about in (("loop_ms", "on the loop"), ("all_ms", "in all")):
        off, on = (statistics.median(each[name] for each in got[which]) for which in ("off", "on"))
        print(f"| {about} | {off:.3f} | {on:.3f} | {on - off:.3f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(_run(sys.argv[2], int(sys.argv[3])))
    else:
        main()
