"""Everything wrong with a team, at once: its workers, who holds which tool, who stands in, who gets what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from chargehand.settings.toml_file import suggestion
from chargehand.team.routes import RouteExample, RouteRule
from chargehand.team.worker import Worker
from chargehand.tools import BUILTIN, Tool
from chargehand.values.plan import WORKER_NAME, Problem

MOST_WORKERS = 7
MOST_TOOLS = 10
ESCALATE = "escalate"
MISSING_TEAM = "missing_team"
NO_WORKERS = "no_workers"

# Says where a worker's field is written, as `file:line: `; empty for a team made in Python.
Where: TypeAlias = Callable[[int, str], str]


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
        found.append(Problem(code=NO_WORKERS, message=f"{where(-1, '')}the team has no workers: give it at least one."))
    for index, worker in enumerate(workers):
        found += _own_problems(worker, lambda field, at=index: where(at, field), [*known_tools])
    found += _duplicates(workers, where)
    found += _pool_problems(workers, where)
    found += _clashes(workers, where)
    found += _overlaps(workers, shared, where)
    held = {name for worker in workers for name in (*worker.tool_names, *worker.missing_tools)}
    for name in sorted(shared - held - set(known_tools)):
        message = f"{where(-1, 'shared_tools')}the shared tool {name!r} does not exist."
        message += suggestion(name, {*held, *known_tools})
        found.append(Problem(code="unknown_tool", message=message))
    found += _fallback_problems(workers, where)
    # Analyzers are given their tasks by a playbook: nobody has to choose between them.
    chosen = [worker for worker in workers if worker.kind != "analyzer"]
    if len(chosen) > MOST_WORKERS:
        message = (
            f"{len(chosen)} workers are hard to plan for: move some into a sub-team (at most {MOST_WORKERS} is best)."
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
    for held in worker.tools:
        if held.lacks is not None and (lacking := held.lacks()):
            message = f"{where('tools')}the worker {worker.name!r} is not offered {held.name!r}, which needs {lacking}."
            found.append(Problem(code="tool_not_offered", severity="warning", message=message))
    if ESCALATE in worker.tool_names:
        message = f"{where('tools')}every worker has a built-in tool {ESCALATE!r}: rename the one of {worker.name!r}."
        found.append(Problem(code="duplicate_tool", message=message))
    if worker.kind == "human":
        held = {"tools": worker.tool_names or worker.missing_tools, "model": worker.model, "tier": worker.tier}
        for key in (name for name, value in held.items() if value):
            message = f"{where(key)}the worker {worker.name!r} is a person, who has no {key!r}: leave it out."
            found.append(Problem(code="invalid_value", message=message))
    if worker.web and worker.kind != "agent":
        message = f"{where('web')}the worker {worker.name!r} is not an agent: 'web' gives tools to agents only."
        found.append(Problem(code="invalid_value", message=message))
    if worker.kind == "analyzer":
        found += _analyzer_problems(worker, where)
    found += _delegate_problems(worker, where)
    if worker.pool is not None and not WORKER_NAME.fullmatch(worker.pool):
        message = f"{where('pool')}{worker.pool!r} is not a pool's name: use letters, digits, '-', '_' and '.'."
        found.append(Problem(code="invalid_name", message=message))
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


def _analyzer_problems(worker: Worker, where: Callable[[str], str]) -> list[Problem]:
    from chargehand.engine.analyzer import find_analyzers

    known = find_analyzers()
    found: list[Problem] = []
    for key in (name for name, value in {"model": worker.model, "tier": worker.tier}.items() if value):
        message = f"{where(key)}the worker {worker.name!r} is an analyzer, which has no {key!r}: leave it out."
        found.append(Problem(code="invalid_value", message=message))
    if not worker.analyzers:
        message = (
            f"{where('tools')}the worker {worker.name!r} has nothing to analyse with: name analyzers as its tools."
        )
        found.append(Problem(code="missing_tools", message=message))
    for name in worker.analyzers:
        if name not in known:
            message = f"{where('tools')}the worker {worker.name!r} has the analyzer {name!r}, which does not exist."
            found.append(Problem(code="unknown_tool", message=message + suggestion(name, known)))
    return found


def _delegate_problems(worker: Worker, where: Callable[[str], str]) -> list[Problem]:
    found: list[Problem] = []

    def add(code: str, key: str, message: str) -> None:
        found.append(Problem(code=code, message=f"{where(key)}the worker {worker.name!r} {message}"))

    if worker.kind != "delegate":
        if worker.team is not None:
            add("invalid_value", "team", "has a team: that is for 'kind: delegate'.")
        return found
    if worker.team is None:
        add(MISSING_TEAM, "kind", "is a delegate without a team: name a folder or a shipped team as 'team'.")
    held = {"tools": worker.tool_names or worker.missing_tools, "model": worker.model, "tier": worker.tier}
    for key in (name for name, value in held.items() if value):
        add("invalid_value", key, f"stands for a team, which has its own {key!r}: leave it out.")
    return found


def _pool_problems(workers: Sequence[Worker], where: Where) -> list[Problem]:
    names = {worker.name for worker in workers}
    found: list[Problem] = []
    for pool in dict.fromkeys(worker.pool for worker in workers if worker.pool in names):
        index = next(n for n, worker in enumerate(workers) if worker.pool == pool)
        message = f"{where(index, 'pool')}the pool {pool!r} has the name of a worker: rename one."
        found.append(Problem(code="duplicate_worker", message=message))
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
        other = [held for held in _known_to(worker) if not _same(first.setdefault(held.name, held), held)]
        found += [_clash(held, where(index, "tools")) for held in other]
    return found


def _known_to(worker: Worker) -> tuple[Tool, ...]:
    """What it holds and is checked by; of a delegate also all of its team's."""
    return (*worker.all_tools, *(worker.team.tools().values() if worker.team else ()))


