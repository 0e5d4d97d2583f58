"""One agent file (front matter and prompt) -> a worker, with the line of each of its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast, get_args

from pydantic_core import from_json

from chargehand.models.call_options import EFFORTS, Effort
from chargehand.settings.settings_file import MOST
from chargehand.settings.toml_file import line_of, suggestion
from chargehand.team.program_fields import PROGRAM_KEYS, read_program
from chargehand.team.read_team_file import contents
from chargehand.team.worker import Kind, Worker
from chargehand.text.front_matter import Field, FrontMatter, FrontMatterError, parse
from chargehand.text.json_schema import problems_in
from chargehand.tools import Tool
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Problem, Tier

_KEYS = frozenset(
    {
        "name",
        "description",
        "tools",
        "model",
        "maxTurns",
        "check",
        "kind",
        "team",
        "tier",
        "fallback",
        "output_schema",
        "temperature",
        "effort",
        "pool",
        "small_prompt",
        "web",
        *PROGRAM_KEYS,
    }
)
# Claude Code's own fields: those that are used or harmless, and those without effect here.
_QUIET = frozenset({"color", "disallowedTools"})
_UNUSED = frozenset(
    {"background", "hooks", "initialPrompt", "isolation", "mcpServers", "memory", "permissionMode", "skills"}
)
_TIERS: dict[str, Tier] = {"haiku": "small", "sonnet": "medium", "opus": "large"}
# Claude Code's names for more than high.
_CLAUDE_EFFORTS = {"xhigh": "high", "max": "high"}
_CLAUDE_TOOLS = {"Read": "read_file", "Grep": "search_files", "Glob": "list_files"}
READ_ONLY = ("read_file", "list_files", "search_files")


@plain_class()
class AgentFile:
    """What was read: `worker` is None when the file is not an agent file or cannot be read as one."""

    label: str
    worker: Worker | None = None
    lines: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[Problem] = field(default_factory=list[Problem])
    # What a delegate names as its team.
    team: str = ""

    def place(self, key: str) -> str:
        # Keys of front matter are at the beginning of their line.
        return f"{self.label}:{self.lines.get(key, 1)}:1: "

    def wrong(self, code: str, key: str, message: str) -> None:
        self.problems.append(Problem(code=code, message=self.place(key) + message))

    def warn(self, code: str, key: str, message: str) -> None:
        self.problems.append(Problem(code=code, severity="warning", message=self.place(key) + message))


def read_agent(path: Path, root: Path, tools: Mapping[str, Tool], *, bare: bool, steps: int) -> AgentFile:
    """The worker in the file. `bare`: from a folder of Claude Code agent files, with its meanings of tools."""
    agent = AgentFile(path.relative_to(root).as_posix())
    try:
        matter = parse(contents(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        agent.lines[""] = line_of(error)
        agent.wrong("unreadable", "", "this is not UTF-8 text: save it as UTF-8.")
        return agent
    except OSError as error:
        agent.wrong("unreadable", "", f"this cannot be read: {error.strerror}.")
        return agent
    except FrontMatterError as error:
        agent.lines[""] = error.line
        agent.wrong("invalid_front_matter", "", f"{error}.")
        return agent
    if matter is None or (bare and not matter.fields.keys() & {"name", "description"}):
        if not bare:
            agent.wrong(
                "invalid_front_matter", "", "this has no front matter: open it with '---', name and description."
            )
        return agent
    agent.lines = {key: entry.line for key, entry in matter.fields.items()}
    _check_keys(agent, matter, bare)
    agent.team = _text(matter, "team")
    agent.worker = _worker(agent, matter, tools, path, root, bare=bare, steps=steps)
    if agent.worker.kind == "agent" and not matter.body.strip():
        agent.warn("missing_prompt", "", "the worker has no prompt: write it below the front matter.")
    return agent


def _check_keys(agent: AgentFile, matter: FrontMatter, bare: bool) -> None:
    for key in sorted(matter.fields.keys() - _KEYS - _QUIET):
        if key in _UNUSED:
            agent.warn("unused_key", key, f"{key!r} has no effect here.")
        elif bare:
            agent.warn("unknown_key", key, f"{key!r} is not a field of an agent file.{suggestion(key, _KEYS)}")
        else:
            agent.wrong("unknown_key", key, f"{key!r} is not a field of a worker.{suggestion(key, _KEYS)}")
    kind = _text(matter, "kind") or "agent"
    if kind not in get_args(Kind):
        agent.wrong("invalid_value", "kind", f"{kind!r} is not a kind of worker.{suggestion(kind, get_args(Kind))}")
    elif kind != "delegate" and "team" in matter.fields:
        agent.wrong("invalid_value", "team", "'team' is for a worker of the kind delegate: add 'kind: delegate'.")
    if kind != "command":
        for key in (key for key in PROGRAM_KEYS if key in matter.fields):
            agent.wrong("invalid_value", key, f"{key!r} is for a worker of the kind command: add 'kind: command'.")


def _worker(
    agent: AgentFile, matter: FrontMatter, tools: Mapping[str, Tool], path: Path, root: Path, *, bare: bool, steps: int
) -> Worker:
    model, tier = _model_and_tier(agent, matter, bare)
    turns = _number(agent, matter, "maxTurns", whole=True)
    written = _text(matter, "kind")
    kind: Kind = written if written in ("human", "analyzer", "delegate", "command") else "agent"
    by_claude = bare and kind == "agent"
    names = _bare_tools(agent, matter, tools) if by_claude else matter.fields.get("tools", Field(None, 1)).items
    return Worker(
        _text(matter, "name"),
        _text(matter, "description"),
        prompt=matter.body,
        tools=names if kind == "analyzer" else [tools.get(name, name) for name in names],
        model=model,
        tier=tier,
        max_steps=steps if turns is None else int(turns),
        output_schema=_schema(agent, matter, path.parent, root),
        fallback=_text(matter, "fallback") or None,
        check=tools.get(_text(matter, "check"), _text(matter, "check")) or None,
        temperature=_number(agent, matter, "temperature", whole=False),
        effort=_effort(agent, matter, bare),
        kind=kind,
        pool=_text(matter, "pool") or None,
        web=_flag(agent, matter, "web"),
        small_prompt=_text(matter, "small_prompt"),
        program=read_program(matter.fields, root, agent.wrong) if kind == "command" else None,
    )


def _model_and_tier(agent: AgentFile, matter: FrontMatter, bare: bool) -> tuple[str | None, Tier | None]:
    tier: Tier | None = None
    if written := _text(matter, "tier"):
        if written in get_args(Tier):
            tier = cast("Tier", written)
        else:
            agent.wrong("invalid_value", "tier", f"{written!r} is not a tier.{suggestion(written, get_args(Tier))}")
    model = _text(matter, "model")
    if not model or model == "inherit":
        return None, tier
    if ":" in model:
        return model, tier
    # `sonnet`, and also `claude-sonnet-4-5`: a class of model of any provider.
    for family, meant in _TIERS.items():
        if re.search(rf"\b{family}\b", model.lower()):
            return None, tier or meant
    remedy = "write haiku, sonnet, opus, inherit or 'provider:name'."
    if bare:
        agent.warn("unknown_model", "model", f"{model!r} is not known here, the default is used: {remedy}")
    else:
        agent.wrong("invalid_value", "model", f"{model!r} is not a model: {remedy}")
    return None, tier


def _effort(agent: AgentFile, matter: FrontMatter, bare: bool) -> Effort | None:
    """The effort as written, for the team to check; for a Claude Code agent, an unknown effort is dropped."""
    written = _text(matter, "effort")
    meant = _CLAUDE_EFFORTS.get(written, written) if bare else written
    if bare and meant not in ("", *EFFORTS):
        remedy = f"write {', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}."
        agent.warn("unknown_effort", "effort", f"{written!r} is not known here, the model's default is used: {remedy}")
        return None
    return cast("Effort", meant) or None


def _bare_tools(agent: AgentFile, matter: FrontMatter, tools: Mapping[str, Tool]) -> list[str]:
    """Our names for Claude Code's tools; without names, the tools that read; never a disallowed tool."""
    written = matter.fields.get("tools")
    if written is None or written.text.strip() in ("*", "", "All tools"):
        meant = {name: name for name in READ_ONLY}
    else:
        meant = {name: _CLAUDE_TOOLS.get(name, name) for name in _plain_names(written)}
    if absent := [name for name, ours in meant.items() if ours not in tools]:
        agent.warn("tool_not_offered", "tools", f"not offered here: {', '.join(absent)}.")
    forbidden = {_CLAUDE_TOOLS.get(name, name) for name in _plain_names(matter.fields.get("disallowedTools"))}
    return list(dict.fromkeys(ours for ours in meant.values() if ours in tools and ours not in forbidden))


