"""The commands of a person about a run on Temporal: start it and follow it, or continue one that stopped."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from chargehand.engine.engine_session import Listener
from chargehand.engine.temporal.step_order import RUN
from chargehand.errors import UsageError
from chargehand.events import ToolCalled
from chargehand.record.home import Home, new_run_id
from chargehand.record.replay import Replay
from chargehand.runs.make_steps import RunJob
from chargehand.runs.resumed_job import Added, check_limits, reopened_tasks, report_ended, stays_ended, top_up
from chargehand.runs.temporal.all_runs import AllRuns, forget_run, is_running, note_run
from chargehand.runs.temporal.client import Say, check_size, follow_run, launch, store_start
from chargehand.runs.temporal.connection import connect, open_store
from chargehand.runs.temporal.run_workflow import RunStart
from chargehand.runs.temporal.store_fork import store_fork
from chargehand.runs.temporal.stored_run import BlobMailbox, read_start
from chargehand.values.report import Report

if TYPE_CHECKING:
    from temporalio.client import Client

    from chargehand.engine.temporal.blob_store import BlobStore


class EarlierRun(NamedTuple):
    """A run that another one begins from, and the calls of tools on its record."""

    run: str
    called: list[ToolCalled]


async def run_job(
    home: Home, job: RunJob, on_event: Listener | None = None, say: Say | None = None, earlier: EarlierRun | None = None
) -> Report:
    """Start a job on Temporal and follow it to its end, or until it only waits for people.

    `earlier` is the run that the job was forked from, or whose stored material it uses.
    """
    settings = job.settings.temporal
    job = job if job.run else job._replace(run=new_run_id(time.time()))
    note_run(home, job.run, settings, job.team_ref, {each.name: each.path for each in job.request.material})
    try:
        check_size(job)
        store = await asyncio.to_thread(open_store, settings, os.environ)
        client = await connect(settings)
        start = await store_start(store, job, settings.queue, None if earlier is None else earlier.run)
        if job.fork is not None and earlier is not None:
            queue = (await asyncio.to_thread(read_start, store, earlier.run))["queue"]
            await store_fork(store, job, earlier.called)
            await asyncio.to_thread(store.create, store.path(job.run, "executions", "1"), b"")
            start = replace(start, generation=1, forked=True, queue=queue)
        await launch(client, start, len(job.plan.tasks) if job.plan is not None else job.request.max_tasks)
    except BaseException:
        forget_run(home, job.run)
        raise
    if say is not None:
        say(f"{job.run} on Temporal at {settings.address}")
    return await _follow(client, store, job.run, on_event, say)


async def _follow(
    client: Client, store: BlobStore, run: str, on_event: Listener | None, say: Say | None, after: int = 0
) -> Report:
    try:
        return await follow_run(client, store, run, on_event, say, after)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(
            f"{run} continues on Temporal. See it: chargehand show {run}. Stop it: chargehand cancel {run}"
        ) from None


async def resume_run(
    runs: AllRuns, run: str, added: Added, on_event: Listener | None = None, say: Say | None = None
) -> Report:
    """Follow a run that is under way, or start a run again that was cancelled, terminated, or is to be continued."""
    settings, store = runs.settings_of(run), runs.store_of(run)
    if settings is None or store is None:
        raise UsageError(f"{run} is not a run on Temporal.")
    state = runs.state(run)
    check_limits(state, added)
    if stays_ended(state, added, BlobMailbox(store, run, RUN)):
        return report_ended(state, added, BlobMailbox(store, run, RUN), say)
    client = await connect(settings)
    if not await is_running(settings, run):
        tasks = len((state.plan or {}).get("tasks", ()))
        await launch(client, await asyncio.to_thread(_start_again, store, run, state, added), tasks)
    return await _follow(client, store, run, on_event, say, state.seq)


def _start_again(store: BlobStore, run: str, state: Replay, added: Added) -> RunStart:
    start = read_start(store, run)
    generation = 1
    while not store.create(store.path(run, "executions", str(generation)), b""):
        generation += 1
    topped_up = top_up(state, added)
    return RunStart(
        run=run,
        queue=start["queue"],
        workers=[worker["name"] for worker in start["team"]["workers"]],
        width=topped_up.max_concurrent,
        tokens=topped_up.budget.tokens,
        usd=topped_up.budget.usd,
        deadline_s=topped_up.deadline_s,
        generation=generation,
        reopen=sorted(reopened_tasks(state, added)) if added.reopens else [],
        reopens=added.reopens,
        owned_s=state.owned_s,
    )
