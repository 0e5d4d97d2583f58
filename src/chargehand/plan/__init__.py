"""Task and Plan: the graph a supervisor makes, read from JSON, with all its problems at once."""

from chargehand.plan.graph import (
    MOST_MEMBERS,
    TASK_ID,
    TIERS,
    UNASSIGNED,
    WORKER_NAME,
    Factory,
    Plan,
    Strategy,
    Synthesis,
    Task,
    Tier,
    WorkerSpec,
)
from chargehand.plan.problem import Problem, ProblemCode, errors_in
from chargehand.plan.reading import Reading, parse, read, with_valid_ids

__all__ = [
    "MOST_MEMBERS",
    "TASK_ID",
    "TIERS",
    "UNASSIGNED",
    "WORKER_NAME",
    "Factory",
    "Plan",
    "Problem",
    "ProblemCode",
    "Reading",
    "Strategy",
    "Synthesis",
    "Task",
    "Tier",
    "WorkerSpec",
    "errors_in",
    "parse",
    "read",
    "with_valid_ids",
]
