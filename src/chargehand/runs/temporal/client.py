"""A job -> a run on Temporal, started, watched to its end and reported; and orders to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any, TypeAlias

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from chargehand import errors
from chargehand.engine.engine_session import Listener
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import ChargehandError, UsageError
from chargehand.events import Event
from chargehand.record.replay import Replay, replay
from chargehand.runs.make_steps import RunJob
from chargehand.runs.report_from_record import final_report, unfinished_report
from chargehand.runs.temporal.blob_source import BlobRecord
from chargehand.runs.temporal.run_workflow import WORKFLOW, RunStart
from chargehand.runs.temporal.stored_run import find_start, store_run, team_queue
from chargehand.values.report import Report

# The most steps that fit into the history of one workflow.
MOST_STEPS = 12_000
# A worker that is lost while it decides what comes next is replaced after this long; wide plans take longer to decide.
_DECIDING_S, _LONGEST_DECIDING_S, _TASKS_A_SECOND = 10, 60, 100
# How often the record is read for new events.
_LOOK_S = 0.5
# A step that no worker has begun after this long is reported, if nobody polls its queue.
UNSERVED_S = 20.0
# The same for a step whose worker was lost: 15 seconds have passed by then.
_LOST_S = 8.0
# The server lists workers for minutes after they died. A worker that lives polls at least this often.
_POLLS_S = 75.0
# PendingActivityState of the server's API.
_SCHEDULED = 1
Say = Callable[[str], None]
Handle: TypeAlias = "WorkflowHandle[object, object]"


_START_WORKER = "start one with `chargehand worker`, with the same team and the same version of chargehand."


class WorkflowFailed(ChargehandError):
    """The workflow of the run failed."""

    def __init__(self, run: str, kind: str, said: str) -> None:
        super().__init__(f"The run {run} failed ({kind}): {said.rstrip('. ')}. See: chargehand show {run}")
        # An error of our own is for the same person to react to as on one machine.
        self.exit_code = getattr(getattr(errors, kind, None), "exit_code", self.exit_code)


def check_size(job: RunJob) -> None:
    """UsageError for a plan of more steps than one workflow carries."""
    tasks = len(job.plan.tasks) if job.plan is not None else job.request.max_tasks
    if tasks + 3 > MOST_STEPS:
        what = "The plan has" if job.plan is not None else "max_tasks allows"
        raise UsageError(
            f"{what} {tasks:,} tasks: a run on Temporal has at most {MOST_STEPS:,} steps. Split the work into several "
            "runs or nested teams, or run it with --engine local."
        )


async def store_start(store: BlobStore, job: RunJob, prefix: str, material_of: str | None = None) -> RunStart:
    """Store what the run is about; what its workflow is started with."""
    queue = team_queue(job.team, prefix)
    await asyncio.to_thread(store_run, store, job, queue, material_of)
    return RunStart(
        run=job.run,
        queue=queue,
        workers=[worker.name for worker in job.team.workers],
        width=job.request.max_concurrent,
        tokens=job.request.budget.tokens,
        usd=job.request.budget.usd,
        deadline_s=job.request.deadline_s,
    )


async def launch(client: Client, start: RunStart, tasks: int) -> Handle:
    return await client.start_workflow(  # pyright: ignore[reportUnknownMemberType]
        WORKFLOW,
        start,
        id=start.run,
        task_queue=start.queue,
        task_timeout=timedelta(seconds=min(_DECIDING_S + tasks // _TASKS_A_SECOND, _LONGEST_DECIDING_S)),
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )


async def follow_run(
    client: Client,
    store: BlobStore,
    run: str,
    on_event: Listener | None = None,
    say: Say | None = None,
    after: int = 0,
) -> Report:
    """The report, once the run has ended, is paused or only waits for people; events after `after` are passed on."""
    handle = client.get_workflow_handle(run)
    watch = _Watch(client, store, handle, on_event, say, after)
    try:
        while (report := await watch.look()) is None:  # noqa: ASYNC110 -- another process ends it
            await asyncio.sleep(_LOOK_S)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise UsageError(f"The Temporal server knows no run {run}.") from None
        raise UsageError(
            f"The Temporal server at {client.service_client.config.target_host} does not answer ({error.message}). "
            f"{run} continues when it is back. Follow it then: chargehand resume {run}"
        ) from None
    return report


class _Watch:
    """Reads one run repeatedly, and reports what it waits for."""

    def __init__(
        self,
        client: Client,
        store: BlobStore,
        handle: Handle,
        on_event: Listener | None,
        say: Say | None,
        after: int,
    ) -> None:
        self._client = client
        self._start = find_start(store, handle.id)
        self._record = BlobRecord(store, handle.id)
        self._handle = handle
        self._on_event = on_event
        self._say = say
        # The number of the last event that was passed on.
        self._seen = after
        self._looks = 0
        self._said: set[str] = set()

    async def look(self) -> Report | None:
        described = await self._handle.describe()
        status = described.status
        if self._on_event is not None and (self._looks % 2 == 0 or status != WorkflowExecutionStatus.RUNNING):
            for event in await asyncio.to_thread(self._read_new):
                self._seen = event.seq
                self._on_event(event)
        self._looks += 1
        if status == WorkflowExecutionStatus.RUNNING:
            if self._looks % 10 == 9:
                return await self._waits(described)
            return None
        state = await asyncio.to_thread(self._fold)
        if status == WorkflowExecutionStatus.COMPLETED:
            return final_report(state)
        if status == WorkflowExecutionStatus.FAILED:
            raise await self._why_failed()
        if status == WorkflowExecutionStatus.TERMINATED:
            self._say_once(f"The workflow of {self._handle.id} was terminated on the Temporal server.")
        return unfinished_report(state, "interrupted")

    def _read_new(self) -> list[Event]:
        self._record.refresh()
        return list(self._record.events(self._seen))

    def _fold(self) -> Replay:
        self._record.refresh()
        return replay(self._record.events(), self._handle.id)

    async def _waits(self, described: object) -> Report | None:
        """The report of a run that only waits for people; other waits are reported once."""
        pending = described.raw_description.pending_activities  # type: ignore[attr-defined] # pyright: ignore
        for each in pending:  # pyright: ignore[reportUnknownVariableType]
            if each.attempt > 2 and each.HasField("last_failure"):  # pyright: ignore
                failure = each.last_failure  # pyright: ignore
                kind: str = failure.application_failure_info.type or "Timeout"  # pyright: ignore
                self._say_once(f"A step is tried again until it succeeds ({kind}): {failure.message}", kind)  # pyright: ignore
            elif each.attempt > 1 and _has_waited(each, _LOST_S):  # pyright: ignore
                self._say_once(
                    f"A worker was lost ({each.last_worker_identity}), and its step waits for another one. If none is "  # pyright: ignore
                    f"running, {_START_WORKER}",
                    "lost",
                )
        await self._say_unserved(pending)
        if not pending:
            try:
                progress: dict[str, object] = await asyncio.wait_for(self._handle.query("progress"), 5.0)
            except (RPCError, TimeoutError):
                queue = "" if self._start is None else f" ({self._start['queue']})"
                self._say_once(f"No worker answers for this run{queue}: {_START_WORKER}")
                return None
            waiting = progress.get("waiting")
            if progress.get("under_way"):
                return None
            if progress.get("paused"):
                return unfinished_report(await asyncio.to_thread(self._fold), "paused")
            if isinstance(waiting, dict) and "person" in waiting.values():
                return unfinished_report(await asyncio.to_thread(self._fold), "waiting")
        return None

    async def _say_unserved(self, pending: Any) -> None:
        """Steps that no worker has begun for long: the queues that no worker polls."""
        if self._start is None or not any(_has_waited(each, UNSERVED_S) for each in pending):
            return
        queues = [
            self._start["queue"],
            *(f"{self._start['queue']}.{each['name']}" for each in self._start["team"]["workers"]),
        ]
        if unserved := [queue for queue in queues if not await self._is_polled(queue)]:
            self._say_once(f"Steps wait, and no worker polls {', '.join(unserved)}: {_START_WORKER}")

    async def _is_polled(self, queue: str) -> bool:
        from temporalio.api.enums.v1 import TaskQueueType
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        asked = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        pollers = (await self._client.workflow_service.describe_task_queue(asked)).pollers
        return any(_age(each.last_access_time) < _POLLS_S for each in pollers)

    def _say_once(self, text: str, about: str | None = None) -> None:
        """Report a text once, or one text about each thing."""
        about = about or text
        if about not in self._said and self._say is not None:
            self._said.add(about)
            self._say(text)

    async def _why_failed(self) -> WorkflowFailed:
        from temporalio.client import WorkflowFailureError

        try:
            await self._handle.result()
        except WorkflowFailureError as failure:
            cause: BaseException = failure
            while cause.__cause__ is not None:
                cause = cause.__cause__
            kind = getattr(cause, "type", None) or type(cause).__name__
            return WorkflowFailed(self._handle.id, kind, getattr(cause, "message", str(cause)))
        return WorkflowFailed(self._handle.id, "unknown", "The server does not say why.")


def _has_waited(step: Any, seconds: float) -> bool:
    """Whether no worker has begun a pending step for so long."""
    return step.state == _SCHEDULED and _age(step.scheduled_time) > seconds


def _age(moment: Any) -> float:
    """Seconds since a moment as the server gives it."""
    return time.time() - moment.ToDatetime(UTC).timestamp()
