"""The record of a run that ran before -> what its next execution must not do again, a page at a time, without texts.

With the first page the execution begins: orders that waited get their verdicts, and the record says which tasks run
again.
"""

from __future__ import annotations

import time
from typing import Any

from chargehand import __version__
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN, StepOrder, StepResult, pack_head
from chargehand.events import VERSION, Control, Decided, Event, EventBody, RunStarted
from chargehand.models.resolve import Models
from chargehand.record.replay import Replay
from chargehand.runs.temporal.blob_source import fold_run, fold_segments
from chargehand.runs.temporal.stored_run import hold_steps, keep_outcome, read_start
from chargehand.runs.temporal.take_orders import RunLimits, take_pending
from chargehand.runs.temporal.write_run_notes import carry_notes
from chargehand.text.plan_json import parse
from chargehand.values.key import TaskPath
from chargehand.values.step import Head

# How many heads are in one page: a page stays far below the size limit of a payload.
PAGE = 1_000


async def recall_page(store: BlobStore, order: StepOrder, token: int, models: Models) -> StepResult:
    page = order.refs["round"]
    found: dict[str, Any] = {}
    if page == 0:
        generation = order.refs["generation"] or _claim(store, order)
        if not order.refs.get("forked"):
            await _begin(store, order, generation, token, models)
        found = {"generation": generation}
    state = fold_run(store, order.run)
    if page == 0:
        found |= _facts(store, order, state)
    tasks = [task for task in state.ended if "/" not in task]
    found |= {"ended": {}, "ends": {}, "more": len(tasks) > (page + 1) * PAGE}
    for task in tasks[page * PAGE : (page + 1) * PAGE]:
        head = _head(store, order.run, task, state)
        found["ended"][task] = data = pack_head(head)
        by_attempt = head.ok and head.ref != f"{task}/end"
        found["ends"][task] = state.attempts[task] if by_attempt else data
    return StepResult(page=found)


def _head(store: BlobStore, run: str, task: str, state: Replay) -> Head:
    """How a task ended, with the ref of an object that has the outcome."""
    outcome, ref = state.ended[task], f"{task}/{state.attempts.get(task, 0)}"
    if not store.has(store.path(run, "steps", ref)):
        # It was never begun, or it was interrupted.
        ref = f"{task}/end"
        keep_outcome(store, run, ref, outcome)
    return Head.of(outcome, ref)


def _claim(store: BlobStore, order: StepOrder) -> int:
    """The unique number of the next execution; the same claim gets the same number again."""
    number, claim = 1, str(order.refs["claim"]).encode()
    while not store.create(path := store.path(order.run, "executions", str(number)), claim):
        if store.get(path) == claim:
            break
        number += 1
    return number


async def _begin(store: BlobStore, order: StepOrder, generation: int, token: int, models: Models) -> None:
    journal = BlobJournal.open(store, order.run, RUN, token)
    await carry_notes(store, journal, order)
    await take_pending(store, order.run, journal, models, RunLimits.of(order))
    hold_steps(store, order.run, held=False)
    begun = (event.body for event in journal.events() if isinstance(event.body, RunStarted))
    if any(each.epoch == generation + 1 for each in begun):
        return  # by a try before this one
    state, start = fold_run(store, order.run), read_start(store, order.run)
    request: dict[str, Any] = state.start.get("request") or start["request"]
    limits = order.refs
    request |= {"budget": {"tokens": limits["tokens"], "usd": limits["usd"]}, "deadline_s": limits["deadline_s"]}
    bodies: list[EventBody] = [
        RunStarted(
            version=VERSION,
            chargehand=__version__,
            epoch=generation + 1,
            resumed=True,
            request=request,
            team=start["team"],
            settings=start["settings"],
        )
    ]
    if order.reopens or state.restarts:
        bodies.append(_reopening(state, generation, order.added))
    if state.paused:
        key, now = f"@control/resume-{generation}", time.time()
        bodies.append(Control(key=key, order="continue", by="resume", sent_at=now, verdict="accepted"))
    numbered = enumerate(bodies, journal.last_seq + 1)
    await journal.append([Event(order.run, seq, time.time(), None, None, body) for seq, body in numbered], {})


def _reopening(state: Replay, generation: int, named: list[str]) -> Decided:
    wholes = {TaskPath.parse(restart.task).whole for restart in state.restarts.values()}
    again = parse(state.plan).with_dependents(wholes.union(named)) if state.plan else ()
    restarts = {"restarts": list(state.restarts)} if state.restarts else {}
    reason = "a person restarted tasks" if restarts else "resumed with more budget, time or --retry-failed"
    value = {"tasks": list(again), **restarts}
    return Decided(key=f"@reopen/{generation + 1}", decision="reopen", value=value, reason=reason)


def _facts(store: BlobStore, order: StepOrder, state: Replay) -> dict[str, Any]:
    """What is known of the run as a whole: names, numbers and keys."""
    stops = [
        (key, control)
        for key, control in state.controls.items()
        if control.order == "stop" and control.verdict == "accepted"
    ]
    request: dict[str, Any] = state.start["request"]
    budget: dict[str, Any] = request.get("budget") or {}
    return {
        "reopened": {task: number for task, number in state.reopened.items() if task not in state.ended},
        "restarted": bool(state.restarted),
        "stopped": _keys_of_stops(store, order.run, state, dict(stops)),
        "controls": list(state.controls),
        "limit": {
            "tokens": budget.get("tokens"),
            "usd": budget.get("usd"),
            "deadline_s": request.get("deadline_s"),
        },
        "spent": {
            name: [each.spending.tokens, each.spending.usd] for name, each in fold_segments(store, order.run).items()
        },
        "decisions": {
            key: value
            for key, value in state.decisions.items()
            if key.startswith("@worker/") or (key.startswith("@extend/") and value is not False)
        },
    }


def _keys_of_stops(store: BlobStore, run: str, state: Replay, stops: dict[str, Control]) -> dict[str, str]:
    """Task -> the key of the order that stopped it, for tasks that are still stopped."""
    found: dict[str, str] = {}
    for event in BlobJournal.read(store, run, RUN).events():
        if isinstance(event.body, Control) and event.body.key in stops and event.task in state.stopped:
            found[event.task] = event.body.key
    return found
