"""The last step of a run: what no other step carried, and the report with all that was spent, go on the record."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from typing import Any

from chargehand.engine.engine_session import Spent
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import StepOrder, StepResult
from chargehand.runs.report_from_record import unfinished_report
from chargehand.runs.session import add_spent
from chargehand.runs.temporal.blob_source import fold_run
from chargehand.runs.temporal.carried_notes import marked_refs, notes_as_events
from chargehand.runs.temporal.stored_run import StoredOutcomes, read_report, read_step
from chargehand.values.event import Event, RunEnded
from chargehand.values.outcome import Usage
from chargehand.values.report import Report

END = "@end"


async def close_run(store: BlobStore, order: StepOrder, token: int) -> StepResult:
    done = await asyncio.to_thread(read_step, store, order.run, END)
    if done is not None and done["result"].get("turn", 0) >= order.turn:
        return StepResult(**done["result"]["step"])
    journal = await asyncio.to_thread(BlobJournal.open, store, order.run, END, token)
    outcomes = StoredOutcomes(store, order.run)
    ends = {note[1]: note[3] for note in order.notes if note[0] == "task_ended"}
    await asyncio.to_thread(outcomes.load, ends, marked_refs(order.notes), ())
    numbered = enumerate(notes_as_events(order, outcomes), journal.last_seq + 1)
    notes = [event._replace(seq=seq) for seq, event in numbered]
    if notes:
        await journal.append(notes, {})
    report = await asyncio.to_thread(_report, store, order)
    ended = RunEnded(status=report.status, report=report.to_json())
    await journal.append([Event(order.run, journal.last_seq + 1, time.time(), None, None, ended)], {})
    result = StepResult(head={"status": "done", "report": report.status})
    kept = {"step": asdict(result), "turn": order.turn, "segment": END}
    await asyncio.to_thread(outcomes.save, END, kept, journal.last_seq, time.time(), ())
    return result


def _report(store: BlobStore, order: StepOrder) -> Report:
    ref: str | None = order.refs.get("draft")
    if ref is None:
        return unfinished_report(fold_run(store, order.run), "cancelled")
    report = read_report(store, order.run, ref)
    return add_spent(report, _total_spent(report, order.extras))


def _total_spent(report: Report, extras: list[dict[str, Any]]) -> Spent:
    """What outcomes tell of, and what segments spent beside it."""
    return Spent(
        tokens=0,
        usd=0.0,
        lost=Usage.total([Usage.model_validate(extra["lost"]) for extra in extras]),
        estimated=tuple(tokens for extra in extras for tokens in extra["estimated"]),
        used=report.usage,
        short=sum(extra["short"] for extra in extras),
    )
