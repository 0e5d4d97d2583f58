"""Runs on Temporal: history and CPU a task, how many workers help, and a run of 5,000 tasks. `python -m bench.temporal`

A development server on a file, `chargehand worker` as processes of their own, a folder as blob store, and the provider
of the other benchmarks: 200 ms a call. `chargehand run --engine temporal` starts a run; its seconds are the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from bench.provider import MODEL, plan

SLOTS = 100
_TICKS = os.sysconf("SC_CLK_TCK")
TEMPORAL = shutil.which("temporal", path=str(Path(sys.executable).parent)) or "temporal"
CLERK = "---\nname: clerk\ndescription: Looks figures up\ntools: []\n---\nYou are a clerk. You look figures up.\n"


@dataclass(frozen=True)
class Measured:
    """One run. CPU is that of all worker processes and of the server, from the start of the run to its end."""

    tasks: int
    workers: int
    seconds: float
    worker_ms: float
    server_ms: float
    events: int
    history: int
    status: str

    def line(self, local_ms: float) -> str:
        cpu = self.worker_ms + self.server_ms
        steps = self.tasks + 3
        return (
            f"| {self.tasks:,} | {self.workers} | {self.seconds:.1f} | {self.tasks / self.seconds:.0f} "
            f"| {self.worker_ms:.1f} + {self.server_ms:.1f} (+{cpu - local_ms:.1f}) "
            f"| {self.events / steps:.1f} | {self.history / steps:,.0f} | {self.status} |"
        )


HEAD = (
    "| tasks | workers | s | tasks a s | CPU ms a task: workers + server (beyond local) "
    "| events a step | bytes a step | |\n"
    "|---|---|---|---|---|---|---|---|"
)


def cpu_of(process: subprocess.Popen[Any]) -> float:
    """Milliseconds that a process has computed."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Place:
    """A folder with a server, a provider, a home, a team and blobs."""

    def __init__(self, folder: Path, base: str, server: subprocess.Popen[Any], port: int) -> None:
        self.folder = folder
        self.server = server
        self.address = f"127.0.0.1:{port}"
        self.environment = {
            **os.environ,
            "CHARGEHAND_HOME": str(folder / "home"),
            "OPENAI_API_KEY": "loopback",
            "OPENAI_BASE_URL": base,
        }
        for name in ("home", "blobs", "team/workers"):
            (folder / name).mkdir(parents=True)
        blobs = (folder / "blobs").as_uri()
        (folder / "home" / "config.toml").write_text(
            f'[temporal]\naddress = "{self.address}"\nblobs = "{blobs}"\n'
            # Else a worker has two calls at once under way, as the provider is on this machine.
            f"[providers.openai]\nmax_concurrent = {SLOTS}\n"
        )
        (folder / "team" / "team.toml").write_text('name = "bench"\ndescription = "Looks figures up."\n')
        (folder / "team" / "workers" / "clerk.md").write_text(CLERK)

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "chargehand", *args, "--team", str(self.folder / "team")]

    async def connect(self) -> Client:
        for _ in range(300):
            try:
                return await Client.connect(self.address)
            except RuntimeError:
                await asyncio.sleep(0.1)
        raise TimeoutError("the server does not answer")

    def measure(self, tasks: int, workers: int, in_flight: int) -> Measured:
        asyncio.run(self.connect())
        (self.folder / "plan.json").write_text(json.dumps(plan(tasks)))
        options: dict[str, Any] = {"env": self.environment, "cwd": self.folder, "text": True}
        command = self.command("worker", "--slots", str(SLOTS), "--model", f"openai:{MODEL}")
        crew = [subprocess.Popen(command, stderr=subprocess.PIPE, **options) for _ in range(workers)]
        try:
            for each in crew:
                assert each.stderr
                while "worker of " not in (line := each.stderr.readline()):
                    assert line, "the worker has ended"
            before = cpu_of(self.server), sum(map(cpu_of, crew))
            run = self.command("run", "Look up the figures", "--plan", str(self.folder / "plan.json"))
            run += ["--engine", "temporal", "--quiet", "--model", f"openai:{MODEL}", "--tokens", "1000000000"]
            run += ["--max-concurrent", str(in_flight), "--max-tasks", str(tasks)]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL, **options)
            after = cpu_of(self.server), sum(map(cpu_of, crew))
        finally:
            for each in crew:
                each.kill()
                each.wait()
        seconds, events, history, status = asyncio.run(self._look_up())
        worker_ms, server_ms = (after[1] - before[1]) / tasks, (after[0] - before[0]) / tasks
        return Measured(tasks, workers, seconds, worker_ms, server_ms, events, history, status)

    async def _look_up(self) -> tuple[float, int, int, str]:
        """Of the newest run: its seconds, the events and bytes of its history, and how it ended."""
        client = await self.connect()
        name = max(path.stem for path in (self.folder / "home" / "temporal").glob("*.json"))
        handle = client.get_workflow_handle(name)
        described, history = await handle.describe(), await handle.fetch_history()
        assert described.close_time
        seconds = (described.close_time - described.start_time).total_seconds()
        size = sum(event.ByteSize() for event in history.events)
        return seconds, len(history.events), size, str(await handle.result())


def local_ms(base: str, tasks: int) -> float:
    """CPU milliseconds a task of the local engine, plan and answer included."""
    command = [sys.executable, "-m", "bench.ours", base, "fan", str(tasks)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "BENCH_AGAIN": "yes"})
    return float(json.loads(said.stdout)["cpu_ms_per_task"])


@contextmanager
def place() -> Iterator[tuple[Place, str]]:
    handler = ["-m", "tests.loopback", "--handler", "bench.provider:answer"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        server = [TEMPORAL, "server", "start-dev", "--headless", "--port", str(port), "--log-level", "never"]
        server += ["--db-filename", str(Path(folder) / "server.db"), "--http-port", str(free_port())]
        server += ["--metrics-port", str(free_port())]
        with (
            started([sys.executable, *handler], stdout=subprocess.PIPE, text=True) as provider,
            started(server, **quiet) as serving,
        ):
            assert provider.stdout
            base = f"http://127.0.0.1:{int(provider.stdout.readline())}/v1"
            yield Place(Path(folder), base, serving, port), base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=5_000, help="tasks of the one large run; 0 leaves it out")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--in-flight", type=int, default=SLOTS, help="tasks at once for each worker")
    given = parser.parse_args()
    with place() as (here, base):
        print(f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        local = local_ms(base, given.tasks)
        print(f"local engine: {local:.2f} CPU ms a task\n\n{HEAD}", flush=True)
        sizes = [(given.tasks, number) for number in given.workers]
        if given.large:
            sizes.append((given.large, max(given.workers[:2], default=1)))
        for tasks, number in sizes:
            print(here.measure(tasks, number, given.in_flight * number).line(local), flush=True)
        print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
