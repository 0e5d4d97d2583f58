"""What a workflow puts on the record and no step of a task carries -> events of the segment of the run as a whole."""

from __future__ import annotations

import asyncio

from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import StepOrder
from chargehand.runs.temporal.notes_as_events import marked_refs, notes_as_events
from chargehand.runs.temporal.stored_run import StoredOutcomes


async def carry_notes(store: BlobStore, journal: BlobJournal, order: StepOrder) -> StoredOutcomes:
    """Put the notes of an order on the record, unless a try before this one has."""
    outcomes = StoredOutcomes(store, order.run)
    ends = {note[1]: note[3] for note in order.notes if note[0] == "task_ended"}
    await asyncio.to_thread(outcomes.load, ends, marked_refs(order.notes), ())
    events = await asyncio.to_thread(notes_as_events, order, outcomes)
    known = [(each.kind, each.task, each.attempt, each.at) for each in journal.events()]
    fresh = [event for event in events if (event.kind, event.task, event.attempt, event.at) not in known]
    if fresh:
        await journal.append([event._replace(seq=seq) for seq, event in enumerate(fresh, journal.last_seq + 1)], {})
    return outcomes
