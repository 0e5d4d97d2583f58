"""A team's parts -> everything wrong with them, at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from chargehand.errors import UsageError
from chargehand.models.call_options import EFFORTS
from chargehand.settings.toml_file import suggestion
from chargehand.team.line_numbers import NO_PLACES, Places
from chargehand.team.routes import RouteExample, RouteRule
from chargehand.team.worker import Worker
from chargehand.text.json_schema import problems_in
from chargehand.tools import BUILTIN, Tool
from chargehand.values.plan import WORKER_NAME, Problem

MOST_WORKERS = 7
MOST_TOOLS = 10
ESCALATE = "escalate"
MISSING_TEAM = "missing_team"
NO_WORKERS = "no_workers"

_Problems: TypeAlias = Iterator[Problem]


def team_problems(
    workers: Sequence[Worker],
    *,
    shared_tools: Iterable[str],
    default: str | None,
    routes: Sequence[RouteRule],
    route_examples: Sequence[RouteExample],
    factory_tools: Sequence[Tool | str] | None,
    max_depth: int,
    known_tools: Collection[str] = BUILTIN,
    places: Places = NO_PLACES,
) -> list[Problem]:
    """Everything wrong with a team; `known_tools` are the names that its files may use."""
    return [
        *_worker_problems(workers, set(shared_tools), known_tools, places),
        *_route_problems(workers, default, routes, route_examples, places),
        *_factory_problems(factory_tools, workers, known_tools, places),
        *_nesting_problems(workers, max_depth, places),
    ]


def _nesting_problems(workers: Sequence[Worker], max_depth: int, places: Places) -> list[Problem]:
    if all(worker.team is None for worker in workers):
        return []
    from chargehand.team.nesting import nesting_problems  # few teams have teams

    return list(nesting_problems(workers, max_depth, places))


def _worker_problems(
    workers: Sequence[Worker], shared: set[str], known_tools: Collection[str], places: Places
) -> _Problems:
    if not workers:
        yield Problem(code=NO_WORKERS, message=f"{places.team()}the team has no workers: give it at least one.")
    for index, worker in enumerate(workers):
        yield from _own_problems(worker, index, known_tools, places)
    yield from _duplicates(workers, places)
    yield from _pool_problems(workers, places)
    yield from _clashes(workers, places)
    yield from _overlaps(workers, shared, places)
    held = {name for worker in workers for name in (*worker.tool_names, *worker.missing_tools)}
    for name in sorted(shared - held - {*known_tools}):
        message = f"{places.team('shared_tools')}the shared tool {name!r} does not exist."
        yield Problem(code="unknown_tool", message=message + suggestion(name, {*held, *known_tools}))
    yield from _fallback_problems(workers, places)
    # Analyzers are given their tasks by code: no planner has to choose between them.
    chosen = [worker for worker in workers if worker.kind != "analyzer"]
    if len(chosen) > MOST_WORKERS:
        message = f"{places.team()}{len(chosen)} workers are hard to plan for: "
        message += f"move some into a sub-team (at most {MOST_WORKERS} is best)."
        yield Problem(code="too_many_workers", severity="warning", message=message)


def _own_problems(worker: Worker, index: int, known_tools: Collection[str], places: Places) -> _Problems:
    def problem(code: str, field: str, message: str) -> Problem:
        return Problem(code=code, message=places.worker(index, field) + message)

    def warning(code: str, field: str, message: str) -> Problem:
        return Problem(code=code, severity="warning", message=places.worker(index, field) + message)

    the_worker = f"the worker {worker.name!r}"
    if not WORKER_NAME.fullmatch(worker.name):
        message = f"{worker.name!r} is not a worker's name: use letters, digits, '-', '_' and '.', at most 64."
        yield problem("invalid_name", "name", message)
    if not worker.description.strip():
        yield problem("missing_description", "description", f"{the_worker} has no description: the planner needs it.")
    for field, message in worker.wrong_fields:
        yield problem("invalid_value", field, f"{the_worker}: {message}")
    for name in worker.missing_tools:
        field, role = ("check", "is checked by") if name == worker.missing_check else ("tools", "has")
        message = f"{the_worker} {role} the tool {name!r}, which does not exist."
        yield problem("unknown_tool", field, message + suggestion(name, known_tools))
    for held in worker.tools:
        if held.lacks is not None and (lacking := held.lacks()):
            message = f"{the_worker} is not offered {held.name!r}, which needs {lacking}."
            yield warning("tool_not_offered", "tools", message)
        if not held.description:
            message = (
                f"the tool {held.name!r} of {worker.name!r} has no description: say in its docstring what it does."
            )
            yield warning("missing_description", "tools", message)
    if ESCALATE in worker.tool_names:
        message = f"every worker has a built-in tool {ESCALATE!r}: rename the one of {worker.name!r}."
        yield problem("duplicate_tool", "tools", message)
    for held in worker.all_tools:
        if message := _wrong_parameters(held):
            yield problem("invalid_tool", "tools", message)
    for field, message in _wrong_for_kind(worker):
        yield problem("invalid_value", field, f"{the_worker} {message}")
    if worker.kind == "delegate" and worker.team is None and "team" not in dict(worker.wrong_fields):
        message = f"{the_worker} is a delegate without a team: name a folder or a shipped team as 'team'"
        message += " (in Python, give a Team, such as chargehand.team.load('general'))."
        yield problem(MISSING_TEAM, "kind", message)
    if worker.kind == "command" and (worker.program is None or not all(worker.program.command[:1])):
        message = f"{the_worker} has no program: give its arguments as 'command', or name a 'preset'."
        yield problem("missing_command", "kind", message)
    if worker.kind == "analyzer":
        yield from _analyzer_problems(worker, places.worker(index, "tools"))
    if worker.pool is not None and not WORKER_NAME.fullmatch(worker.pool):
        message = f"{worker.pool!r} is not a pool's name: use letters, digits, '-', '_' and '.'."
        yield problem("invalid_name", "pool", message)
    if worker.max_steps < 1:
        message = f"{the_worker} may take {worker.max_steps} steps: allow at least 1."
        yield problem("invalid_value", "maxTurns", message)
    if worker.temperature is not None and not 0 <= worker.temperature <= 2:
        yield problem("invalid_value", "temperature", f"the temperature {worker.temperature} is not between 0 and 2.")
    if worker.output_schema is not None and (wrong := problems_in(worker.output_schema)):
        message = f"{the_worker}: output_schema cannot be used: {'; '.join(wrong)}."
        yield problem("invalid_value", "output_schema", message)
    if worker.effort not in (None, *EFFORTS):
        message = f"{worker.effort!r} is not an effort: write {', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}."
        yield problem("invalid_value", "effort", message)
    if worker.model is not None and not all(worker.model.partition(":")):
        message = f"{worker.model!r} is not a model: write 'provider:name', or a tier as 'tier'."
        yield problem("invalid_value", "model", message)
    if len(worker.tools) > MOST_TOOLS:
        message = f"{the_worker} has {len(worker.tools)} tools: split it (at most {MOST_TOOLS} is best)."
        yield warning("too_many_tools", "tools", message)


def _wrong_parameters(tool: Tool) -> str | None:
    """Why a model cannot be given the tool: the type of a parameter has no JSON form, or cannot be found."""
    if type(tool) is not Tool or tool is BUILTIN.get(tool.name):
        return None
    try:
        tool.arguments.schema  # noqa: B018 -- it is made at first use
    except UsageError as error:
        return str(error)
    return None


def _wrong_for_kind(worker: Worker) -> Iterator[tuple[str, str]]:
    """Fields that a worker of this kind cannot have, each with why."""
    tools = worker.tool_names or worker.missing_tools
    reasons = {
        "human": "is a person, who has no",
        "analyzer": "is an analyzer, which has no",
        "delegate": "is a delegate: its team has its own",
        "command": "is a program, which has no",
    }
    if worker.kind in reasons:
        fields = {"tools": tools if worker.kind != "analyzer" else (), "model": worker.model, "tier": worker.tier}
        for field in (name for name, value in fields.items() if value):
            yield field, f"{reasons[worker.kind]} {field!r}: leave it out."
    if worker.web and worker.kind != "agent":
        yield "web", "is not an agent: 'web' gives tools to agents only."
    if worker.program is not None and worker.kind != "command":
        yield "command", "has a command: that is for 'kind: command'."
    if worker.team is not None and worker.kind != "delegate":
        yield "team", "has a team: that is for 'kind: delegate'."


def _analyzer_problems(worker: Worker, place: str) -> _Problems:
    from chargehand.engine.analyzer_port import find_analyzers

    known = find_analyzers()
    if not worker.analyzers:
        message = f"{place}the worker {worker.name!r} has nothing to analyse with: name analyzers as its tools."
        yield Problem(code="missing_tools", message=message)
    for name in (each for each in worker.analyzers if each not in known):
        message = f"{place}the worker {worker.name!r} has the analyzer {name!r}, which does not exist."
        yield Problem(code="unknown_tool", message=message + suggestion(name, known))


def _pool_problems(workers: Sequence[Worker], places: Places) -> _Problems:
    names = {worker.name for worker in workers}
    for index, worker in enumerate(workers):
        if worker.pool in names:
            names.discard(worker.pool)  # one message for each pool
            message = f"{places.worker(index, 'pool')}the pool {worker.pool!r} has the name of a worker: rename one."
            yield Problem(code="duplicate_worker", message=message)


def _duplicates(workers: Sequence[Worker], places: Places) -> _Problems:
    seen: set[str] = set()
    for index, worker in enumerate(workers):
        if worker.name in seen:
            message = f"{places.worker(index, 'name')}there are two workers named {worker.name!r}: rename one."
            yield Problem(code="duplicate_worker", message=message)
        seen.add(worker.name)


def _clashes(workers: Sequence[Worker], places: Places) -> _Problems:
    """Two different tools of one name: a call by that name could reach the wrong one."""
    first: dict[str, Tool] = {}
    for index, worker in enumerate(workers):
        place = places.worker(index, "tools")
        for name in (name for name, times in Counter(worker.tool_names).items() if times > 1):
            message = f"{place}the worker {worker.name!r} has the tool {name!r} twice."
            yield Problem(code="duplicate_tool", message=message)
        for held in _known_to(worker):
            if not _same(first.setdefault(held.name, held), held):
                yield _clash(held, place)


def _known_to(worker: Worker) -> tuple[Tool, ...]:
    """What it holds and is checked by; of a delegate also all of its team's."""
    return (*worker.all_tools, *(worker.team.tools().values() if worker.team else ()))


