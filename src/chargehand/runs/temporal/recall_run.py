"""The record of a run that ran before -> what its next execution must not do again, a page at a time, without texts."""

from __future__ import annotations

from typing import Any

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import StepOrder, StepResult, pack_head
from chargehand.runs.temporal.blob_source import fold_run, fold_segments
from chargehand.values.head import Head

# Heads in one page: a page stays far below what a payload may be.
PAGE = 1_000


def recall_page(store: BlobStore, order: StepOrder) -> StepResult:
    page, reopen = order.refs.get("round", 0), set(order.added)
    state = fold_run(store, order.run)
    tasks = [task for task in state.ended if "/" not in task and task not in reopen]
    found: dict[str, Any] = {"ended": {}, "ends": {}}
    for task in tasks[page * PAGE : (page + 1) * PAGE]:
        outcome = state.ended[task]
        head = Head.of(outcome, f"{task}/{state.attempts[task]}" if task in state.attempts else task)
        # What it ended with is read from its last attempt; one that was never begun is all in its head.
        data = pack_head(head if task in state.attempts else head.model_copy(update={"ref": None}))
        found["ended"][task] = data
        found["ends"][task] = state.attempts[task] if outcome.ok and task in state.attempts else data
    found["more"] = len(tasks) > (page + 1) * PAGE
    if page == 0:
        found["attempts"] = {task: state.attempts.get(task, 0) for task in reopen}
        spent = fold_segments(store, order.run)
        found["spent"] = {name: [each.spent_tokens, each.spent_usd] for name, each in spent.items()}
        found["decisions"] = {
            key: value
            for key, value in state.decisions.items()
            if key.startswith("@worker/") or (key.startswith("@extend/") and value is not False)
        }
    return StepResult(page=found)
