"""What was asked: the text, the material, the budget and the deadline."""

from __future__ import annotations

from chargehand.values.base import JSON, Field, Value
from chargehand.values.budget import Budget
from chargehand.values.default_limits import DEFAULT_CONCURRENCY, DEFAULT_TASKS, DEFAULT_WAIT_S
from chargehand.values.outcome import Gap

# The name of the team of one worker that answers a request in one plain call.
SINGLE_CALL = "single"


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


class Subject(Value):
    """What a given plan is about, for a planner that may add tasks to it: names and figures, never what is in files."""

    # Name -> what the planner sees of it.
    files: dict[str, JSON] = Field(default_factory=dict[str, JSON])
    notes: str = ""


class AppRun(Value):
    """The app that began a run, and what it needs to finish and to show it later. Kept on the record, read by apps."""

    name: str
    options: dict[str, JSON] = Field(default_factory=dict[str, JSON])


class Request(Value):
    """What a run was asked for, with its material and limits."""

    text: str
    # The part of the text that routing rules are matched with; None means all of it. It has no results of other tasks.
    asked: str | None = None
    material: tuple[Material, ...] = ()
    budget: Budget = Field(default_factory=Budget)
    deadline_s: float | None = None
    # How long to wait for a provider that asks for a pause; 0 means not at all.
    wait_s: float = DEFAULT_WAIT_S
    max_concurrent: int = DEFAULT_CONCURRENCY
    max_tasks: int = DEFAULT_TASKS
    # A person is asked before a plan runs, and about escalations and tool calls that need approval.
    approve: bool = False
    ask: bool = False
    # A reviewer looks at the answer before it is given.
    critic: bool = False
    # The workers the team names for it may search the web and fetch pages.
    web: bool = False
    answer_schema: dict[str, JSON] | None = None
    earlier: Earlier | None = None
    # Set when a planner may add tasks to a given plan; without it, the plan runs as it is.
    subject: Subject | None = None
    # What is known to be missing before the run begins.
    gaps: tuple[Gap, ...] = ()
    # What code decided before the run began, for the reader of the report.
    notes: tuple[str, ...] = ()
    # Absent on records from before apps were named on them.
    app: AppRun | None = None
