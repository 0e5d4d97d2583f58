"""JSON data -> the same data without the nulls that mean an omitted property.

In strict schema modes no property can be omitted: a model writes null instead. If the schema itself does not allow
null, the property counts as omitted.
"""

from __future__ import annotations

from typing import Any, cast

from chargehand.text.json_schema import violations
from chargehand.values.base import JSON

_DEFINITION = "#/$defs/"


def without_nulls(data: JSON, schema: dict[str, JSON]) -> JSON:
    """The data as the schema means it."""
    definitions = schema.get("$defs")
    return _clean(data, schema, cast("dict[str, Any]", definitions) if isinstance(definitions, dict) else {})


def _clean(data: JSON, node: object, definitions: dict[str, Any]) -> JSON:
    schema: dict[str, Any] = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    for _ in range(len(definitions) + 1):
        reference = schema.get("$ref")
        found = definitions.get(reference.removeprefix(_DEFINITION)) if isinstance(reference, str) else None
        if not isinstance(found, dict):
            break
        schema = cast("dict[str, Any]", found)
    if isinstance(data, list) and "items" in schema:
        return [_clean(item, schema["items"], definitions) for item in cast("list[JSON]", data)]
    properties = schema.get("properties")
    if not isinstance(data, dict) or not isinstance(properties, dict):
        return cast("JSON", data)
    known, required = cast("dict[str, Any]", properties), schema.get("required", ())
    return {
        name: _clean(value, known.get(name), definitions)
        for name, value in cast("dict[str, JSON]", data).items()
        if value is not None or name in required or name not in known or _takes_null(known[name], definitions)
    }


def _takes_null(schema: object, definitions: dict[str, Any]) -> bool:
    if not isinstance(schema, dict):
        return schema is not False
    return not violations(None, {**cast("dict[str, JSON]", schema), "$defs": definitions}, 1)