def _clash(tool: Tool, place: str) -> Problem:
    return Problem(code="duplicate_tool", message=f"{place}two different tools are named {tool.name!r}: rename one.")


def _same(one: Tool, other: Tool) -> bool:
    """A copy is the same tool: another team may have the same file."""
    if one == other:
        return True
    here, there = (
        (tool.spec, tool.effect, tool.isolated, tool.approve, tool.code, tool.fn.__code__, tool.fn.__defaults__)
        for tool in (one, other)
    )
    # Functions with the same code in one module may still close over different values.
    copied = one.fn.__globals__ is not other.fn.__globals__
    return here == there and (copied or one.fn.__closure__ == other.fn.__closure__)


def _overlaps(workers: Sequence[Worker], allowed: set[str], places: Places) -> _Problems:
    holders: dict[str, list[int]] = {}
    for index, worker in enumerate(workers):
        for name in dict.fromkeys(worker.tool_names):
            holders.setdefault(name, []).append(index)
    for name, indexes in holders.items():
        if len(indexes) > 1 and name not in allowed:
            *others, last = [repr(workers[index].name) for index in indexes]
            message = (
                f"{places.worker(indexes[-1], 'tools')}the tool {name!r} is held by {', '.join(others)} and {last}"
            )
            message += ": give it to one worker, or list it in shared_tools."
            yield Problem(code="shared_tool", message=message)


