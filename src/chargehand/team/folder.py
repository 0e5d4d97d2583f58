"""A team's name or folder becomes a Team, or one InvalidTeam with every problem, its file and its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from chargehand.budget import Budget
from chargehand.errors import InvalidPlan, InvalidTeam, UsageError
from chargehand.plan import Problem, Synthesis, errors_in
from chargehand.plan import parse as parse_plan
from chargehand.recovery import Policy
from chargehand.settings import Limits, Models
from chargehand.settings.file import Reader
from chargehand.settings.toml_file import read, suggestion
from chargehand.team.agent_file import AgentFile, read_agent
from chargehand.team.code import TeamCode, is_trusted, read_code, shipped_home
from chargehand.team.roster import Example, Scrutiny, Team, Where, invalid, worker_problems
from chargehand.team.worker import DEFAULT_STEPS
from chargehand.tools import BUILTIN
from chargehand.trust import TrustRegistry

_KEYS = frozenset(
    {
        "name",
        "description",
        "disclaimer",
        "supervisor",
        "limits",
        "budget",
        "synthesis",
        "models",
        "people",
        "recovery",
        "shared_tools",
    }
)
_LATER = frozenset({"factory", "routes"})
_RECOVERY = frozenset({"attempts", "ladder", "score", "hedge_after"})
_LIMITS = frozenset({"max_concurrent", "max_tasks", "max_steps", "deadline"})
_Shape = TypeVar("_Shape", Synthesis, Scrutiny)
_LABELS_OF_ROUTES = frozenset({"route", "primary", "worker"})


@dataclass(slots=True)
class _Parts:
    """What team.toml says, with what is wrong in it. Only `_toml_parts` writes it."""

    name: str
    description: str = ""
    shared_tools: tuple[str, ...] = ()
    shared_line: int | None = None
    synthesis: Synthesis = field(default_factory=Synthesis)
    scrutiny: Scrutiny = field(default_factory=Scrutiny)
    disclaimer: str = ""
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    models: Models = field(default_factory=Models)
    ask: bool = False
    recovery: Policy = field(default_factory=Policy)
    steps: int = DEFAULT_STEPS
    problems: list[Problem] = field(default_factory=list[Problem])


def load(ref: str | Path, trust: TrustRegistry | None = None) -> Team:
    """The shipped team of that name, else the team in that folder. Without `trust` no folder's tool code is run."""
    if isinstance(ref, str) and ref in dict(shipped()):
        return _load_folder(shipped_home() / ref, trust)
    folder = Path(ref).expanduser()
    if folder.name == "team.toml" and folder.is_file():
        folder = folder.parent
    if not folder.is_dir():
        names = [name for name, _ in shipped()]
        raise InvalidTeam(
            f"There is no team {str(ref)!r}: name a folder or a shipped team.{suggestion(str(ref), names)}"
        )
    return _load_folder(folder, trust)


def shipped() -> list[tuple[str, str]]:
    """Name and description of every team that comes with chargehand."""
    return [
        (path.parent.name, str(read(path).data.get("description", "")))
        for path in sorted(shipped_home().glob("*/team.toml"))
    ]


def _load_folder(folder: Path, trust: TrustRegistry | None) -> Team:
    bare = not (folder / "team.toml").is_file()
    if bare and (folder / "workers").is_dir():
        message = "team.toml:1: the folder has workers/ but no team.toml: add one with name and description."
        raise invalid(folder.name, [Problem(code="no_team_file", message=message)])
    parts = _Parts(folder.resolve().name) if bare else _toml_parts(folder, trust)
    code = TeamCode() if bare else _code(folder, trust, parts.problems)
    agents = _agents(folder, parts, code, bare)
    _keep_from_network(agents, folder, trust)
    parts.problems += [problem for agent in agents for problem in agent.problems]
    found = [(agent, agent.worker) for agent in agents if agent.worker is not None]
    workers = [worker for _, worker in found]
    if bare:
        # Every worker may hold any tool, as where the files come from.
        parts.shared_tools = tuple(sorted({name for worker in workers for name in worker.tool_names}))
    examples = [] if bare else _examples(folder, [worker.name for worker in workers], parts.problems)
    where = _where([agent for agent, _ in found], parts.shared_line)
    of_roster = worker_problems(workers, parts.shared_tools, where, known_tools=[*BUILTIN, *code.tools])
    if wrong := errors_in([*parts.problems, *of_roster]):
        raise invalid(parts.name, wrong)
    return Team(
        workers,
        name=parts.name,
        description=parts.description,
        shared_tools=parts.shared_tools,
        examples=examples,
        synthesis=parts.synthesis,
        scrutiny=parts.scrutiny,
        disclaimer=parts.disclaimer,
        budget=parts.budget,
        limits=parts.limits,
        models=parts.models,
        ask=parts.ask,
        recovery=parts.recovery,
        tools_path=code.path,
        tools_hash=code.hash,
        # The roster's own warnings are found again by `Team.problems`.
        warnings=parts.problems,
    )


