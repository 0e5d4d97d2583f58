"""Folds over a run's events: its state as it happens, and its record as JSON, JSON lines, a page, a graph."""

from chargehand.trace.export import to_json, to_jsonl
from chargehand.trace.graph import to_mermaid, to_text
from chargehand.trace.html import to_html
from chargehand.trace.parts import AttemptView, CallView, Decision, SessionView, Tally, TaskStatus, TaskView
from chargehand.trace.view import RunView, fold

__all__ = [
    "AttemptView",
    "CallView",
    "Decision",
    "RunView",
    "SessionView",
    "Tally",
    "TaskStatus",
    "TaskView",
    "fold",
    "to_html",
    "to_json",
    "to_jsonl",
    "to_mermaid",
    "to_text",
]
