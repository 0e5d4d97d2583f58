"""A team as data: its workers, what they share, its limits; always a valid one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from chargehand.errors import InvalidTeam
from chargehand.settings import Limits, ModelSettings
from chargehand.team.problems import NO_WORKERS, team_problems
from chargehand.team.routes import RouteExample, RouteRule
from chargehand.team.team_arguments import LISTS, SECTIONS, read_arguments
from chargehand.team.team_sections import MOST_DEPTH, Example, Mode, Scrutiny
from chargehand.team.worker import AnyTool, Worker, find_tool
from chargehand.tools import BUILTIN, Tool
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.plan import (
    TIERS,
    UNASSIGNED,
    FactoryLimits,
    Plan,
    Problem,
    SynthesisSpec,
    Task,
    Tier,
    WorkerSpec,
    errors_in,
)
from chargehand.values.recovery_policy import Policy


@dataclass(frozen=True)
class Team:
    """Workers that serve one kind of request. Always valid: making one with errors raises InvalidTeam."""

    workers: Sequence[Worker]
    _: KW_ONLY
    name: str = "team"
    description: str = ""
    shared_tools: Sequence[str] = ()
    examples: Sequence[Example] = ()
    synthesis: SynthesisSpec = field(default_factory=SynthesisSpec)
    scrutiny: Scrutiny = field(default_factory=Scrutiny)
    # Words every answer ends with.
    disclaimer: str = ""
    # The answer where no worker could be reached.
    when_nothing: str = ""
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    models: ModelSettings = field(default_factory=ModelSettings)
    # Escalations may reach a person, as with `--ask`.
    ask: bool = False
    # What is done about tasks that fail.
    recovery: Policy = field(default_factory=Policy)
    # Where its own tool code is and the hash it had when it was loaded.
    tools_path: str | None = None
    tools_hash: str | None = None
    mode: Mode = "plan"
    # The worker for what neither a rule nor the router can place; else the first worker gets it.
    default: str | None = None
    routes: Sequence[RouteRule] = ()
    route_examples: Sequence[RouteExample] = ()
    # What workers that a plan defines may have; None where a plan defines none.
    factory_tools: Sequence[AnyTool] | None = None
    factory_tiers: Sequence[Tier] = TIERS
    max_depth: int = MOST_DEPTH
    # What checking found, where the loader has checked it already: warnings only.
    checked: InitVar[Sequence[Problem] | None] = None
    _problems: tuple[Problem, ...] = field(init=False, repr=False, compare=False)

    if TYPE_CHECKING:
        # Sections may be given as dicts, with the keys of team.toml; the fields are their values.
        def __init__(
            self,
            workers: Sequence[Worker],
            *,
            name: str = ...,
            description: str = ...,
            shared_tools: Sequence[AnyTool] = ...,
            examples: Sequence[Example | Mapping[str, Any]] = ...,
            synthesis: SynthesisSpec | Mapping[str, Any] = ...,
            scrutiny: Scrutiny | Mapping[str, Any] = ...,
            disclaimer: str = ...,
            when_nothing: str = ...,
            budget: Budget | Mapping[str, Any] = ...,
            limits: Limits | Mapping[str, Any] = ...,
            models: ModelSettings | Mapping[str, Any] = ...,
            ask: bool = ...,
            recovery: Policy | Mapping[str, Any] = ...,
            tools_path: str | None = ...,
            tools_hash: str | None = ...,
            mode: Mode = ...,
            default: str | None = ...,
            routes: Sequence[RouteRule | Mapping[str, Any]] = ...,
            route_examples: Sequence[RouteExample | Mapping[str, Any]] = ...,
            factory_tools: Sequence[AnyTool] | None = ...,
            factory_tiers: Sequence[Tier] = ...,
            max_depth: int = ...,
            checked: Sequence[Problem] | None = ...,
        ) -> None: ...

    def __repr__(self) -> str:
        return f"<Team {self.name!r}: {', '.join(worker.name for worker in self.workers)}>"

    def __post_init__(self, checked: Sequence[Problem] | None) -> None:
        fields, wrong = read_arguments(vars(self))
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.factory_tools is not None:
            object.__setattr__(self, "factory_tools", tuple(find_tool(each) for each in self.factory_tools))
        if checked is None:
            found = team_problems(
                self.workers,
                shared_tools=self.shared_tools,
                default=self.default,
                routes=self.routes,
                route_examples=self.route_examples,
                factory_tools=[find_tool(each) for each in self.factory_tools or ()],
                max_depth=self.max_depth,
            )
            # Workers that cannot be used are not also missing.
            checked = [*wrong, *(each for each in found if not wrong or each.code != NO_WORKERS)]
            if errors_in(checked):
                raise invalid_team(self.name, checked)
        object.__setattr__(self, "_problems", tuple(checked))

    def problems(self) -> list[Problem]:
        """What was found when it was made: warnings, since a team with errors cannot be made."""
        return list(self._problems)

    def worker(self, name: str) -> Worker:
        """The worker of that name, of a pool its first; KeyError when there is none."""
        return {worker.name: worker for worker in self.workers}[self.pools().get(name, (name,))[0]]

    def pools(self) -> dict[str, tuple[str, ...]]:
        """Pool -> its members, in roster order."""
        found: dict[str, tuple[str, ...]] = {}
        for worker in self.workers:
            if worker.pool is not None:
                found[worker.pool] = (*found.get(worker.pool, ()), worker.name)
        return found

    @property
    def factory(self) -> FactoryLimits | None:
        """What a plan may give the workers it defines: tools that work here."""
        if self.factory_tools is None:
            return None
        names = tuple(name for name, each in self._tools_of_factory().items() if each.offered)
        return FactoryLimits(tools=names, tiers=tuple(self.factory_tiers))

    def _tools_of_factory(self) -> dict[str, Tool]:
        """The tools the factory's workers may hold, by name, also those that are not offered here."""
        return {each.name: each for each in self.factory_tools or () if isinstance(each, Tool)}

    def with_workers(self, specs: Sequence[WorkerSpec]) -> Team:
        """The team with the workers a valid plan defines."""
        if not specs:
            return self
        allowed = self._tools_of_factory()
        added = [
            Worker(
                spec.name,
                spec.description or spec.prompt,
                prompt=spec.prompt,
                tools=[allowed[name] for name in spec.tools],
                tier=spec.tier,
            )
            for spec in specs
        ]
        return self._with(workers=(*self.workers, *added), shared_tools=(*self.shared_tools, *allowed))

    @property
    def web_workers(self) -> tuple[str, ...]:
        """The workers it names for the web; those of an inner team as `delegate/worker`."""
        within = [
            f"{worker.name}/{name}"
            for worker in self.workers
            if isinstance(worker.team, Team)
            for name in worker.team.web_workers
        ]
        return (*(worker.name for worker in self.workers if worker.web), *within)

    def with_web(self) -> Team:
        """The team whose workers named for the web have the tools for it."""
        return self._with(workers=tuple(worker.with_web() for worker in self.workers)) if self.web_workers else self

    def _with(self, **changes: Any) -> Team:
        """A changed copy that is not checked again: what changes is a plan's workers, or tools that only read."""
        team = object.__new__(Team)
        vars(team).update({**vars(self), **changes})
        return team

    @property
    def nested(self) -> tuple[Team, ...]:
        """The teams of its delegates."""
        return tuple(worker.team for worker in self.workers if isinstance(worker.team, Team))

    @property
    def settings_of_run(self) -> tuple[str, ...]:
        """Its settings that are for a whole run: without effect within another team."""
        written = {"[limits] max_concurrent": self.limits.max_concurrent, "[people] ask": self.ask}
        return tuple(name for name, value in written.items() if value)

    @property
    def disclaimers(self) -> tuple[str, ...]:
        """The lines its answers may have to end with: those of its inner teams, then its own."""
        lines = [*(line for team in self.nested for line in team.disclaimers), self.disclaimer]
        return tuple(dict.fromkeys(line for line in lines if line))

    def advice(self, plan: Plan, *, parallel_inside: bool) -> tuple[str, ...]:
        """The advice of a plan, where it fits this team.

        `parallel_inside`: teams that do tasks of the plan run tasks of their own in parallel, whatever its shape.
        """
        # One task is what a single worker, and a team that routes, is for.
        one_is_meant = plan.strategy == "single" and (len(self.workers) == 1 or self.mode == "route")
        is_wide = parallel_inside and self._works_by_teams(plan.tasks)
        return () if one_is_meant or is_wide or not self._works_by_models(plan.tasks) else plan.advice()

    def _works_by_models(self, tasks: Iterable[Task]) -> bool:
        """Whether a model does any of these tasks. A worker that only the plan defines is an agent."""
        without = {name for worker in self.workers if not worker.uses_model for name in (worker.name, worker.pool)}
        return any(task.worker not in without for task in tasks)

    def _works_by_teams(self, tasks: Iterable[Task]) -> bool:
        """Whether a team within this one does any of these tasks."""
        teams = {name for worker in self.workers if worker.team is not None for name in (worker.name, worker.pool)}
        return any(task.worker in teams for task in tasks)

    def fallbacks(self) -> dict[str, str]:
        return {worker.name: worker.fallback for worker in self.workers if worker.fallback is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """What a task may name as its worker: workers and pools."""
        return (*(worker.name for worker in self.workers), *self.pools())

    @property
    def assignable(self) -> tuple[str, ...]:
        """The same for a plan before it runs, in which a task may be left to the router."""
        return (*self.names, UNASSIGNED)

    def tools(self) -> dict[str, Tool]:
        """By name, every tool a worker holds or is checked by or the factory may give; inner teams included."""
        inner = {name: t for team in self.nested for name, t in team.tools().items()}
        return {**inner, **self._tools_of_factory(), **{t.name: t for w in self.workers for t in w.all_tools}}

    def to_json(self) -> dict[str, JSON]:
        """As stored with a run, so that it can be resumed with the team it started with."""
        factory = FactoryLimits(tools=tuple(self._tools_of_factory()), tiers=tuple(self.factory_tiers))
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: getattr(self, name).to_json() for name in SECTIONS},
            **{name: [each.to_json() for each in getattr(self, name)] for name in ("workers", *LISTS)},
            "shared_tools": list(self.shared_tools),
            "people": {"ask": self.ask},
            "supervisor": {"mode": self.mode, "default": self.default},
            "factory": None if self.factory_tools is None else factory.to_json(),
            **self._mcp_json(),
        }

    def _mcp_json(self) -> dict[str, JSON]:
        """The servers of tools that are of an MCP server; nothing without any."""
        tools = self.tools()
        if all(type(each) is Tool for each in tools.values()):
            return {}
        from chargehand.tools.pinned_tools import stored_servers

        return {"mcp": stored_servers(tools)}

    @staticmethod
    def from_json(data: Mapping[str, JSON], tools: Mapping[str, Tool]) -> Team:
        """The stored team; `tools` are its own tools and those of its inner teams, built-in ones need not be given.

        Fields that an earlier version did not store have their defaults.
        """
        known = BUILTIN.beside(tools)
        inner = [Team.from_json(each["team"], tools) if each.get("team") else None for each in data["workers"]]
        workers = [
            Worker.from_json({**each, "team": team}, known) for each, team in zip(data["workers"], inner, strict=True)
        ]
        factory: dict[str, JSON] | None = data.get("factory")
        fields: dict[str, Any] = {
            **{name: data[name] for name in _PLAIN if name in data},
            **{name: shape.model_validate(data[name]) for name, shape in SECTIONS.items() if name in data},
            **{name: [shape.model_validate(each) for each in data.get(name, ())] for name, shape in LISTS.items()},
            **(data.get("supervisor") or {}),
            "shared_tools": data["shared_tools"],
            "ask": data.get("people", {}).get("ask", False),
            "factory_tools": None if factory is None else [known.get(name) or str(name) for name in factory["tools"]],
            "factory_tiers": TIERS if factory is None else factory["tiers"],
        }
        return Team(workers, **fields)


# The fields that are stored as they are, under their own names; SECTIONS are stored as JSON, LISTS as lists of JSON.
_PLAIN = ("name", "description", "disclaimer", "when_nothing", "tools_path", "tools_hash", "max_depth")


def invalid_team(name: str, problems: Sequence[Problem]) -> InvalidTeam:
    """All problems as data, the errors also in words."""
    lines = "".join(f"\n  {problem.message}" for problem in errors_in(problems))
    return InvalidTeam(f"The team {name!r} cannot be used:{lines}", problems)
