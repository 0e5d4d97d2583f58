"""team.toml -> the parts of a team, and everything wrong in it by line and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from chargehand.errors import UsageError
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.settings import Limits, ModelSettings
from chargehand.settings.settings_file import SettingsReader
from chargehand.settings.toml_file import TomlFile, read, suggestion
from chargehand.team.routes import RouteRule
from chargehand.team.team_sections import (
    LIMITS,
    MOST_DEPTH,
    Mode,
    Scrutiny,
    check_table,
    read_limits,
    read_recovery,
    read_routes,
)
from chargehand.team.team_tools import is_trusted
from chargehand.team.worker import DEFAULT_STEPS
from chargehand.tools.mcp_pins import McpServer
from chargehand.values.budget import Budget
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import TIERS, Problem, SynthesisSpec, Tier
from chargehand.values.recovery_policy import Policy

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
        "factory",
        "mcp",
        "routes",
    }
)
_SUPERVISOR = frozenset({"mode", "default"})
_FACTORY = frozenset({"tools", "tiers"})
WHEN_NOTHING = "when_nothing"


@plain_class()
class Parts:
    """The content of team.toml, with its problems. Only `read_parts` writes it."""

    name: str
    description: str = ""
    shared_tools: tuple[str, ...] = ()
    mode: Mode = "plan"
    default: str | None = None
    routes: tuple[RouteRule, ...] = ()
    factory_tools: tuple[str, ...] | None = None
    factory_tiers: tuple[Tier, ...] = TIERS
    max_depth: int = MOST_DEPTH
    synthesis: SynthesisSpec = field(default_factory=SynthesisSpec)
    scrutiny: Scrutiny = field(default_factory=Scrutiny)
    disclaimer: str = ""
    when_nothing: str = ""
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    models: ModelSettings = field(default_factory=ModelSettings)
    ask: bool = False
    recovery: Policy = field(default_factory=Policy)
    steps: int = DEFAULT_STEPS
    problems: list[Problem] = field(default_factory=list[Problem])
    mcp: dict[str, McpServer] = field(default_factory=dict[str, McpServer])
    # None in a folder of agent files.
    file: TomlFile | None = None

    def place(self, *key: str) -> str:
        """The place of a key, as the beginning of a message."""
        return "" if self.file is None else f"{self.file.place(key)}: "


def read_parts(folder: Path, trust: TrustRegistry | None) -> Parts:
    parts, path = Parts(folder.resolve().name), folder / "team.toml"
    try:
        file = read(path, "team.toml")
    except UsageError as error:
        parts.file = TomlFile("team.toml", path, {}, "")
        parts.problems.append(Problem(code="invalid_toml", message=str(error)))
        return parts
    parts.file = file
    reader, data = SettingsReader(file, trusted=is_trusted(file.path, trust)), file.data
    for key in sorted(data.keys() - _KEYS):
        reader.unknown((key,), _KEYS)
    parts.name = reader.text(data, "name") or parts.name
    parts.description = reader.text(data, "description") or ""
    parts.disclaimer = reader.text(data, "disclaimer") or ""
    if "description" not in data:
        reader.wrong(("description",), "the team has no description: write what it is for.", "missing_description")
    parts.shared_tools = _names(reader, data, "shared_tools")
    parts.budget = reader.budget(data)
    tiers, roles = reader.models(data)
    parts.models = ModelSettings(tiers=tiers, roles=roles)
    _limits(reader, data, parts)
    parts.mode, parts.default = _supervisor(reader, data)
    parts.routes = read_routes(reader, data)
    _factory(reader, data, parts)
    parts.mcp = reader.mcp(data)
    parts.ask = _ask(reader, data)
    parts.recovery = read_recovery(reader, data)
    parts.synthesis, parts.scrutiny, parts.when_nothing = _synthesis(reader, data)
    parts.problems += [Problem(code=code, message=message) for code, message in reader.problems]
    parts.problems += [Problem(code="untrusted_option", severity="warning", message=line) for line in reader.ignored]
    return parts


def _names(reader: SettingsReader, table: Mapping[str, Any], key: str, *path: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value)):
        return tuple(cast("list[str]", value))
    reader.wrong((*path, key), f"{key!r} is a list of names.")
    return ()


def _limits(reader: SettingsReader, data: Mapping[str, Any], parts: Parts) -> None:
    table = reader.table(data, "limits", known={*LIMITS, "max_steps", "max_depth"})
    parts.limits = read_limits(reader, {"limits": table}, table)
    parts.steps = reader.whole(table, "max_steps", "limits") or DEFAULT_STEPS
    parts.max_depth = reader.whole(table, "max_depth", "limits") or MOST_DEPTH


def _ask(reader: SettingsReader, data: Mapping[str, Any]) -> bool:
    value = reader.table(data, "people", known={"ask"}).get("ask", False)
    if not isinstance(value, bool):
        reader.wrong(("people", "ask"), f"'ask' is true or false, not {value!r}.")
        return False
    return value


def _supervisor(reader: SettingsReader, data: Mapping[str, Any]) -> tuple[Mode, str | None]:
    table = reader.table(data, "supervisor", known=_SUPERVISOR)
    mode = reader.text(table, "mode", "supervisor")
    if mode not in (None, "plan", "route"):
        reader.wrong(("supervisor", "mode"), f"'mode' is 'plan' or 'route', not {mode!r}.")
    return "route" if mode == "route" else "plan", reader.text(table, "default", "supervisor")


def _factory(reader: SettingsReader, data: Mapping[str, Any], parts: Parts) -> None:
    if "factory" not in data:
        return
    table = reader.table(data, "factory", known=_FACTORY)
    parts.factory_tools = _names(reader, table, "tools", "factory")
    tiers = _names(reader, table, "tiers", "factory")
    for tier in (name for name in tiers if name not in TIERS):
        reader.wrong(("factory", "tiers"), f"{tier!r} is not a tier.{suggestion(tier, TIERS)}")
    if "tiers" in table and not tiers:
        reader.wrong(("factory", "tiers"), "'tiers' allows none: name one or leave it out.")
    parts.factory_tiers = tuple(tier for tier in TIERS if tier in (tiers or TIERS))


def _synthesis(reader: SettingsReader, data: Mapping[str, Any]) -> tuple[SynthesisSpec, Scrutiny, str]:
    table = dict(reader.table(data, "synthesis"))
    when_nothing = reader.text(table, WHEN_NOTHING, "synthesis") or ""
    table.pop(WHEN_NOTHING, None)
    own = {key: table.pop(key) for key in [*table] if key in SynthesisSpec.model_fields}
    known = {*SynthesisSpec.model_fields, *Scrutiny.model_fields, WHEN_NOTHING}
    synthesis = check_table(reader, "synthesis", SynthesisSpec, own, known)
    return synthesis, check_table(reader, "synthesis", Scrutiny, table, known), when_nothing