def _agents(folder: Path, parts: _Parts, code: TeamCode, bare: bool) -> list[AgentFile]:
    paths = sorted({*folder.glob("*.md"), *folder.glob("*/*.md")}) if bare else sorted(folder.glob("workers/*.md"))
    tools = {**BUILTIN, **code.tools}
    agents = [read_agent(path, folder, tools, bare=bare, steps=parts.steps) for path in paths]
    if code.warning is not None:
        # What could not be found may be in the code that was not loaded: the worker does without it.
        lost = [name for agent in agents if agent.worker for name in agent.worker.missing_tools]
        without = f" (left out: {', '.join(dict.fromkeys(lost))})" if lost else ""
        parts.problems.append(Problem(code="untrusted_code", severity="warning", message=code.warning + without))
        for agent in agents:
            agent.worker = agent.worker and agent.worker.without_missing_tools()
    return agents


def _keep_from_network(agents: list[AgentFile], folder: Path, trust: TrustRegistry | None) -> None:
    """Tools that reach the network are left out of workers whose file is not trusted."""
    for agent in agents:
        reaching = [t.name for t in agent.worker.tools if t.needs_trust] if agent.worker else []
        if agent.worker is None or not reaching or is_trusted(folder / agent.label, trust):
            continue
        agent.worker = agent.worker.without_tools(reaching)
        remedy = f"{folder} is not trusted; to allow it: chargehand trust {folder.resolve()}"
        names = ", ".join(reaching)
        agent.warn("untrusted_tool", "tools", f"left out, since it reaches the network: {names}; {remedy}")


def _where(agents: list[AgentFile], shared_line: int | None) -> Where:
    def where(index: int, key: str) -> str:
        if index >= 0:
            return agents[index].place(key)
        return f"team.toml:{shared_line if key else 1}: " if shared_line else ""

    return where


def _code(folder: Path, trust: TrustRegistry | None, problems: list[Problem]) -> TeamCode:
    try:
        return read_code(folder, trust)
    except UsageError as error:
        problems.append(Problem(code="invalid_tools", message=str(error)))
        return TeamCode()


def _toml_parts(folder: Path, trust: TrustRegistry | None) -> _Parts:
    parts = _Parts(folder.resolve().name)
    try:
        file = read(folder / "team.toml", "team.toml")
    except UsageError as error:
        parts.problems.append(Problem(code="invalid_toml", message=str(error)))
        return parts
    reader, data = Reader(file, trusted=is_trusted(file.path, trust)), file.data
    for key in sorted(data.keys() - _KEYS - _LATER):
        reader.unknown((key,), _KEYS)
    for key in sorted(data.keys() & _LATER):
        reader.wrong((key,), f"[{key}] is not available yet in this version.", "not_available")
    parts.name = reader.text(data, "name") or parts.name
    parts.description = reader.text(data, "description") or ""
    parts.disclaimer = reader.text(data, "disclaimer") or ""
    if "description" not in data:
        reader.wrong(("description",), "the team has no description: say what it is for.", "missing_description")
    parts.shared_tools = _shared_tools(reader, data)
    parts.shared_line = file.line(("shared_tools",))
    parts.budget = reader.budget(data)
    tiers, roles = reader.models(data)
    parts.models = Models(tiers=tiers, roles=roles)
    _limits(reader, data, parts)
    _supervisor(reader, data)
    parts.ask = _ask(reader, data)
    parts.recovery = _recovery(reader, data)
    parts.synthesis, parts.scrutiny = _synthesis(reader, data)
    parts.problems += [Problem(code=code, message=message) for code, message in reader.problems]
    parts.problems += [Problem(code="untrusted_option", severity="warning", message=line) for line in reader.ignored]
    return parts


def _shared_tools(reader: Reader, data: Mapping[str, Any]) -> tuple[str, ...]:
    value = data.get("shared_tools", [])
    if isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value)):
        return tuple(cast("list[str]", value))
    reader.wrong(("shared_tools",), "'shared_tools' is a list of names of tools.")
    return ()


