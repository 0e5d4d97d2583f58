"""What was asked: the words, the material, the team, the budget and the deadline."""

from __future__ import annotations

from pydantic import Field

from chargehand.budget import Budget
from chargehand.value import JSON, Value


class Material(Value):
    """One file or folder given with `--with`: workers see it under `name`, never its real path."""

    name: str
    path: str


class Earlier(Value):
    """The run a follow-up continues from: what was asked and answered."""

    run: str
    request: str
    answer: str
    outcomes: tuple[dict[str, JSON], ...] = ()


class Request(Value):
    text: str
    material: tuple[Material, ...] = ()
    budget: Budget = Field(default_factory=Budget)
    deadline_s: float | None = None
    max_concurrent: int = 8
    max_tasks: int = 1000
    # A person is asked before a plan runs, and about escalations and tool calls that need approval.
    approve: bool = False
    ask: bool = False
    # A reviewer looks at the answer before it is given.
    critic: bool = False
    answer_schema: dict[str, JSON] | None = None
    earlier: Earlier | None = None
