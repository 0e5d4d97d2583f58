"""A team as data: its workers, what they share, how it is limited, and everything wrong with it at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import Field

from chargehand.budget import Budget
from chargehand.errors import InvalidTeam
from chargehand.plan import Plan, Problem, Synthesis, errors_in
from chargehand.recovery import Policy
from chargehand.settings import Limits, Models
from chargehand.settings.toml_file import suggestion
from chargehand.team.worker import Worker
from chargehand.tools import BUILTIN, Tool
from chargehand.value import JSON, Value

WORKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MOST_WORKERS = 7
MOST_TOOLS = 10
ESCALATE = "escalate"

# Says where a worker's field is written, as `file:line: `; empty for a team made in Python.
Where: TypeAlias = Callable[[int, str], str]


class Example(Value):
    """A request and a good plan for it, shown to the planner."""

    request: str = Field(min_length=1)
    plan: Plan


@dataclass(frozen=True, init=False)
class Team:
    """Workers that serve one kind of request. Always valid: making one with errors raises InvalidTeam."""

    workers: tuple[Worker, ...]
    name: str
    description: str
    shared_tools: tuple[str, ...]
    examples: tuple[Example, ...]
    synthesis: Synthesis
    budget: Budget
    limits: Limits
    models: Models
    # Escalations may reach a person, as with `--ask`.
    ask: bool
    # What is done about tasks that fail.
    recovery: Policy
    # Where its own tool code is and the hash it had when it was loaded.
    tools_path: str | None
    tools_hash: str | None
    # What loading left out: one line each.
    warnings: tuple[Problem, ...]

    def __init__(
        self,
        workers: Iterable[Worker],
        *,
        name: str = "team",
        description: str = "",
        shared_tools: Iterable[str] = (),
        examples: Iterable[Example] = (),
        synthesis: Synthesis | None = None,
        budget: Budget | None = None,
        limits: Limits | None = None,
        models: Models | None = None,
        ask: bool = False,
        recovery: Policy | None = None,
        tools_path: str | None = None,
        tools_hash: str | None = None,
        warnings: Iterable[Problem] = (),
    ) -> None:
        values: dict[str, Any] = {
            "workers": tuple(workers),
            "name": name,
            "description": description,
            "shared_tools": tuple(shared_tools),
            "examples": tuple(examples),
            "synthesis": synthesis or Synthesis(),
            "budget": budget or Budget(),
            "limits": limits or Limits(),
            "models": models or Models(),
            "ask": ask,
            "recovery": recovery or Policy(),
            "tools_path": tools_path,
            "tools_hash": tools_hash,
            "warnings": tuple(warnings),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if wrong := errors_in(self.problems()):
            raise invalid(self.name, wrong)

    def problems(self) -> list[Problem]:
        """Everything to say about the team; of a team that exists only warnings are left."""
        return [*self.warnings, *worker_problems(self.workers, self.shared_tools)]

    def worker(self, name: str) -> Worker:
        """The worker of that name; KeyError when there is none."""
        return {worker.name: worker for worker in self.workers}[name]

    def fallbacks(self) -> dict[str, str]:
        return {worker.name: worker.fallback for worker in self.workers if worker.fallback is not None}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(worker.name for worker in self.workers)

    def tools(self) -> dict[str, Tool]:
        """Every tool a worker of the team holds or is checked by, by name."""
        return {t.name: t for worker in self.workers for t in worker.all_tools}

    def to_json(self) -> dict[str, JSON]:
        """As stored with a run, so that it can be resumed with the team it started with."""
        return {
            "name": self.name,
            "description": self.description,
            "workers": [worker.to_json() for worker in self.workers],
            "shared_tools": list(self.shared_tools),
            "examples": [{"request": e.request, "plan": e.plan.to_json()} for e in self.examples],
            "synthesis": self.synthesis.to_json(),
            "budget": self.budget.to_json(),
            "limits": self.limits.to_json(),
            "models": self.models.to_json(),
            "people": {"ask": self.ask},
            "recovery": self.recovery.to_json(),
            "tools_path": self.tools_path,
            "tools_hash": self.tools_hash,
        }

    @staticmethod
    def from_json(data: Mapping[str, JSON], tools: Mapping[str, Tool]) -> Team:
        """The stored team; `tools` are its own tools, the built-ins are known."""
        known = {**BUILTIN, **tools}
        return Team(
            [Worker.from_json(worker, known) for worker in data["workers"]],
            name=data["name"],
            description=data["description"],
            shared_tools=data["shared_tools"],
            examples=[Example.model_validate(example) for example in data["examples"]],
            synthesis=Synthesis.model_validate(data["synthesis"]),
            budget=Budget.model_validate(data["budget"]),
            limits=Limits.model_validate(data["limits"]),
            models=Models.model_validate(data["models"]),
            ask=data.get("people", {}).get("ask", False),
            recovery=Policy.model_validate(data.get("recovery", {})),
            tools_path=data["tools_path"],
            tools_hash=data["tools_hash"],
        )


def invalid(name: str, problems: Sequence[Problem]) -> InvalidTeam:
    lines = "".join(f"\n  {problem.message}" for problem in problems)
    return InvalidTeam(f"The team {name!r} cannot be used:{lines}", problems)


def worker_problems(
    workers: Sequence[Worker],
    shared_tools: Iterable[str],
    where: Where = lambda _index, _field: "",
    *,
    known_tools: Iterable[str] = tuple(BUILTIN),
) -> list[Problem]:
    """Everything wrong with a roster."""
    shared = set(shared_tools)
    found: list[Problem] = []
    if not workers:
        found.append(
            Problem(code="no_workers", message=f"{where(-1, '')}the team has no workers: give it at least one.")
        )
    for index, worker in enumerate(workers):
        found += _own_problems(worker, lambda field, at=index: where(at, field), [*known_tools])
    found += _duplicates(workers, where)
    found += _clashes(workers, where)
    found += _overlaps(workers, shared, where)
    held = {name for worker in workers for name in (*worker.tool_names, *worker.missing_tools)}
    for name in sorted(shared - held - set(known_tools)):
        message = f"{where(-1, 'shared_tools')}the shared tool {name!r} does not exist."
        message += suggestion(name, {*held, *known_tools})
        found.append(Problem(code="unknown_tool", message=message))
    found += _fallback_problems(workers, where)
    if len(workers) > MOST_WORKERS:
        message = (
            f"{len(workers)} workers are hard to plan for: move some into a sub-team (at most {MOST_WORKERS} is best)."
        )
        found.append(Problem(code="too_many_workers", severity="warning", message=where(-1, "") + message))
    return found


def _own_problems(worker: Worker, where: Callable[[str], str], known_tools: Sequence[str]) -> list[Problem]:
    found: list[Problem] = []
    if not WORKER_NAME.fullmatch(worker.name):
        message = (
            f"{where('name')}{worker.name!r} is not a worker's name: use letters, digits, '-', '_' and '.', at most 64."
        )
        found.append(Problem(code="invalid_name", message=message))
    if not worker.description.strip():
        message = f"{where('description')}the worker {worker.name!r} has no description: the planner chooses by it."
        found.append(Problem(code="missing_description", message=message))
    for name in worker.missing_tools:
        message = f"{where('tools')}the worker {worker.name!r} has the tool {name!r}, which does not exist."
        found.append(Problem(code="unknown_tool", message=message + suggestion(name, known_tools)))
    if ESCALATE in worker.tool_names:
        message = f"{where('tools')}every worker has a built-in tool {ESCALATE!r}: rename the one of {worker.name!r}."
        found.append(Problem(code="duplicate_tool", message=message))
    if worker.kind == "human":
        held = {"tools": worker.tool_names or worker.missing_tools, "model": worker.model, "tier": worker.tier}
        for key in (name for name, value in held.items() if value):
            message = f"{where(key)}the worker {worker.name!r} is a person, who has no {key!r}: leave it out."
            found.append(Problem(code="invalid_value", message=message))
    if worker.max_steps < 1:
        message = f"{where('maxTurns')}the worker {worker.name!r} may take {worker.max_steps} steps: allow at least 1."
        found.append(Problem(code="invalid_value", message=message))
    if worker.temperature is not None and not 0 <= worker.temperature <= 2:
        message = f"{where('temperature')}the temperature {worker.temperature} is not between 0 and 2."
        found.append(Problem(code="invalid_value", message=message))
    if worker.model is not None and not all(worker.model.partition(":")):
        message = f"{where('model')}{worker.model!r} is not a model: write 'provider:name', or a tier as 'tier'."
        found.append(Problem(code="invalid_value", message=message))
    if len(worker.tools) > MOST_TOOLS:
        message = f"the worker {worker.name!r} has {len(worker.tools)} tools: split it (at most {MOST_TOOLS} is best)."
        found.append(Problem(code="too_many_tools", severity="warning", message=where("tools") + message))
    return found


def _duplicates(workers: Sequence[Worker], where: Where) -> list[Problem]:
    seen: dict[str, int] = {}
    found: list[Problem] = []
    for index, worker in enumerate(workers):
        if worker.name in seen:
            message = f"{where(index, 'name')}there are two workers named {worker.name!r}: rename one."
            found.append(Problem(code="duplicate_worker", message=message))
        seen[worker.name] = index
    return found


def _clashes(workers: Sequence[Worker], where: Where) -> list[Problem]:
    """Two different tools of one name: a call by that name could reach the wrong one."""
    first: dict[str, Tool] = {}
    found: list[Problem] = []
    for index, worker in enumerate(workers):
        for held, times in Counter(worker.tool_names).items():
            if times > 1:
                message = f"{where(index, 'tools')}the worker {worker.name!r} has the tool {held!r} twice."
                found.append(Problem(code="duplicate_tool", message=message))
        for held in worker.tools:
            if first.setdefault(held.name, held) is not held and first[held.name] != held:
                message = f"{where(index, 'tools')}two different tools are named {held.name!r}: rename one."
                found.append(Problem(code="duplicate_tool", message=message))
    return found


def _overlaps(workers: Sequence[Worker], allowed: set[str], where: Where) -> list[Problem]:
    holders: dict[str, list[int]] = {}
    for index, worker in enumerate(workers):
        for name in dict.fromkeys(worker.tool_names):
            holders.setdefault(name, []).append(index)
    found: list[Problem] = []
    for name, indexes in holders.items():
        if len(indexes) > 1 and name not in allowed:
            holding = _listed(workers[i].name for i in indexes)
            message = (
                f"{where(indexes[-1], 'tools')}the tool {name!r} is held by {holding}: "
                f"give it to one worker, or list it in shared_tools."
            )
            found.append(Problem(code="shared_tool", message=message))
    return found


def _fallback_problems(workers: Sequence[Worker], where: Where) -> list[Problem]:
    by_name = {worker.name: worker for worker in workers}
    found: list[Problem] = []
    named: set[str] = set()
    for index, worker in enumerate(workers):
        if worker.fallback is None:
            continue
        if worker.fallback not in by_name:
            message = (
                f"{where(index, 'fallback')}the fallback {worker.fallback!r} of {worker.name!r} is not a worker here."
            )
            found.append(Problem(code="unknown_fallback", message=message + suggestion(worker.fallback, by_name)))
        path = _fallback_path(worker, by_name)
        if path[-1] in path[:-1] and not named & set(path):
            cycle = path[path.index(path[-1]) :]
            message = f"{where(index, 'fallback')}the fallbacks go in a circle: {' -> '.join(cycle)}."
            found.append(Problem(code="fallback_cycle", message=message))
            named.update(cycle)
    return found


def _fallback_path(worker: Worker, by_name: Mapping[str, Worker]) -> list[str]:
    """The names reached by following fallbacks; the last is a repeat when they go in a circle."""
    path = [worker.name]
    at = worker
    while at.fallback is not None and at.fallback in by_name:
        path.append(at.fallback)
        if at.fallback in path[:-1]:
            break
        at = by_name[at.fallback]
    return path


def _listed(names: Iterable[str]) -> str:
    *rest, last = [repr(name) for name in names]
    return f"{', '.join(rest)} and {last}" if rest else last