def _limits(reader: Reader, data: Mapping[str, Any], parts: _Parts) -> None:
    table = reader.table(data, "limits")
    for key in sorted(table.keys() - _LIMITS):
        reader.unknown(("limits", key), _LIMITS)
    concurrent = reader.number(table, "max_concurrent", "limits", whole=True)
    tasks = reader.number(table, "max_tasks", "limits", whole=True)
    parts.limits = Limits(
        max_concurrent=None if concurrent is None else int(concurrent),
        max_tasks=None if tasks is None else int(tasks),
        deadline_s=reader.number(table, "deadline", "limits", whole=False),
    )
    steps = reader.number(table, "max_steps", "limits", whole=True)
    parts.steps = DEFAULT_STEPS if steps is None else int(steps)


def _ask(reader: Reader, data: Mapping[str, Any]) -> bool:
    table = reader.table(data, "people")
    for key in sorted(table.keys() - {"ask"}):
        reader.unknown(("people", key), {"ask"})
    value = table.get("ask", False)
    if not isinstance(value, bool):
        reader.wrong(("people", "ask"), f"'ask' is true or false, not {value!r}.")
        return False
    return value


def _recovery(reader: Reader, data: Mapping[str, Any]) -> Policy:
    table = dict(reader.table(data, "recovery"))
    if "hedge_after" in table:
        table["hedge_after_s"] = table.pop("hedge_after")
    try:
        return Policy.model_validate(table)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            names = [str(part) for part in each["loc"] if isinstance(part, str)]
            names = ["hedge_after" if name == "hedge_after_s" else name for name in names]
            if each["type"] == "extra_forbidden":
                reader.unknown(("recovery", *names), _RECOVERY)
            else:
                reader.wrong(("recovery", *names), f"'{'.'.join(names)}': {each['msg']}.")
        return Policy()


def _supervisor(reader: Reader, data: Mapping[str, Any]) -> None:
    table = reader.table(data, "supervisor")
    for key in sorted(table.keys() - {"mode"}):
        reader.unknown(("supervisor", key), {"mode"})
    mode = reader.text(table, "mode", "supervisor")
    if mode == "route":
        reader.wrong(("supervisor", "mode"), 'mode = "route" is not available yet in this version.', "not_available")
    elif mode not in (None, "plan"):
        reader.wrong(("supervisor", "mode"), f"'mode' is 'plan' or 'route', not {mode!r}.")


def _synthesis(reader: Reader, data: Mapping[str, Any]) -> tuple[Synthesis, Scrutiny]:
    table = dict(reader.table(data, "synthesis"))
    own = {key: table.pop(key) for key in [*table] if key in Synthesis.model_fields}
    return _checked(reader, "synthesis", Synthesis, own), _checked(reader, "synthesis", Scrutiny, table)


def _checked(reader: Reader, name: str, shape: type[_Shape], table: Mapping[str, Any]) -> _Shape:
    """The table as that value; what is wrong in it is told with its line, and then it is the default."""
    try:
        return shape.model_validate(table)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            names = tuple(str(part) for part in each["loc"] if isinstance(part, str))
            if each["type"] == "extra_forbidden":
                reader.unknown((name, *names), {*Synthesis.model_fields, *Scrutiny.model_fields})
            else:
                reader.wrong((name, *names), f"'{'.'.join(names)}': {each['msg']}.")
        return shape()


def _examples(folder: Path, workers: list[str], problems: list[Problem]) -> list[Example]:
    examples: list[Example] = []
    for path in sorted(folder.glob("examples/*.json")):
        label = path.relative_to(folder).as_posix()
        try:
            examples.append(_example(json.loads(path.read_text(encoding="utf-8")), workers))
        except json.JSONDecodeError as error:
            problems.append(Problem(code="invalid_example", message=f"{label}:{error.lineno}: not JSON: {error.msg}."))
        except (OSError, UnicodeDecodeError, InvalidPlan) as error:
            problems.append(Problem(code="invalid_example", message=f"{label}:1: {error}"))
        except _RouteExample:
            message = f"{label}:1: examples of routes are not available yet in this version."
            problems.append(Problem(code="not_available", message=message))
    return examples


class _RouteExample(Exception):
    """The example is of a route, not of a plan."""


def _example(data: Any, workers: list[str]) -> Example:
    fields: dict[str, Any] = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    if "plan" not in fields and fields.keys() & _LABELS_OF_ROUTES:
        raise _RouteExample
    if fields.keys() != {"request", "plan"} or not isinstance(fields["request"], str) or not fields["request"].strip():
        raise InvalidPlan('an example is {"request": "...", "plan": {...}}.')
    plan = parse_plan(fields["plan"])
    if wrong := errors_in(plan.problems(workers)):
        raise InvalidPlan("the plan is not valid: " + " ".join(problem.message for problem in wrong), wrong)
    return Example(request=fields["request"], plan=plan)
