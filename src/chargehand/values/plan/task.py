"""Task: one piece of work for one worker; and the other parts of a plan."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from chargehand.values.base import JSON, Field, Value
from chargehand.values.budget import Budget
from chargehand.values.field_schema import Before
from chargehand.values.lazy_regex import lazy_regex

Tier = Literal["small", "medium", "large"]

TASK_ID = lazy_regex(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
WORKER_NAME = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TIERS: tuple[Tier, ...] = get_args(Tier)
# Among the names of workers it means that a task may have no worker: a router assigns one.
UNASSIGNED = ""
# The largest number of parallel tries in one attempt.
MOST_MEMBERS = 5


def _none_is_empty(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, Before(_none_is_empty)]


class Task(Value):
    """One self-contained piece of work for one worker. Missing words are empty here and problems in `problems`."""

    id: Text = ""
    worker: Text = ""
    instruction: Text = ""
    context: JSON = None
    success_criterion: Text = ""
    depends_on: tuple[str, ...] = ()
    on_dependency_failure: Literal["skip", "proceed"] = "skip"
    budget: Budget | None = None
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    tier: Tier | None = None
    best_of: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | None = None

    def to_json(self) -> dict[str, JSON]:
        return without_defaults(super().to_json())


def without_defaults(task: dict[str, JSON]) -> dict[str, JSON]:
    """A task as in the contract: optional fields only when they have content."""
    for name in ("budget", "timeout_s", "tier", "best_of"):
        if task[name] is None:
            del task[name]
    if task["on_dependency_failure"] == "skip":
        del task["on_dependency_failure"]
    return task


class SynthesisSpec(Value):
    """How the outcomes become one answer."""

    mode: Literal["merge", "select", "reduce"] = "merge"
    instruction: Text = ""


class WorkerSpec(Value):
    """A worker the plan itself defines; only for teams with a factory."""

    name: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    tier: Tier | None = None


class FactoryLimits(Value):
    """The tools and tiers that workers defined by a plan may have. No others are allowed."""

    tools: tuple[str, ...] = ()
    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)] = TIERS
