"""Task and Plan: the graph a supervisor makes, read from JSON, with all its problems at once."""

from chargehand.values.plan.problem import Problem, ProblemCode, errors_in
from chargehand.values.plan.task import (
    MOST_MEMBERS,
    TASK_ID,
    TIERS,
    UNASSIGNED,
    WORKER_NAME,
    FactoryLimits,
    SynthesisSpec,
    Task,
    Tier,
    WorkerSpec,
)
from chargehand.values.plan.task_graph import Plan, Strategy

__all__ = [
    "MOST_MEMBERS",
    "TASK_ID",
    "TIERS",
    "UNASSIGNED",
    "WORKER_NAME",
    "FactoryLimits",
    "Plan",
    "Problem",
    "ProblemCode",
    "Strategy",
    "SynthesisSpec",
    "Task",
    "Tier",
    "WorkerSpec",
    "errors_in",
]
