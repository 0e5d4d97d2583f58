"""The result of planning: a plan, or why there is none."""

from __future__ import annotations

from typing import NamedTuple

from chargehand.values.outcome import Fault, Usage
from chargehand.values.plan import Plan, Problem


class Planned(NamedTuple):
    plan: Plan
    usage: Usage


class Unplanned(NamedTuple):
    """There is no valid plan: why, and what trying used."""

    fault: Fault
    problems: tuple[Problem, ...]
    usage: Usage
