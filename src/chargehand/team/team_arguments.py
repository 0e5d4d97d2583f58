"""The arguments of a `Team` made in Python -> values, and everything wrong with them. Dicts are read like team.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic_core import ValidationError

from chargehand.settings import Limits, ModelSettings
from chargehand.settings.settings_file import SettingsReader
from chargehand.settings.toml_file import TomlFile
from chargehand.team.routes import RouteExample, RouteRule
from chargehand.team.team_sections import (
    MODES,
    MOST_DEPTH,
    Example,
    Scrutiny,
    check_table,
    read_limits,
    read_recovery,
    wrong_in,
)
from chargehand.team.worker import Worker, find_tool
from chargehand.tools import Tool
from chargehand.values.argument_rules import (
    Rule,
    flag,
    instance_of,
    number,
    one_of,
    optional,
    show,
    text,
    wrong_arguments,
)
from chargehand.values.base import Value
from chargehand.values.budget import Budget
from chargehand.values.plan import TIERS, Problem, SynthesisSpec
from chargehand.values.recovery_policy import Policy

# The rules of plain fields, each with the value that takes the place of a wrong one.
_PLAIN: dict[str, tuple[Rule, Any]] = {
    "name": (text, "team"),
    "description": (text, ""),
    "disclaimer": (text, ""),
    "when_nothing": (text, ""),
    "ask": (flag, False),
    "mode": (one_of(MODES), "plan"),
    "default": (optional(text), None),
    "max_depth": (number("a whole number from 1 on", whole=True, least=1), MOST_DEPTH),
}
SECTIONS: dict[str, type[Value]] = {
    "synthesis": SynthesisSpec,
    "scrutiny": Scrutiny,
    "budget": Budget,
    "limits": Limits,
    "models": ModelSettings,
    "recovery": Policy,
}
LISTS: dict[str, type[Value]] = {"examples": Example, "routes": RouteRule, "route_examples": RouteExample}


def _tool(value: Any) -> str | None:
    return None if isinstance(value, str) or callable(value) else "a tool or a tool's name"


_ELEMENTS: dict[str, Rule] = {
    "workers": instance_of("a Worker, such as Worker('finder', 'Looks figures up')", Worker),
    "shared_tools": _tool,
    "factory_tools": _tool,
    "factory_tiers": one_of(TIERS),
}


class _Arguments(TomlFile):
    """In place of a file: the place of a key is the argument that holds it."""

    def place(self, key: Sequence[str]) -> str:
        return f"{key[0]}[{key[1]}]" if key[0] in LISTS else key[0]


def read_arguments(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The fields of a team, those that are wrong with their defaults, and all problems."""
    reader = SettingsReader(_Arguments("", Path.cwd() / "team.toml", {}, ""))
    wrong = wrong_arguments(given, {name: rule for name, (rule, _) in _PLAIN.items()})
    fields = {name: default if name in wrong else given[name] for name, (_, default) in _PLAIN.items()}
    said = list(wrong.values())
    for name, rule in _ELEMENTS.items():
        if name != "factory_tools" or given[name] is not None:
            fields[name] = _read_list(name, given[name], rule, said)
    shared = (each if isinstance(each, str) else find_tool(each) for each in fields["shared_tools"])
    fields["shared_tools"] = tuple(each.name if isinstance(each, Tool) else each for each in shared)
    for name, shape in LISTS.items():
        fields[name] = _read_values(reader, name, given[name], shape, said)
    for name, shape in SECTIONS.items():
        fields[name] = _read_section(reader, name, given[name], shape, said)
    problems = [Problem(code="invalid_value", message=message) for message in said]
    return fields, [*problems, *(Problem(code=code, message=message) for code, message in reader.problems)]


def _read_list(name: str, value: Any, rule: Rule, said: list[str]) -> tuple[Any, ...]:
    """The elements that can be used."""
    if isinstance(value, str | dict) or not isinstance(value, Iterable):
        said.append(f"{name} is {show(cast('object', value))}: give a list.")
        return ()
    elements = {f"{name}[{number}]": each for number, each in enumerate(cast("Iterable[Any]", value))}
    wrong = wrong_arguments(elements, dict.fromkeys(elements, rule))
    said += wrong.values()
    return tuple(each for place, each in elements.items() if place not in wrong)


def _read_values(reader: SettingsReader, name: str, value: Any, shape: type[Value], said: list[str]) -> tuple[Any, ...]:
    rule = instance_of(f"a dict or a {shape.__name__}", dict, shape)
    found: list[Any] = []
    for number_of, each in enumerate(_read_list(name, value, rule, said)):
        try:
            found.append(shape.model_validate(each))
        except ValidationError as error:
            wrong_in(reader, error, (name, str(number_of)), shape.model_fields)
    return tuple(found)


def _read_section(reader: SettingsReader, name: str, value: Any, shape: type[Value], said: list[str]) -> Value:
    if isinstance(value, shape):
        return value
    if not isinstance(value, Mapping):
        said.append(f"{name} is {show(value)}: give a dict or a {shape.__name__}.")
        return shape()
    table = dict(cast("Mapping[str, Any]", value))
    if name in _READERS:
        return _READERS[name](reader, {name: table})
    return check_table(reader, name, shape, table, shape.model_fields)


def _read_models(reader: SettingsReader, data: Mapping[str, Any]) -> ModelSettings:
    tiers, roles = reader.models(data)
    return ModelSettings(tiers=tiers, roles=roles)


# Sections whose keys in team.toml are not the fields of their value.
_READERS: dict[str, Callable[[SettingsReader, Mapping[str, Any]], Value]] = {
    "budget": lambda reader, data: reader.budget(data),
    "limits": read_limits,
    "models": _read_models,
    "recovery": read_recovery,
}