def _fallback_problems(workers: Sequence[Worker], places: Places) -> _Problems:
    by_name = {worker.name: worker for worker in workers}
    named: set[str] = set()
    for index, worker in enumerate(workers):
        if worker.fallback is None:
            continue
        place = places.worker(index, "fallback")
        if worker.fallback not in by_name:
            message = f"{place}the fallback {worker.fallback!r} of {worker.name!r} is not a worker of this team."
            yield Problem(code="unknown_fallback", message=message + suggestion(worker.fallback, by_name))
        path = _fallback_path(worker, by_name)
        if path[-1] in path[:-1] and not named & set(path):
            cycle = path[path.index(path[-1]) :]
            yield Problem(code="fallback_cycle", message=f"{place}the fallbacks form a cycle: {' -> '.join(cycle)}.")
            named.update(cycle)


def _fallback_path(worker: Worker, by_name: Mapping[str, Worker]) -> list[str]:
    """The names reached by following fallbacks; the last is a repeat when they form a cycle."""
    path = [worker.name]
    at = worker
    while at.fallback is not None and at.fallback in by_name:
        path.append(at.fallback)
        if at.fallback in path[:-1]:
            break
        at = by_name[at.fallback]
    return path


def _route_problems(
    workers: Sequence[Worker],
    default: str | None,
    routes: Sequence[RouteRule],
    examples: Sequence[RouteExample],
    places: Places,
) -> _Problems:
    """Workers that routes name and the team does not have."""
    known = dict.fromkeys(name for worker in workers for name in (worker.name, worker.pool) if name)
    named: list[tuple[str, str, str | None, str | None]]
    named = [(places.team("supervisor", "default"), "the default", default, None)]
    for number, rule in enumerate(routes):
        place = places.team("routes", str(number), "worker")
        named.append((place, "the route's worker", rule.worker, rule.secondary))
    for number, each in enumerate(examples):
        named.append((places.example(number), "the primary", each.primary, each.secondary))
    for place, what, primary, secondary in named:
        for part, name in ((what, primary), ("the secondary", secondary)):
            if name is not None and name not in known:
                message = f"{place}{part} {name!r} is not a worker of this team.{suggestion(name, known)}"
                yield Problem(code="unknown_worker", message=message)
        if primary is not None and primary == secondary:
            message = f"{place}{primary!r} is primary and secondary: name another one or leave the secondary out."
            yield Problem(code="duplicate_worker", message=message)


def _factory_problems(
    tools: Sequence[Tool | str] | None, workers: Sequence[Worker], known_tools: Collection[str], places: Places
) -> _Problems:
    """What is wrong with the tools of workers that a plan defines."""
    held = {known.name: known for worker in workers for known in _known_to(worker)}
    place = places.team("factory", "tools")
    for each in tools or ():
        if isinstance(each, str):
            message = f"{place}the factory's tool {each!r} does not exist.{suggestion(each, known_tools)}"
            yield Problem(code="unknown_tool", message=message)
        elif not _same(held.setdefault(each.name, each), each):
            yield _clash(each, place)
        elif each.lacks is not None and (lacking := each.lacks()):
            message = f"{place}no worker of a plan is offered the factory's tool {each.name!r}, which needs {lacking}."
            yield Problem(code="tool_not_offered", severity="warning", message=message)
