"""Shapes of arguments and results -> JSON schemas that every MCP client accepts: without references and null."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

# The fields that every tool about a run returns, with others; `plan` returns a plan.
RUN_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "run": {"type": "string"},
        "status": {"type": "string"},
        "answer": {"type": ["string", "null"]},
        "next": {"type": ["string", "null"]},
    },
    "required": ["run", "status"],
}
PLAN_RESULT: dict[str, Any] = {"type": "object", "properties": {"plan": {"type": "object"}}, "required": ["plan"]}


def input_schema(shape: type[BaseModel], words: dict[str, str]) -> dict[str, Any]:
    """The schema of a tool's arguments; `words` describes parameters by name."""
    schema = shape.model_json_schema(by_alias=True)
    plain = _simplify(schema, schema.get("$defs", {}))
    plain.pop("description", None)
    for name, parameter in plain.get("properties", {}).items():
        parameter["description"] = words[name]
    return plain


def _simplify(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema without titles, references and null alternatives, which some clients refuse."""
    if isinstance(schema, list):
        return [_simplify(each, definitions) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    if "$ref" in given:
        return _simplify(definitions[given["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in given:
        options = [each for each in given["anyOf"] if each != {"type": "null"}]
        if len(options) == 1:
            rest = {name: value for name, value in given.items() if name not in ("anyOf", "default")}
            return _simplify({**rest, **options[0]}, definitions)
    names = given.get("properties", {})
    kept = {name: value for name, value in given.items() if name not in ("title", "$defs", "properties")}
    simple = {name: _simplify(value, definitions) for name, value in kept.items()}
    if names:
        simple["properties"] = {name: _simplify(value, definitions) for name, value in names.items()}
    return simple
