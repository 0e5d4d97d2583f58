"""A development server of Temporal and workers of a flow's team in this process, for tests."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from temporalio.client import Client

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.events import Event
from chargehand.models.resolve import Models
from chargehand.runs.make_steps import RunJob
from chargehand.runs.temporal.blob_source import merged_events
from chargehand.runs.temporal.client import check_size, follow_run, launch, store_start
from chargehand.runs.temporal.serve_teams import ServedTeam, serve_teams
from chargehand.settings import Settings
from chargehand.values.report import Report
from chargehand.values.request import Request
from tests.flows import TIERS, Flow
from tests.pace import PATIENCE_S

T = TypeVar("T")
TEMPORAL = shutil.which("temporal", path=str(Path(sys.executable).parent)) or "temporal"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A development server on a file, which can be killed and started again."""

    file: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [TEMPORAL, "server", "start-dev", "--headless", "--port", str(self.port), "--db-filename", str(self.file),
             "--log-level", "never", "--http-port", str(free_port()), "--metrics-port", str(free_port())],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def connect(self) -> Client:
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            try:
                return await Client.connect(self.address)
            except RuntimeError:
                await asyncio.sleep(0.1)
        raise TimeoutError("the server does not answer")


@dataclass
class Fleet:
    """A flow on Temporal: one worker in this process, a folder as the blob store."""

    client: Client
    store: BlobStore
    flow: Flow

    @property
    def settings(self) -> Settings:
        return Settings(home="unused", tiers=TIERS)  # type: ignore[arg-type]

    @property
    def served(self) -> ServedTeam:
        models = Models({}, {}, dict.fromkeys(self.flow.scripts, self.flow.model))
        return ServedTeam(self.flow.team, self.settings, models)

    async def start(self, run: str | None = None, prefix: str = "ch", text: str = "The request.") -> str:
        run = run or f"r{uuid4().hex[:12]}"
        request = Request(text=text, **self.flow.request)
        job = RunJob(run, request, self.flow.team, self.settings, self.flow.plan)
        check_size(job)
        start = await store_start(self.store, job, prefix)
        await launch(self.client, start, len(job.plan.tasks) if job.plan is not None else job.request.max_tasks)
        return run

    async def report(self, run: str, seconds: float = PATIENCE_S) -> Report:
        return await asyncio.wait_for(follow_run(self.client, self.store, run), seconds)

    def events(self, run: str) -> list[Event]:
        return list(merged_events(self.store, run))

    async def until(self, run: str, kind: str, times: int = 1) -> None:
        """Until the record has so many events of a kind; it is written by another process or thread."""
        ends = time.monotonic() + PATIENCE_S
        while sum(event.kind == kind for event in self.events(run)) < times:
            if time.monotonic() > ends:
                raise TimeoutError(f"{run} has not {times} {kind}")
            await asyncio.sleep(0.05)

    @asynccontextmanager
    async def working(self, **options: Any) -> AsyncIterator[None]:
        until, started = asyncio.Event(), asyncio.Event()
        work = asyncio.ensure_future(
            serve_teams(self.client, self.store, [self.served], until=until, started=started, **options)
        )
        begun = asyncio.ensure_future(started.wait())
        await asyncio.wait([work, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        try:
            if work.done():
                work.result()
            yield
        finally:
            until.set()
            await work


def run_on(server: Server, folder: Path, flow: Flow, seconds: float = PATIENCE_S) -> tuple[Report, list[Event]]:
    """One whole run with one worker."""

    async def work() -> tuple[Report, list[Event]]:
        fleet = Fleet(await server.connect(), BlobStore(folder.as_uri()), flow)
        async with fleet.working():
            run = await fleet.start()
            report = await fleet.report(run, seconds)
        return report, fleet.events(run)

    return run_async(work())


def run_async(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
