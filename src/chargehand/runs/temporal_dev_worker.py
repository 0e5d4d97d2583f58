"""A development server of Temporal and a worker, as a process that ends with this one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from chargehand.errors import UsageError
from chargehand.runs.supervisor import Supervisor
from chargehand.runs.temporal.connection import connect, with_dev_store

_STARTS_S = 30.0


@contextmanager
def dev_worker(supervisor: Supervisor, say: Callable[[str], None]) -> Generator[None]:
    """`chargehand worker --dev` with the team and the model of a supervisor; blobs in its home unless set."""
    supervisor.settings = settings = with_dev_store(supervisor.settings, make=True)
    command = [sys.executable, "-m", "chargehand", "worker", "--dev", "--team", supervisor.team_ref or "general"]
    command += ["--model", settings.model] if settings.model else []
    environ = {**os.environ, "CHARGEHAND_HOME": settings.home}
    worker = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
    try:
        _wait_for_server(supervisor, worker)
        say(f"Temporal at {settings.temporal.address}, blobs at {settings.temporal.blobs}")
        yield
    finally:
        worker.terminate()
        worker.wait(20)


def _wait_for_server(supervisor: Supervisor, worker: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _STARTS_S
    while True:
        try:
            asyncio.run(_connect(supervisor))
            return
        except UsageError:
            if worker.poll() is not None or time.monotonic() > give_up:
                raise
            time.sleep(0.2)


async def _connect(supervisor: Supervisor) -> None:
    await connect(supervisor.settings.temporal)
