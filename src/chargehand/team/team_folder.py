"""A team's name or folder -> a Team, or one InvalidTeam with every problem, its file, line and column."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from chargehand.errors import InvalidTeam, UsageError
from chargehand.record.home import default_path
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.settings.toml_file import close_name, suggestion
from chargehand.team.examples import Examples, read_examples
from chargehand.team.line_numbers import Places
from chargehand.team.problems import MISSING_TEAM, NO_WORKERS, team_problems
from chargehand.team.read_team_file import contents
from chargehand.team.team import Team, invalid_team
from chargehand.team.team_file import Parts, read_parts
from chargehand.team.team_tools import TeamCode, is_trusted, read_code, shipped_home
from chargehand.team.worker import Worker
from chargehand.team.worker_file import AgentFile, read_agent
from chargehand.tools import BUILTIN, Tool
from chargehand.tools.mcp_pins import McpServer
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Problem, errors_in


def load(
    ref: str | Path, trust: TrustRegistry | None = None, servers: Mapping[str, McpServer] = MappingProxyType({})
) -> Team:
    """The shipped team of that name, else the team in that folder; code of a folder that is not trusted is not run.

    Without `trust`, the folders count that are trusted in the default home: CHARGEHAND_HOME, or ~/.chargehand.
    `servers` are MCP servers that workers may name in addition to those of team.toml.
    """
    if trust is None:
        trust = TrustRegistry(str(default_path(os.environ).absolute()))
    return _load_folder(folder_of(ref), trust, servers)


def folder_of(ref: str | Path) -> Path:
    """The folder of the shipped team of that name, else the folder itself. InvalidTeam when there is neither."""
    return shipped_home() / ref if ref in shipped_teams() else _folder(ref, Path())


def _folder(ref: str | Path, base: Path) -> Path:
    """The folder found from `base`, else that of the shipped team."""
    # os.path returns False for names that no folder can have, such as too long ones, where Path raises.
    folder = os.path.join(base, os.path.expanduser(ref))
    if os.path.basename(folder) == "team.toml" and os.path.isfile(folder):
        folder = os.path.dirname(folder)
    if os.path.isdir(folder):
        return Path(folder)
    names = shipped_teams()
    if ref in names:
        return shipped_home() / ref
    shown = str(ref)[:100]
    raise InvalidTeam(f"There is no team {shown!r}: name a folder or a shipped team.{suggestion(shown, names)}")


def shipped_teams() -> list[str]:
    """The names of the teams that come with chargehand; no file is read."""
    return sorted(path.parent.name for path in shipped_home().glob("*/team.toml"))


def _load_folder(
    folder: Path,
    trust: TrustRegistry | None,
    servers: Mapping[str, McpServer],
    above: tuple[Path, ...] = (),
    max_depth: int | None = None,
) -> Team:
    """`above` are the folders of the teams around this one; the `max_depth` of the outermost applies."""
    bare = not (folder / "team.toml").is_file()
    if bare and (folder / "workers").is_dir():
        message = "team.toml:1:1: the folder has workers/ but no team.toml: add one with name and description."
        raise invalid_team(folder.resolve().name, [Problem(code="no_team_file", message=message)])
    parts = Parts(folder.resolve().name) if bare else read_parts(folder, trust)
    parts.max_depth = max_depth or parts.max_depth
    code = TeamCode() if bare else _code(folder, trust, parts.problems)
    agents = _agents(folder, parts, code, bare)
    if bare and not any(agent.worker or agent.problems for agent in agents):
        message = "team.toml:1:1: the folder has neither a team.toml nor an agent file (*.md with name and description)"
        message += ": name another one, or begin a team with `chargehand teams new NAME`."
        raise invalid_team(parts.name, [Problem(code=NO_WORKERS, message=message)])
    known_servers = {**servers, **parts.mcp}
    _give_mcp_tools(agents, known_servers, trust, folder)
    _keep_from_network(agents, folder, trust)
    _keep_from_commands(agents, folder, trust)
    _delegates(agents, folder, trust, known_servers, (*above, folder.resolve()), parts.max_depth)
    parts.problems += [problem for agent in agents for problem in agent.problems]
    workers = [agent.worker for agent in agents if agent.worker is not None]
    if bare:
        # Every worker may hold any tool, as in Claude Code, where the files come from.
        parts.shared_tools = tuple(sorted({name for worker in workers for name in worker.tool_names}))
    names = dict.fromkeys(name for worker in workers for name in (worker.name, worker.pool) if name)
    examples = Examples() if bare else read_examples(folder, [*names])
    factory_tools = _factory_tools(parts, code, folder, trust)
    in_team = _problems_in_team(agents, parts, code, examples, factory_tools)
    problems = [*parts.problems, *examples.problems, *in_team]
    if errors_in(problems):
        raise invalid_team(folder.resolve().name, problems)
    return _make_team(workers, parts, code, examples, factory_tools, problems)


def _make_team(
    workers: list[Worker],
    parts: Parts,
    code: TeamCode,
    examples: Examples,
    factory_tools: list[Tool | str] | None,
    problems: list[Problem],
) -> Team:
    return Team(
        workers,
        name=parts.name,
        description=parts.description,
        shared_tools=parts.shared_tools,
        examples=examples.plans,
        synthesis=parts.synthesis,
        scrutiny=parts.scrutiny,
        disclaimer=parts.disclaimer,
        when_nothing=parts.when_nothing,
        budget=parts.budget,
        limits=parts.limits,
        models=parts.models,
        ask=parts.ask,
        recovery=parts.recovery,
        tools_path=code.path,
        tools_hash=code.hash,
        mode=parts.mode,
        default=parts.default,
        routes=parts.routes,
        route_examples=examples.routes,
        factory_tools=factory_tools,
        factory_tiers=parts.factory_tiers,
        max_depth=parts.max_depth,
        checked=problems,
    )


_TEAM_CODES = frozenset({"unknown_team", "team_cycle", "depth", "invalid_team"})


def _problems_in_team(
    agents: Sequence[AgentFile],
    parts: Parts,
    code: TeamCode,
    examples: Examples,
    factory_tools: Sequence[Tool | str] | None,
) -> list[Problem]:
    """What is wrong with the team as a whole, except for what only follows from a file that could not be read."""
    found = [(agent, agent.worker) for agent in agents if agent.worker is not None]
    problems = team_problems(
        [worker for _, worker in found],
        shared_tools=parts.shared_tools,
        default=parts.default,
        routes=parts.routes,
        route_examples=examples.routes,
        factory_tools=factory_tools,
        max_depth=parts.max_depth,
        known_tools=BUILTIN.beside(code.tools),
        places=_FolderPlaces([agent for agent, _ in found], parts, examples),
    )
    # A team that could not be loaded, and a worker that could not be read, are not also missing.
    without_team = {agent.label for agent in agents if any(p.code in _TEAM_CODES for p in agent.problems)}
    problems = [p for p in problems if p.code != MISSING_TEAM or p.message.partition(":")[0] not in without_team]
    if any(agent.worker is None and agent.problems for agent in agents):
        problems = [p for p in problems if p.code != NO_WORKERS]
    return problems


def _delegates(
    agents: Sequence[AgentFile],
    folder: Path,
    trust: TrustRegistry | None,
    servers: Mapping[str, McpServer],
    above: tuple[Path, ...],
    most: int,
) -> None:
    """Give each delegate its team; problems in a team are reported with the path to it."""
    for agent in agents:
        worker, ref = agent.worker, agent.team
        if worker is None or worker.kind != "delegate" or not ref:
            continue
        try:
            inner = _folder(ref, folder)
            if inner.resolve() in above:
                around = [path.name for path in above[above.index(inner.resolve()) :]]
                agent.wrong(
                    "team_cycle", "team", f"teams form a cycle: {' -> '.join([*around, inner.resolve().name])}."
                )
            elif len(above) > most:
                path = " -> ".join([path.name for path in above] + [inner.resolve().name])
                agent.wrong("depth", "team", f"teams nest more than {most} deep: {path}.")
            else:
                team = _load_folder(inner, trust, servers, above, most)
                agent.worker = worker.with_team(team)
                # Settings without effect are reported again when the outermost team is checked.
                inner_warnings = [problem for problem in team.problems() if problem.code != "no_effect"]
                agent.problems += [_within(problem, ref) for problem in inner_warnings]
        except InvalidTeam as error:
            inner_problems = [problem for problem in error.problems if isinstance(problem, Problem)]
            if not inner_problems:
                agent.wrong("unknown_team", "team", str(error))
            else:
                agent.wrong("invalid_team", "team", f"the team {ref!r} cannot be used:")
                agent.problems += [_within(problem, ref) for problem in inner_problems]


def _within(problem: Problem, ref: str) -> Problem:
    return problem.model_copy(update={"message": f"{ref}/{problem.message}"})


def _factory_tools(parts: Parts, code: TeamCode, folder: Path, trust: TrustRegistry | None) -> list[Tool | str] | None:
    """The tools the factory may use; from an untrusted folder none that reaches the network."""
    if parts.factory_tools is None:
        return None
    known = BUILTIN.beside(code.tools)
    found: list[Tool | str] = [known.get(name, name) for name in parts.factory_tools]
    reaching = [each.name for each in found if isinstance(each, Tool) and each.needs_trust]
    if reaching and not is_trusted(folder / "team.toml", trust):
        message = f"left out, since it reaches the network: {', '.join(reaching)}; to allow it: chargehand trust "
        place = parts.place("factory", "tools")
        warning = Problem(code="untrusted_tool", severity="warning", message=f"{place}{message}{folder.resolve()}")
        parts.problems.append(warning)
        found = [each for each in found if isinstance(each, str) or each.name not in reaching]
    if code.warning is not None:
        found = [each for each in found if isinstance(each, Tool)]  # it may be in the code that was not loaded
    return found


def _agents(folder: Path, parts: Parts, code: TeamCode, bare: bool) -> list[AgentFile]:
    paths = sorted({*folder.glob("*.md"), *folder.glob("*/*.md")}) if bare else sorted(folder.glob("workers/*.md"))
    tools = BUILTIN.beside(code.tools)
    agents = [read_agent(path, folder, tools, bare=bare, steps=parts.steps) for path in paths]
    if code.warning is not None:
        # A missing tool may be in the code that was not loaded: the worker does without it.
        lost = [name for agent in agents if agent.worker for name in agent.worker.missing_tools]
        without = f" (left out: {', '.join(dict.fromkeys(lost))})" if lost else ""
        message = f"{code.warning}{without}; {code.remedy}"
        parts.problems.append(Problem(code="untrusted_code", severity="warning", message=message))
        _warn_of_misspelled_tools(agents, folder / "tools.py")
        for agent in agents:
            agent.worker = agent.worker and agent.worker.without_missing_tools()
    return agents


def _warn_of_misspelled_tools(agents: Sequence[AgentFile], code: Path) -> None:
    """Missing tools that the code, as text, does not name, and that are nearly the name of a built-in tool."""
    try:
        words = set(re.findall(r"[\w-]+", contents(code).decode("utf-8", "replace")))
    except OSError:
        return  # reported when the folder is trusted
    for agent in agents:
        for name in agent.worker.missing_tools if agent.worker else ():
            if name not in words and (near := close_name(name, BUILTIN)):
                message = f"{code.name} does not name the tool {name!r}. Did you mean {near!r}?"
                agent.warn("unknown_tool", "tools", message)


def _give_mcp_tools(
    agents: list[AgentFile], servers: Mapping[str, McpServer], trust: TrustRegistry | None, folder: Path
) -> None:
    """Replace `mcp:NAME` and `mcp:NAME/TOOL` by the tools that were trusted; without any, a worker does without."""
    for agent in agents:
        named = [name for name in agent.worker.missing_tools if name.startswith("mcp:")] if agent.worker else []
        if agent.worker is None or not named:
            continue
        from chargehand.tools.mcp_pins import McpPins
        from chargehand.tools.pinned_tools import find_tools

        pins = None if trust is None else McpPins(trust.home, trust.also)
        found = {name: find_tools(name, servers, pins) for name in named}
        agent.worker = agent.worker.with_tools_for(found)
        if lost := [name for name, tools in found.items() if not tools]:
            remedy = f"`chargehand trust {folder.resolve()}`, or the folder whose chargehand.toml names the server."
            message = f"left out, since no trusted MCP server has it: {', '.join(lost)}; to allow it: {remedy}"
            agent.warn("untrusted_tool", "tools", message)


def _keep_from_network(agents: list[AgentFile], folder: Path, trust: TrustRegistry | None) -> None:
    """Tools that reach the network are left out of workers whose file is not trusted."""
    for agent in agents:
        reaching = [t.name for t in agent.worker.tools if t.needs_trust] if agent.worker else []
        reaching += ["web"] if agent.worker and agent.worker.web else []
        if agent.worker is None or not reaching or is_trusted(folder / agent.label, trust):
            continue
        agent.worker = agent.worker.without_tools(reaching)
        remedy = f"{folder} is not trusted; to allow it: chargehand trust {folder.resolve()}"
        names = ", ".join(reaching)
        key = "web" if reaching == ["web"] else "tools"
        agent.warn("untrusted_tool", key, f"left out, since it reaches the network: {names}; {remedy}")


def _keep_from_commands(agents: list[AgentFile], folder: Path, trust: TrustRegistry | None) -> None:
    """Workers that start programs are left out of a folder that is not trusted."""
    for agent in agents:
        if agent.worker is None or agent.worker.program is None or is_trusted(folder / agent.label, trust):
            continue
        remedy = f"{folder} is not trusted; to allow it: chargehand trust {folder.resolve()}"
        name = agent.worker.program.command[0]
        agent.warn("untrusted_command", "command", f"the worker is left out, since it starts {name!r}; {remedy}")
        agent.worker = None


@plain_class(frozen=True)
class _FolderPlaces(Places):
    agents: Sequence[AgentFile]
    parts: Parts
    examples: Examples

    def worker(self, index: int, field: str) -> str:
        return self.agents[index].place(field)

    def team(self, *key: str) -> str:
        return self.parts.place(*key)

    def example(self, index: int) -> str:
        return self.examples.places[index]


def _code(folder: Path, trust: TrustRegistry | None, problems: list[Problem]) -> TeamCode:
    try:
        return read_code(folder, trust)
    except UsageError as error:
        problems.append(Problem(code="invalid_tools", message=str(error)))
        return TeamCode()
