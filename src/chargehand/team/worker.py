"""A worker as data: what it is for, its prompt, its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, cast, get_args

from chargehand.models.call_options import Effort
from chargehand.tools import BUILTIN, Tool, tool
from chargehand.values.argument_rules import Rule, flag, instance_of, one_of, optional, text, wrong_arguments
from chargehand.values.base import JSON, shorten
from chargehand.values.plan import TIERS, Tier
from chargehand.values.program import Program

if TYPE_CHECKING:
    from pydantic import BaseModel

Kind = Literal["agent", "analyzer", "human", "delegate", "command"]
DEFAULT_STEPS = 10
# What a worker marked `web` is given when a run may reach the web.
WEB_TOOLS = ("web_search", "fetch_page")
# Tools that need material to be of any use.
_READ_MATERIAL = frozenset({"read_file", "list_files", "search_files", "search_documents", "query_data"})
# A tool, a function that becomes one, or the name of a built-in.
AnyTool: TypeAlias = Tool | Callable[..., Any] | str


class DelegateTeam(Protocol):
    """What a delegate needs from its team, which is a `Team`. A protocol, because `Team` imports workers."""

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def workers(self) -> Sequence[Worker]: ...
    @property
    def settings_of_run(self) -> tuple[str, ...]: ...
    def tools(self) -> dict[str, Tool]: ...
    def with_web(self) -> Self: ...
    def to_json(self) -> dict[str, JSON]: ...


def _tools(value: Any) -> str | None:
    if isinstance(value, list):
        return None
    if isinstance(value, str):
        return f"a list: [{value!r}]"
    return "a list of tools: functions, or names of built-in tools"


def _tool(value: Any) -> str | None:
    return None if isinstance(value, str) or callable(value) else "a function or the name of a built-in tool"


def _check(value: Any) -> str | None:
    return None if isinstance(value, str) or callable(value) else "a function or the name of a tool"


def _steps(value: Any) -> str | None:
    return None if isinstance(value, int) and not isinstance(value, bool) else "a whole number"


def _temperature(value: Any) -> str | None:
    return None if isinstance(value, int | float) and not isinstance(value, bool) else "a number from 0 to 2"


def _team(value: Any) -> str | None:
    return None if hasattr(value, "workers") else "a Team, such as chargehand.team.load('general')"


def _command(value: Any) -> str | None:
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in cast("list[Any]", value)):
        return None
    return f"a list: {value.split()}" if isinstance(value, str) else "a list of texts, such as ['ls', '-l']"


_RULES: dict[str, Rule] = {
    "name": text,
    "description": text,
    "prompt": text,
    "tools": _tools,
    "model": optional(instance_of("'provider:name'; a client is given to Supervisor as model", str)),
    "tier": optional(one_of(TIERS)),
    "max_steps": _steps,
    "output_schema": optional(instance_of("a JSON schema as a dict, or a pydantic model class", dict)),
    "fallback": optional(text),
    "temperature": optional(_temperature),
    "kind": one_of(get_args(Kind)),
    "check": optional(_check),
    "pool": optional(text),
    "team": optional(_team),
    "web": flag,
    "small_prompt": text,
    "command": _command,
    "program": optional(instance_of("a Program", Program)),
}
# What takes the place of a wrong value, so that the rest can be checked.
_REPLACED: dict[str, Any] = {
    **dict.fromkeys(_RULES),
    "name": "unnamed",
    "description": "?",
    "prompt": "",
    "tools": (),
    "max_steps": DEFAULT_STEPS,
    "kind": "agent",
    "web": False,
    "small_prompt": "",
    "command": ("?",),
}


@dataclass(frozen=True, init=False, repr=False)
class Worker:
    """One member of a team: what it is for, its prompt and its tools.

    The planner chooses it by `name` and `description`; `prompt` says how it works. A tool is a `@tool` function, a
    plain typed function, or the name of a built-in tool. `model`, `tier` and `effort` choose its model, `max_steps`
    limits its model calls per task, `output_schema` is a JSON schema for its results, and `check` is a function that
    looks at them. `fallback` is the worker that takes over when it fails. A worker of the kind `delegate` has a
    `team`, one of the kind `command` a `command` or a `program`.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[Tool, ...]
    model: str | None
    tier: Tier | None
    max_steps: int
    output_schema: dict[str, JSON] | None
    fallback: str | None
    temperature: float | None
    # How much its model reasons.
    effort: Effort | None
    kind: Kind
    # Returns nothing if an output is good, else what is wrong. Not offered to the model.
    check: Tool | None
    # Names that no tool was found for: the team reports them.
    missing_tools: tuple[str, ...]
    # Of these, the one that was to check its output.
    missing_check: str | None
    # What an analyzer's `tools` are: names of analyzers.
    analyzers: tuple[str, ...]
    # Workers of one pool are interchangeable: a plan may name the pool, and the least busy member does the task.
    pool: str | None
    # It does a delegate's tasks.
    team: DelegateTeam | None
    # Its team names it for the web: with `--web` it also has WEB_TOOLS.
    web: bool
    # Takes the place of `prompt` where the model is a small open one: the same in a few sentences, with an example.
    # "none": where all the material is in its prompt, such a model gets the task alone.
    small_prompt: str
    # What a worker of the kind `command` starts.
    program: Program | None
    # Arguments that could not be used, each with what is wrong: the team reports them. Defaults are in their place.
    wrong_fields: tuple[tuple[str, str], ...]

    def __init__(
        self,
        name: str,
        description: str,
        *,
        prompt: str = "",
        tools: Iterable[AnyTool] = (),
        model: str | None = None,
        tier: Tier | None = None,
        max_steps: int = DEFAULT_STEPS,
        output_schema: dict[str, JSON] | type[BaseModel] | None = None,
        fallback: str | None = None,
        temperature: float | None = None,
        effort: Effort | None = None,
        kind: Kind = "agent",
        check: AnyTool | None = None,
        pool: str | None = None,
        team: DelegateTeam | None = None,
        web: bool = False,
        small_prompt: str = "",
        command: Sequence[str] = (),
        program: Program | None = None,
    ) -> None:
        values: dict[str, Any] = {
            "name": name,
            "description": description,
            "prompt": prompt,
            "tools": _as_list(tools),
            "model": model,
            "tier": tier,
            "max_steps": max_steps,
            "output_schema": _schema_of(output_schema),
            "fallback": fallback,
            "temperature": temperature,
            "effort": effort,
            "kind": kind,
            "check": check,
            "pool": pool,
            "team": team,
            "web": web,
            "small_prompt": small_prompt,
            "program": program,
            "command": command,
        }
        wrong = wrong_arguments(values, _RULES)
        values |= {field: _REPLACED[field] for field in wrong}
        elements = {f"tools[{number}]": each for number, each in enumerate(values["tools"])}
        wrong |= wrong_arguments(elements, dict.fromkeys(elements, _tool))
        values["tools"] = [each for place, each in elements.items() if place not in wrong]
        analyzers = tuple(t for t in values["tools"] if isinstance(t, str)) if values["kind"] == "analyzer" else ()
        found = [find_tool(t) for t in values["tools"] if t not in analyzers]
        checks = None if values["check"] is None else _find_check(values["check"])
        started = tuple(values.pop("command"))
        values |= {
            "tools": tuple(t for t in found if isinstance(t, Tool)),
            "check": checks if isinstance(checks, Tool) else None,
            "missing_tools": tuple(t for t in (*found, checks) if isinstance(t, str)),
            "missing_check": checks if isinstance(checks, str) else None,
            "analyzers": analyzers,
            "program": Program(command=started) if started and values["program"] is None else values["program"],
            "wrong_fields": tuple(wrong.items()),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        tools = f"; tools {', '.join(names)}" if (names := (*self.tool_names, *self.analyzers)) else ""
        kind = "" if self.kind == "agent" else f", {self.kind}"
        return f"<Worker {self.name!r}{kind}: {shorten(self.description)}{tools}>"

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tools)

    @property
    def all_tools(self) -> tuple[Tool, ...]:
        """The tools it holds, and the tool that checks its output."""
        return self.tools if self.check is None else (*self.tools, self.check)

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools it holds and can use here."""
        return tuple(t for t in self.tools if t.offered)

    @property
    def only_reads_files(self) -> bool:
        """Whether it is an agent whose tools all read the request's material: without any it can do nothing."""
        return self.kind == "agent" and bool(self.tools) and set(self.tool_names) <= _READ_MATERIAL

    @property
    def uses_model(self) -> bool:
        """Whether a model does its work: its own, that of a coding agent, or those of its team."""
        match self.kind:
            case "agent":
                return True
            case "delegate":
                return self.team is None or any(worker.uses_model for worker in self.team.workers)
            case "command":
                return self.program is not None and self.program.preset is not None
            case "analyzer" | "human":
                return False

    def without_tools(self, names: Iterable[str]) -> Worker:
        """The same worker without tools of these names; `web` is the mark that would give it the web tools."""
        gone = set(names)
        left = [name for name in self.to_json()["tools"] if name not in gone]
        return self._with(tools=left, web=self.web and "web" not in gone)

    def with_tools_for(self, found: Mapping[str, Sequence[Tool]]) -> Worker:
        """The same worker with these tools in place of names for which none was found."""
        known = {t.name: t for t in (*self.all_tools, *(each for tools in found.values() for each in tools))}
        listed: list[str] = self.to_json()["tools"]
        names = [each for name in listed for each in ([t.name for t in found[name]] if name in found else [name])]
        return Worker.from_json({**self.to_json(), "team": self.team, "tools": list(dict.fromkeys(names))}, known)

    def without_missing_tools(self) -> Worker:
        """The same worker with only the tools that were found."""
        return self._with(tools=self.tool_names)

    def with_web(self) -> Worker:
        """The same worker with the web tools that work here if it is marked for them; of a delegate, its team's."""
        if self.team is not None:
            return self.with_team(self.team.with_web())
        if not self.web:
            return self
        more = [name for name in WEB_TOOLS if name not in self.tool_names and BUILTIN[name].offered]
        return self._with(tools=[*self.to_json()["tools"], *more])

    def with_team(self, team: DelegateTeam) -> Worker:
        """The same delegate with the team that does its tasks."""
        return self._with(team=team)

    def _with(self, **changes: Any) -> Worker:
        data = {**self.to_json(), "team": self.team, **changes}
        return Worker.from_json(data, {t.name: t for t in self.all_tools})

    def to_json(self) -> dict[str, JSON]:
        """As stored with a run: tools by name."""
        return {
            "name": self.name,
            "description": self.description,
            "prompt": self.prompt,
            "tools": [*self.tool_names, *self.missing_tools, *self.analyzers],
            "model": self.model,
            "tier": self.tier,
            "max_steps": self.max_steps,
            "output_schema": self.output_schema,
            "fallback": self.fallback,
            "temperature": self.temperature,
            "effort": self.effort,
            "kind": self.kind,
            "check": self.check.name if self.check else None,
            "pool": self.pool,
            "team": self.team.to_json() if self.team else None,
            "web": self.web,
            **({"small_prompt": self.small_prompt} if self.small_prompt else {}),
            **({"program": self.program.to_json()} if self.program else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, JSON], tools: Mapping[str, Tool]) -> Worker:
        """The stored worker, with its tools looked up by name; a delegate's team is given as it is."""
        fields = dict(data)
        fields["tools"] = [tools.get(name, name) for name in fields["tools"]]
        fields["check"] = tools.get(fields.get("check") or "", fields.get("check"))
        if fields.get("program") is not None:
            fields["program"] = Program.model_validate(fields["program"])
        return Worker(**fields)


def _as_list(given: Any) -> Any:
    """The elements, if it has any; else as it is, for the rules to check."""
    is_list = isinstance(given, Iterable) and not isinstance(given, str | dict)
    return [*cast("Iterable[Any]", given)] if is_list else cast("Any", given)


def _schema_of(given: dict[str, JSON] | type[BaseModel] | None) -> dict[str, JSON] | None:
    """The JSON schema of a pydantic model; everything else as it is, for the rules to check."""
    is_model = isinstance(given, type) and hasattr(given, "model_json_schema")
    return cast("type[BaseModel]", given).model_json_schema() if is_model else cast("dict[str, JSON] | None", given)


def find_tool(given: AnyTool) -> Tool | str:
    """The tool, or the name that no built-in has."""
    if isinstance(given, str):
        return BUILTIN.get(given, given)
    return cast("Tool", given) if isinstance(given, Tool) else tool(given)


def _find_check(given: AnyTool) -> Tool | str:
    """A function that checks only reads: it is wrapped as such."""
    return cast("Tool | str", given) if isinstance(given, str | Tool) else tool(effect="read")(given)
