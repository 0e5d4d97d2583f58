"""Supervisor-worker teams of LLM agents: a plan as data, run as dataflow, every step on the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from chargehand.apps.review import run as review
    from chargehand.apps.testgen import run as testgen
    from chargehand.events import Event
    from chargehand.runs.send_order import SentOrder
    from chargehand.runs.supervisor import Supervisor
    from chargehand.team import Team, Worker
    from chargehand.tools import ToolContext, tool
    from chargehand.values.effect import Question
    from chargehand.values.outcome import Outcome
    from chargehand.values.plan import Plan, Task
    from chargehand.values.report import Report

__all__ = [
    "Event",
    "Outcome",
    "Plan",
    "Question",
    "Report",
    "SentOrder",
    "Supervisor",
    "Task",
    "Team",
    "ToolContext",
    "Worker",
    "__version__",
    "review",
    "testgen",
    "tool",
]

# Name -> its module, and its name there if that is another.
_HOMES = {
    "Event": "chargehand.events",
    "Outcome": "chargehand.values.outcome",
    "Plan": "chargehand.values.plan",
    "Task": "chargehand.values.plan",
    "Question": "chargehand.values.effect",
    "Report": "chargehand.values.report",
    "SentOrder": "chargehand.runs.send_order",
    "Supervisor": "chargehand.runs.supervisor",
    "Team": "chargehand.team",
    "ToolContext": "chargehand.tools.tool_context",
    "Worker": "chargehand.team",
    "review": "chargehand.apps.review:run",
    "testgen": "chargehand.apps.testgen:run",
    "tool": "chargehand.tools",
}

if not TYPE_CHECKING:  # a type checker knows the names above, and that there are no others

    def __getattr__(name: str) -> Any:
        # Names are loaded at first use, so that `chargehand --help` pays for none of them.
        if name not in _HOMES:
            raise AttributeError(f"module 'chargehand' has no attribute {name!r}")
        from importlib import import_module

        module, _, other = _HOMES[name].partition(":")
        return getattr(import_module(module), other or name)

    def __dir__() -> list[str]:
        # For completion in consoles, which would otherwise see only what was used before.
        return sorted({*globals(), *__all__})
