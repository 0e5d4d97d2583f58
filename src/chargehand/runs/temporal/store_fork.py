"""A job that is forked from another run -> the segments of its record begin with what is taken over."""

from __future__ import annotations

import time

from chargehand import __version__
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.events import VERSION, Event, EventBody, Extended, Reused, RunStarted, ToolCalled
from chargehand.record.copied_events import Copied
from chargehand.runs.make_steps import RunJob
from chargehand.runs.temporal.stored_run import keep_document, read_documents, read_start

_PLAN = "@plan"


async def store_fork(store: BlobStore, job: RunJob, called: list[ToolCalled]) -> None:
    """Put what a fork takes over on its record. `called` are the calls of tools of the run it comes from."""
    fork = job.fork
    assert fork is not None
    start = read_start(store, job.run)
    began = RunStarted(
        version=VERSION,
        chargehand=__version__,
        epoch=1,
        resumed=False,
        request=start["request"],
        team=start["team"],
        settings=start["settings"],
        forked_from={"run": fork.run, "at": fork.at},
    )
    segments: dict[str, list[Copied]] = {_PLAN: [Copied(began, None, None)]}
    for copied in fork.events:
        segments.setdefault(_segment_of(copied), []).append(copied)
    now = time.time()
    for name, events in segments.items():
        journal = BlobJournal.open(store, job.run, name)
        numbered = [Event(job.run, seq, now, task, at, body) for seq, (body, task, at) in enumerate(events, 1)]
        await journal.append(numbered, {})
    _copy_documents(store, job.run, fork.run, [copied.body for copied in fork.events], called)


def _segment_of(copied: Copied) -> str:
    """Where a step of the fork looks for it: at its task, at the supervisor's plan or at an extension of the plan."""
    if copied.task is not None:
        return copied.task.partition("/")[0]
    body = copied.body
    if isinstance(body, Extended):
        return f"@extend/{body.round or 1}"
    key: str = getattr(body, "key", None) or ""
    return "/".join(key.split("/")[:2]) if key.startswith("@extend/") else _PLAN


def _copy_documents(
    store: BlobStore, run: str, earlier: str, bodies: list[EventBody], called: list[ToolCalled]
) -> None:
    """The documents that kept tasks wrote."""
    reused = {body.key for body in bodies if isinstance(body, Reused)}
    wanted = {each.arguments.get("name") for each in called if each.tool == "write_document" and each.key in reused}
    for name, data in read_documents(store, earlier).items() if wanted else ():
        if name in wanted:
            keep_document(store, run, name, data)
