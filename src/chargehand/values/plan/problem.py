"""One thing wrong with a plan or a team, under a code from a closed list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chargehand.values.base import Value

ProblemCode = Literal[
    "invalid_id",
    "duplicate_id",
    "unknown_dependency",
    "self_dependency",
    "cycle",
    "unknown_worker",
    "forbidden_tool",
    "missing_instruction",
    "missing_criterion",
    "vague_instruction",
    "fan_out",
    "depth",
    "over_budget",
    "empty_plan",
    # For a plan that a model drafted for a request.
    "dropped_detail",
    "copied_example",
    "unknown_file",
]


class Problem(Value):
    """One thing wrong with a plan or a team; warnings alone do not stop it."""

    code: str
    severity: Literal["error", "warning"] = "error"
    task: str | None = None
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def errors_in(problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]
