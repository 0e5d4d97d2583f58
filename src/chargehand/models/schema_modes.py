"""JSON schemas as providers see them: whether one fits their strict modes, and the words that replace a mode."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json

# What both providers' constrained decoding takes. A schema with anything else is sent as advice, not as a grammar.
_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
     "description", "title"}
)  # fmt: skip


@lru_cache(maxsize=256)
def instruction(packed: bytes) -> str:
    """The instruction for a model without a JSON-schema mode; `packed` is the schema as JSON."""
    return f"Answer with one JSON value that fits this JSON Schema, and with nothing else around it:\n{packed.decode()}"


@lru_cache(maxsize=256)
def qualifies(packed: bytes) -> bool:
    """Whether a provider can hold a model to the schema: closed objects, all properties required, no open values."""
    root = from_json(packed)
    return root.get("type") == "object" and _fits(root, root, ())


def _fits(node: object, root: Mapping[str, Any], above: tuple[str, ...]) -> bool:
    if not isinstance(node, dict):
        return False
    schema = cast("dict[str, Any]", node)
    if not schema.keys() <= _WORDS:
        return False
    if "$ref" in schema:
        return _reference_fits(schema["$ref"], root, above)
    if "anyOf" in schema:
        return all(_fits(choice, root, above) for choice in schema["anyOf"])
    match schema.get("type"):
        case "object":
            properties: dict[str, Any] = schema.get("properties", {})
            return (
                schema.get("additionalProperties") is False
                and set(schema.get("required", ())) == properties.keys()
                and all(_fits(child, root, above) for child in properties.values())
            )
        case "array":
            return _fits(schema.get("items"), root, above)
        case str():
            return True
        case _:
            return "enum" in schema or "const" in schema


def _reference_fits(name: object, root: Mapping[str, Any], above: tuple[str, ...]) -> bool:
    # A schema that contains itself is refused by Anthropic; `above` is the chain of names being followed.
    if not isinstance(name, str) or not name.startswith("#/$defs/") or name in above:
        return False
    return _fits(root.get("$defs", {}).get(name.removeprefix("#/$defs/")), root, (*above, name))
