"""A worker of a fleet: polls the queues of its teams, orders runs, and carries out steps until it is asked to end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from temporalio.client import Client
from temporalio.worker import Worker as Poller
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import UsageError
from chargehand.models.resolve import Models
from chargehand.runs.temporal.run_workflow import RunWorkflow
from chargehand.runs.temporal.step_activity import StepActivity
from chargehand.runs.temporal.stored_run import team_queue
from chargehand.runs.temporal.worker_health import WorkerHealth
from chargehand.settings import Settings
from chargehand.team import Team

# How long steps may take to end when the worker is asked to end; then they are given to another one.
DRAIN = timedelta(seconds=10)
# This is also the longest time that the server waits for a decision.
LONGEST_DECIDING_S = 60
SANDBOX = SandboxRestrictions.default.with_passthrough_modules("chargehand", "pydantic_core", "pydantic")


class ServedTeam(NamedTuple):
    """A team as this machine has it, with the models that its steps call."""

    team: Team
    settings: Settings
    models: Models


async def serve_teams(
    client: Client,
    store: BlobStore,
    teams: Iterable[ServedTeam],
    *,
    only: Iterable[str] = (),
    slots: int = 100,
    prefix: str = "ch",
    until: asyncio.Event | None = None,
    started: asyncio.Event | None = None,
    health: WorkerHealth | None = None,
) -> None:
    """Work until `until` is set. With `only`, the named workers' steps alone: no workflow, no plan, no answer."""
    wanted, teams = tuple(only), tuple(teams)
    _check_only(wanted, teams)
    with tempfile.TemporaryDirectory(prefix="chargehand-worker-") as folder:
        async with AsyncExitStack() as polling:
            for served in teams:
                place = Path(folder) / served.team.name
                activity = StepActivity(store, served.team, served.settings, served.models, place, health)
                for poller in _pollers(client, served.team, activity, wanted, slots, prefix):
                    await polling.enter_async_context(poller)
            if started is not None:
                started.set()
            await (until or asyncio.Event()).wait()


def _pollers(
    client: Client, team: Team, activity: StepActivity, only: tuple[str, ...], slots: int, prefix: str
) -> list[Poller]:
    queue = team_queue(team, prefix)
    names = [worker.name for worker in team.workers if not only or worker.name in only]
    queues = [f"{queue}.{name}" for name in names]
    if not only:
        queues.insert(0, queue)
    return [_poller(client, name, activity, slots, decides=name == queue) for name in queues]


def _poller(client: Client, queue: str, activity: StepActivity, slots: int, *, decides: bool) -> Poller:
    poller = Poller(
        client,
        task_queue=queue,
        workflows=[RunWorkflow] if decides else [],
        activities=[activity.carry_out],
        workflow_runner=SandboxedWorkflowRunner(restrictions=SANDBOX),
        max_concurrent_activities=slots,
        max_heartbeat_throttle_interval=timedelta(seconds=2),
        default_heartbeat_throttle_interval=timedelta(seconds=2),
        graceful_shutdown_timeout=DRAIN,
    )
    deciding = poller._workflow_worker  # pyright: ignore[reportPrivateUsage]
    if deciding is not None:
        # temporalio has no option for this. By default, a workflow that needs more than 2 seconds to decide on a wide
        # plan counts as deadlocked, and would have to decide again, forever.
        deciding._deadlock_timeout_seconds = LONGEST_DECIDING_S  # pyright: ignore[reportPrivateUsage]
    return poller


def _check_only(only: tuple[str, ...], teams: tuple[ServedTeam, ...]) -> None:
    known = {worker.name for served in teams for worker in served.team.workers}
    if unknown := [name for name in only if name not in known]:
        raise UsageError(f"No team here has a worker {', '.join(unknown)}: they have {', '.join(sorted(known))}.")
