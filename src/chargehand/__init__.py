"""Supervisor-worker teams of LLM agents: a plan as data, run as dataflow, every step on the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from chargehand.runs.supervisor import Supervisor
    from chargehand.team import Team, Worker
    from chargehand.tools import tool
    from chargehand.values.outcome import Outcome
    from chargehand.values.plan import Plan, Task
    from chargehand.values.report import Report

__all__ = ["Outcome", "Plan", "Report", "Supervisor", "Task", "Team", "Worker", "__version__", "tool"]

_HOMES = {
    "Outcome": "chargehand.values.outcome",
    "Plan": "chargehand.values.plan",
    "Task": "chargehand.values.plan",
    "Report": "chargehand.values.report",
    "Supervisor": "chargehand.runs.supervisor",
    "Team": "chargehand.team",
    "Worker": "chargehand.team",
    "tool": "chargehand.tools",
}


def __getattr__(name: str) -> Any:
    # Names are loaded at first use, so that `chargehand --help` pays for none of them.
    if name not in _HOMES:
        raise AttributeError(f"module 'chargehand' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
