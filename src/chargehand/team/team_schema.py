"""team.toml as a JSON schema, for editors: the same keys that `team_file.py` reads, with what each is for."""

from __future__ import annotations

from typing import Any, get_args

from chargehand.models.call_options import EFFORTS
from chargehand.settings.settings_file import MOST
from chargehand.team.routes import RouteRule
from chargehand.team.team_sections import Scrutiny
from chargehand.values.plan import TIERS, FactoryLimits, SynthesisSpec
from chargehand.values.recovery_policy import Policy
from chargehand.values.role import Role

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": MOST}
_OVER_0: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}
_MODEL: dict[str, Any] = {"type": "string", "pattern": "^[^:]+:.+", "description": "provider:name"}


def team_schema() -> dict[str, Any]:
    """Draft 2020-12; unknown keys are errors, as they are when the file is read."""
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {
        "name": _TEXT | {"description": "Default: the folder's name."},
        "description": _TEXT | {"description": "What requests the team is for."},
        "disclaimer": _TEXT | {"description": "A line every answer ends with."},
        "supervisor": _table(
            {
                "mode": {"enum": ["plan", "route"], "description": "Decompose a request, or hand it on as it is."},
                "default": _TEXT | {"description": "The worker for requests that fit no other. Default: the first."},
            }
        ),
        "routes": {
            "type": "array",
            "items": _of(RouteRule, definitions),
            "description": "Which worker gets which request, tried in order before the router.",
        },
        "factory": _of(FactoryLimits, definitions) | {"description": "What workers that a plan defines may have."},
        "shared_tools": _NAMES | {"description": "Tools that several workers may hold."},
        "limits": _table(
            {
                "max_concurrent": _COUNT | {"description": "Calls at once."},
                "max_tasks": _COUNT | {"description": "Tasks in a plan."},
                "max_steps": _COUNT | {"description": "Steps of a worker."},
                "max_depth": _COUNT | {"description": "How deep teams nest. Default: 3."},
                "deadline": _OVER_0 | {"description": "Seconds."},
            }
        ),
        "budget": _table({"tokens": _COUNT, "usd": _OVER_0}),
        "recovery": _recovery(definitions),
        "synthesis": _table(
            {
                **_of(SynthesisSpec, definitions)["properties"],
                **_of(Scrutiny, definitions)["properties"],
                "when_nothing": _TEXT | {"description": "The answer where no worker could be reached."},
            }
        ),
        "models": _table({**dict.fromkeys(TIERS, _MODEL), **dict.fromkeys(get_args(Role), _ROLE)}),
        "mcp": _mcp_servers(),
        "people": _table({"ask": {"type": "boolean", "description": "Escalations may reach a person."}}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "team.toml",
        **_table(properties),
        "required": ["description"],
        **({"$defs": definitions} if definitions else {}),
    }


def _mcp_servers() -> dict[str, Any]:
    server = {
        "command": _TEXT | {"description": "The program of the server."},
        "args": _NAMES,
        "env": _NAMES | {"description": "Names of variables that the program is given."},
        "url": _TEXT | {"description": "The address of a server that runs elsewhere."},
        "key_env": _TEXT | {"description": "The variable with the bearer token for the address."},
        "tools": _NAMES | {"description": "The tools that may be used. Default: all."},
        "timeout": _OVER_0 | {"description": "Seconds for one call. Default: 60."},
    }
    about = "MCP servers whose tools workers list as mcp:NAME or mcp:NAME/TOOL; needs trust."
    return {"type": "object", "additionalProperties": _table(server), "description": about}


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


_ROLE = _table(
    {
        "model": _MODEL,
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "effort": {"enum": list(EFFORTS), "description": "How much the model reasons."},
        "options": {"type": "object"},
    }
)


def _of(
    shape: type[RouteRule | FactoryLimits | SynthesisSpec | Scrutiny | Policy], definitions: dict[str, Any]
) -> dict[str, Any]:
    """A value's own schema; what it refers to is put with the others."""
    schema = shape.model_json_schema()
    definitions.update(schema.pop("$defs", {}))
    return schema


def _recovery(definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _of(Policy, definitions)
    # The file names it without the unit.
    del schema["properties"]["hedge_after_s"]
    schema["properties"]["hedge_after"] = _OVER_0 | {"description": "Seconds until a call is made a second time."}
    return schema
