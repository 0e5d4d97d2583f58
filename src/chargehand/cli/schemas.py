"""`schema`: JSON schemas of the values that scripts use. The same schemas are published in docs/reference/schemas."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.events.body import EventField
    from chargehand.values.base import Value

NAMES = (
    "plan", "task", "outcome", "finding", "claim", "usage", "report", "problem", "request", "event", "script", "team",
)  # fmt: skip

# Fields that are left out of the JSON of a value when they have their default.
_LEFT_OUT: dict[str, frozenset[str]] = {
    "Task": frozenset({"on_dependency_failure", "budget", "timeout_s", "tier", "best_of"}),
    "Plan": frozenset({"team", "workers"}),
    "Outcome": frozenset({"partial", "error", "escalation", "because", "gaps", "contradictions"}),
    "Report": frozenset({"data", "error", "when_nothing"}),
}
# The fields that people must write.
_NEEDED: dict[str, list[str]] = {
    "Plan": ["tasks"],
    "Task": ["id", "worker", "instruction", "success_criterion"],
    "WorkerSpec": ["name"],
}


@click.command(cls=Command)
@click.argument("name", required=False, metavar="[NAME]", type=click.Choice(NAMES))
def schema(name: str | None) -> None:
    """Print the JSON schema of NAME; without NAME, list the names."""
    out = screen()
    if name is None:
        for each in NAMES:
            out.put(each)
    else:
        out.document(schema_of(name))


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of one of NAMES."""
    if name == "event":
        return _event()
    if name == "team":
        from chargehand.team.team_schema import team_schema

        return team_schema()
    written = name in ("plan", "task", "script")
    found = _values()[name].model_json_schema(mode="validation" if written else "serialization")
    for title, part in [(found.get("title", ""), found), *found.get("$defs", {}).items()]:
        if written and title in _NEEDED:
            part["required"] = _NEEDED[title]
        elif not written and "required" in part:
            part["required"] = [key for key in part["required"] if key not in _LEFT_OUT.get(title, ())]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _values() -> dict[str, type[Value]]:
    from chargehand.models.scripted import Script
    from chargehand.values.outcome import Claim, Finding, Outcome, Usage
    from chargehand.values.plan import Plan, Problem, Task
    from chargehand.values.report import Report
    from chargehand.values.request import Request

    return {
        "plan": Plan,
        "task": Task,
        "outcome": Outcome,
        "finding": Finding,
        "claim": Claim,
        "usage": Usage,
        "report": Report,
        "problem": Problem,
        "request": Request,
        "script": Script,
    }


def _event() -> dict[str, Any]:
    """An event by its kind. Fields may be added within a version, so others are allowed."""
    from chargehand.events import VERSION
    from chargehand.events.body import BODIES, fields_of
    from chargehand.events.kinds import KINDS

    fields = {
        "v": {"const": VERSION},
        "run": {"type": "string"},
        "seq": {"type": "integer", "minimum": 1},
        "at": {"type": "number", "description": "Seconds since 1970"},
        "kind": {"enum": list(KINDS)},
        "task": {"type": "string"},
        "attempt": {"type": "integer", "minimum": 0},
    }
    by_kind: list[dict[str, Any]] = [
        {
            "if": {"properties": {"kind": {"const": kind}}},
            "then": {
                "properties": {name: _field(field) for name, field in fields_of(body).items()},
                "required": [name for name, field in fields_of(body).items() if field.required],
                "description": body.__doc__,
            },
        }
        for kind, body in BODIES.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "One thing that happened in a run.",
        "type": "object",
        "properties": fields,
        "required": ["v", "run", "seq", "at", "kind"],
        "allOf": by_kind,
    }


_JSON_TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    NoneType: "null",
}


def _field(field: EventField) -> dict[str, Any] | bool:
    if object in field.types:
        return True
    return {"type": [_JSON_TYPES[each] for each in field.types if not (each is int and float in field.types)]}