def _clash(tool: Tool, where: str) -> Problem:
    message = f"{where}two different tools are named {tool.name!r}: rename one."
    return Problem(code="duplicate_tool", message=message)


def _same(one: Tool, other: Tool) -> bool:
    """Also a copy is the same tool: another team may have the same file."""
    if one == other:
        return True
    here, there = (
        (tool.spec, tool.effect, tool.isolated, tool.approve, tool.code, tool.fn.__code__, tool.fn.__defaults__)
        for tool in (one, other)
    )
    # Functions that one module makes with the same words may still close over different values.
    copied = one.fn.__globals__ is not other.fn.__globals__
    return here == there and (copied or one.fn.__closure__ == other.fn.__closure__)


def _overlaps(workers: Sequence[Worker], allowed: set[str], where: Where) -> list[Problem]:
    holders: dict[str, list[int]] = {}
    for index, worker in enumerate(workers):
        for name in dict.fromkeys(worker.tool_names):
            holders.setdefault(name, []).append(index)
    found: list[Problem] = []
    for name, indexes in holders.items():
        if len(indexes) > 1 and name not in allowed:
            holding = _join_names(workers[i].name for i in indexes)
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


def _join_names(names: Iterable[str]) -> str:
    *rest, last = [repr(name) for name in names]
    return f"{', '.join(rest)} and {last}" if rest else last


def route_problems(
    workers: Sequence[Worker],
    default: str | None,
    routes: Sequence[RouteRule],
    examples: Sequence[RouteExample],
    where: Callable[[str, int], str] = lambda _part, _index: "",
) -> list[Problem]:
    """Workers that routes name and the team has not; `where` is asked for `default`, `routes` and `examples`."""
    known = dict.fromkeys(name for worker in workers for name in (worker.name, worker.pool) if name)
    found: list[Problem] = []

    def check(place: str, name: str | None, what: str) -> None:
        if name is not None and name not in known:
            message = f"{place}{what} {name!r} is not a worker of this team.{suggestion(name, known)}"
            found.append(Problem(code="unknown_worker", message=message))

    check(where("default", 0), default, "the default")
    named = [("routes", n, "the route's worker", rule.worker, rule.secondary) for n, rule in enumerate(routes)]
    named += [("examples", n, "the primary", each.primary, each.secondary) for n, each in enumerate(examples)]
    for part, number, what, primary, secondary in named:
        place = where(part, number)
        check(place, primary, what)
        check(place, secondary, "the secondary")
        if primary == secondary:
            message = f"{place}{primary!r} is primary and secondary: name another one or leave the secondary out."
            found.append(Problem(code="duplicate_worker", message=message))
    return found


def factory_problems(
    tools: Sequence[Tool | str] | None,
    workers: Sequence[Worker],
    where: str = "",
    known_tools: Iterable[str] = tuple(BUILTIN),
) -> list[Problem]:
    """What is wrong with the tools that workers may have which a plan defines."""
    held = {known.name: known for worker in workers for known in _known_to(worker)}
    found: list[Problem] = []
    for each in tools or ():
        if isinstance(each, str):
            message = f"{where}the factory's tool {each!r} does not exist.{suggestion(each, [*known_tools])}"
            found.append(Problem(code="unknown_tool", message=message))
        elif not _same(held.setdefault(each.name, each), each):
            found.append(_clash(each, where))
        elif each.lacks is not None and (lacking := each.lacks()):
            message = f"{where}no worker of a plan is offered the factory's tool {each.name!r}, which needs {lacking}."
            found.append(Problem(code="tool_not_offered", severity="warning", message=message))
    return found
