"""The inputs of a synthesis and its result: the answer and what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.base import JSON
from chargehand.values.outcome import Finding, Usage
from chargehand.values.plan import Plan
from chargehand.values.report import Contradiction, Gap, Provenance
from chargehand.values.request import Request

# What is wrong with the answer as data, in addition to its schema; None when it is good.
Validate: TypeAlias = Callable[[JSON], str | None]
# The number of the draft, from 1, and what it grew by. A higher number begins a new text.
OnDraft: TypeAlias = Callable[[int, str], None]


# The codes of the problems because of which a run is not complete.
_KEEPS_OPEN = ("unknown_citation", "unsupported_figure")


def keeps_open(provenance: Provenance) -> tuple[str, ...]:
    """The problems because of which a run is not complete."""
    return tuple(problem for problem in provenance.problems if problem.startswith(_KEEPS_OPEN))


@dataclass(frozen=True, slots=True)
class Synthesis:
    """`findings` are those of all workers, duplicates merged and, where the team asks for it, rated."""

    answer: str
    findings: tuple[Finding, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    confidence: int | None = None
    provenance: Provenance = field(default_factory=Provenance)
    data: JSON = None
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


class SynthesisContext(NamedTuple):
    """What all steps of a synthesis need. `used` grows with each call, so a synthesis that is cut short is counted.

    `mark` separates the keys of an answer that is written again (`x1/`) from those of the earlier answer.
    """

    request: Request
    plan: Plan
    engine: Engine
    model: SupervisorModel
    used: list[Usage]
    mark: str = ""

    @property
    def asked(self) -> dict[str, str]:
        """Task -> its instruction."""
        return {task.id: task.instruction for task in self.plan.tasks}


def upstream(plan: Plan, tasks: Iterable[str]) -> set[str]:
    """The tasks that these depend on, directly or not."""
    depends_on = {task.id: task.depends_on for task in plan.tasks}
    found: set[str] = set()
    waiting = [id for task in tasks for id in depends_on.get(task, ())]
    while waiting:
        if (id := waiting.pop()) not in found:
            found.add(id)
            waiting.extend(depends_on.get(id, ()))
    return found
