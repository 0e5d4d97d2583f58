"""A plan and a reference -> how much of the reference's graph it has: precision, recall and F1 of nodes and edges.

A node is a task named by its worker, an edge a dependency named by both workers, so that ids and wording do not
matter. Both are multisets: three tasks for one worker are three nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

from chargehand.values.plan import Plan

H = TypeVar("H", bound=Hashable)


class Match(NamedTuple):
    precision: float
    recall: float
    f1: float


NOTHING = Match(0.0, 0.0, 0.0)


def match(given: Iterable[H], wanted: Iterable[H]) -> Match:
    """Precision, recall and F1 of the given items against the wanted items. Two empty lists match perfectly."""
    ours, theirs = Counter(given), Counter(wanted)
    if not ours and not theirs:
        return Match(1.0, 1.0, 1.0)
    shared = (ours & theirs).total()
    precision = shared / ours.total() if ours else 0.0
    recall = shared / theirs.total() if theirs else 0.0
    return Match(precision, recall, 2 * shared / (ours.total() + theirs.total()))


def nodes(plan: Plan) -> list[str]:
    return [task.worker for task in plan.tasks]


def edges(plan: Plan) -> list[tuple[str, str]]:
    worker = {task.id: task.worker for task in plan.tasks}
    return [
        (worker[dep], task.worker) for task in plan.tasks for dep in dict.fromkeys(task.depends_on) if dep in worker
    ]


def parallelism(plan: Plan) -> float:
    """Tasks for each step of the longest chain: 1 for a chain, the number of tasks if no task waits."""
    return len(plan.tasks) / plan.depth if plan.tasks and plan.depth else 0.0
