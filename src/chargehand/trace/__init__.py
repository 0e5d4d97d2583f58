"""The events of a run -> its live state, and its record as JSON, JSON lines, spans, a page or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.trace.export import to_json, to_jsonl
    from chargehand.trace.otlp import to_otlp
    from chargehand.trace.pack_page import to_html
    from chargehand.trace.plan_graph import to_mermaid, to_text
    from chargehand.trace.run_parts import AttemptView, CallView, Decision, SessionView, Tally, TaskState, TaskStatus
    from chargehand.trace.run_state import RunState, fold

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
    "to_otlp",
    "to_text",
]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(["to_json", "to_jsonl"], "export"),
        "to_html": "pack_page",
        "to_otlp": "otlp",
        **dict.fromkeys(["to_mermaid", "to_text"], "plan_graph"),
        **dict.fromkeys(
            ["AttemptView", "CallView", "Decision", "SessionView", "Tally", "TaskState", "TaskStatus"], "run_parts"
        ),
        **dict.fromkeys(["RunState", "fold"], "run_state"),
    },
)
