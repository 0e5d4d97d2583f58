"""Folds over a run's events: its state as it happens, and its record as JSON, JSON lines, a page, a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargehand.trace.export import to_json, to_jsonl
from chargehand.trace.plan_graph import to_mermaid, to_text
from chargehand.trace.run_parts import AttemptView, CallView, Decision, SessionView, Tally, TaskState, TaskStatus
from chargehand.trace.run_state import RunState, fold

if TYPE_CHECKING:
    from chargehand.trace.html import to_html

__all__ = [
    "AttemptView",
    "CallView",
    "Decision",
    "RunState",
    "SessionView",
    "Tally",
    "TaskState",
    "TaskStatus",
    "fold",
    "to_html",
    "to_json",
    "to_jsonl",
    "to_mermaid",
    "to_text",
]


def __getattr__(name: str) -> Any:
    # The page is made after a run, if at all: watching one needs none of it.
    if name != "to_html":
        raise AttributeError(f"module 'chargehand.trace' has no attribute {name!r}")
    from chargehand.trace.html import to_html

    return to_html