def _plain_names(written: Field | None) -> list[str]:
    # `Read(./src/**)` is Read with a restriction that the request's material already makes.
    return [re.sub(r"\(.*\)$", "", name).strip() for name in written.items] if written else []


def _schema(agent: AgentFile, matter: FrontMatter, folder: Path, root: Path) -> dict[str, Any] | None:
    """A JSON schema written in place, or the name of a JSON file next to the agent file."""
    written = _text(matter, "output_schema").strip()
    if not written:
        return None
    data = written.encode()
    if not written.startswith("{"):
        try:
            path = (folder / written).resolve()
            if not path.is_relative_to(root.resolve()):
                agent.wrong("invalid_value", "output_schema", f"{written!r} is outside of the team's folder.")
                return None
            data = contents(path)
        except (OSError, ValueError, RuntimeError):
            # A name that no path can have is a ValueError, a link to itself a RuntimeError.
            message = f"{written[:100]!r} is neither a JSON schema nor a file with one."
            agent.wrong("invalid_value", "output_schema", message)
            return None
    try:
        schema = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        agent.wrong("invalid_value", "output_schema", f"the schema is not JSON: {error}.")
        return None
    if wrong := problems_in(schema):
        agent.wrong("invalid_value", "output_schema", f"the schema cannot be used: {wrong[0]}.")
        return None
    return cast("dict[str, Any]", schema)


def _text(matter: FrontMatter, key: str) -> str:
    entry = matter.fields.get(key)
    return entry.text if entry else ""


def _flag(agent: AgentFile, matter: FrontMatter, key: str) -> bool:
    entry = matter.fields.get(key)
    if entry is not None and not isinstance(entry.value, bool):
        agent.wrong("invalid_value", key, f"{key!r} is true or false, not {entry.text[:60]!r}.")
    return entry is not None and entry.value is True


def _number(agent: AgentFile, matter: FrontMatter, key: str, *, whole: bool) -> float | None:
    entry = matter.fields.get(key)
    if entry is None or entry.value is None:
        return None
    value = entry.value
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        kind = "whole number" if whole else "number"
        agent.wrong("invalid_value", key, f"{key!r} is a {kind}, not {entry.text[:60]!r}.")
        return None
    if whole and value > MOST:
        agent.wrong("invalid_value", key, f"{key!r} must be at most {MOST:g}.")
        return None
    return value
