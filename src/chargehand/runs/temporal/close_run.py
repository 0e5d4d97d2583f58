"""The last step of a run: it records what no other step carried, and the report with all that was spent."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from typing import Any

from chargehand.engine.engine_session import Spent
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import MOST_TURNS, StepOrder, StepResult
from chargehand.events import Control, Event, RunEnded
from chargehand.record.mailbox import read_order
from chargehand.runs.report_from_record import unfinished_report
from chargehand.runs.session import add_spent
from chargehand.runs.temporal.blob_source import BlobRecord, fold_run
from chargehand.runs.temporal.stored_run import hold_path, read_report, read_step
from chargehand.runs.temporal.write_run_notes import carry_notes
from chargehand.values.budget import Budget
from chargehand.values.order import Order
from chargehand.values.outcome import Usage
from chargehand.values.report import Report
from chargehand.values.status_words import FINISHED

END = "@end"


async def close_run(store: BlobStore, order: StepOrder, token: int) -> StepResult:
    done = await asyncio.to_thread(read_step, store, order.run, END)
    if done is not None and done["result"].get("turn", 0) >= order.turn:
        return StepResult(**done["result"]["step"])
    journal = await asyncio.to_thread(BlobJournal.open, store, order.run, END, token)
    outcomes = await carry_notes(store, journal, order)
    report = await asyncio.to_thread(_report, store, order)
    if report.status in FINISHED:
        await _refuse_late_orders(store, journal)
    # Earlier events get their numbers before the end of the run does.
    await asyncio.to_thread(BlobRecord(store, order.run).refresh)
    budget = Budget(tokens=order.tokens, usd=order.usd)
    ended = RunEnded(status=report.status, report=report.to_json(), budget=budget.to_json())
    await journal.append([Event(order.run, journal.last_seq + 1, time.time(), None, None, ended)], {})
    result = StepResult(head={"status": "done", "report": report.status})
    kept = {"step": asdict(result), "turn": order.turn, "segment": END}
    await asyncio.to_thread(outcomes.save, END, kept, journal.last_seq, time.time(), ())
    return result


async def _refuse_late_orders(store: BlobStore, journal: BlobJournal) -> None:
    """Orders that no step has taken came too late; a restart waits for the next resume."""
    run, folder = journal.run, store.path(journal.run, "orders")
    for path in await asyncio.to_thread(store.list, folder):
        order = None
        if path != hold_path(store, run):
            order = read_order(path.rpartition("/")[2], await asyncio.to_thread(store.get, path))
        if isinstance(order, Order):
            if order.order == "restart":
                continue
            state = await asyncio.to_thread(fold_run, store, run)
            if order.key not in state.controls:
                late = Control(
                    key=order.key,
                    order=order.order,
                    by=order.by,
                    sent_at=order.sent_at,
                    verdict="too_late",
                    reason="The run has ended: no step was left that could take it.",
                    value=order.details,
                )
                await journal.append([Event(run, journal.last_seq + 1, time.time(), order.task, None, late)], {})
        await asyncio.to_thread(store.delete, [path])


def _report(store: BlobStore, order: StepOrder) -> Report:
    ref: str | None = order.refs.get("draft")
    if ref is None:
        return unfinished_report(fold_run(store, order.run), "cancelled")
    report = read_report(store, order.run, ref)
    # Only a resumed run can have reopened tasks.
    earlier = fold_run(store, order.run).earlier_usage() if order.turn >= MOST_TURNS else {}
    return add_spent(report, _total_spent(report, order.extras, earlier))


def _total_spent(report: Report, extras: list[dict[str, Any]], earlier: dict[str, Usage]) -> Spent:
    """What the outcomes count, what attempts used before their tasks were reopened, and what segments spent also."""
    return Spent(
        tokens=0,
        usd=0.0,
        lost=Usage.total([Usage.model_validate(extra["lost"]) for extra in extras]),
        estimated=tuple(tokens for extra in extras for tokens in extra["estimated"]),
        used=Usage.total([report.usage, *earlier.values()]),
        short=sum(extra["short"] for extra in extras),
        earlier=earlier,
    )
