"""A JSON schema -> the part that a provider's schema mode accepts, or the words that replace a mode.

Providers enforce only a part of JSON Schema. Keywords that they refuse are left out here and put into a description:
code checks every answer against the whole schema. A value that may be anything becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json, to_json

# Words about a value are kept; limits are added to its description.
_SAID = ("title", "description")
_LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format", "minItems", "maxItems", "uniqueItems",
)  # fmt: skip
_IGNORED = frozenset({"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"})
_SHAPE = frozenset({"type", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const"})
_KNOWN = frozenset({*_SAID, *_LIMITS, *_IGNORED, *_SHAPE, "anyOf", "oneOf", "$ref", "$defs"})
_DEFINITION = "#/$defs/"
ANY_VALUE = "Text; write JSON as text."


class _Refused(Exception):
    """The schema cannot be said in the provider's part of JSON Schema."""


@lru_cache(maxsize=256)
def instruction(packed: bytes) -> str:
    """The instruction for a model without a JSON-schema mode; `packed` is the schema as JSON."""
    return f"Answer with one JSON value that fits this JSON Schema, and with nothing else around it:\n{packed.decode()}"


@lru_cache(maxsize=256)
def fit(packed: bytes, *, all_required: bool, most_unions: int = 1_000, most_optional: int = 1_000) -> bytes | None:
    """The schema as providers' strict modes accept it; None when they cannot express it: open objects, recursion.

    Objects are closed. With `all_required` an optional property becomes one that may be null. A schema with more values
    of several types, or more optional properties, than the provider allows is refused.
    """
    root = from_json(packed)
    try:
        if not isinstance(root, dict) or cast("dict[str, Any]", root).get("type") != "object":
            return None
        fitting = _Fitting(cast("dict[str, Any]", root), all_required)
        fitted = fitting.whole()
    except (_Refused, RecursionError):
        return None
    return None if fitting.unions > most_unions or fitting.optional > most_optional else to_json(fitted)


class _Fitting:
    """One schema being rewritten."""

    def __init__(self, root: dict[str, Any], all_required: bool) -> None:
        self.root = root
        self.all_required = all_required
        self.unions = 0
        self.optional = 0

    def whole(self) -> dict[str, Any]:
        definitions: dict[str, Any] = self.root.get("$defs", {})
        for name in definitions:
            self._refuse_recursion(name, ())
        fitted = self.fit(self.root)
        if definitions:
            fitted["$defs"] = {name: self.fit(each) for name, each in definitions.items()}
        return fitted

    def fit(self, node: object) -> dict[str, Any]:
        if node is True:
            node = {}
        if not isinstance(node, dict) or not (schema := cast("dict[str, Any]", node)).keys() <= _KNOWN:
            raise _Refused
        said = _keep_words(schema)
        if "$ref" in schema:
            if str(schema["$ref"]).removeprefix(_DEFINITION) not in self.root.get("$defs", {}):
                raise _Refused
            return {"$ref": schema["$ref"]}
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            self.unions += 1
            return {**said, "anyOf": [self.fit(choice) for choice in choices]}
        if isinstance(schema.get("type"), list):
            return self._several(schema, said)
        return {**said, **self._one(schema, said)}

    def _several(self, schema: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
        """A value of one of several types: a plain type that may be null, else a choice between schemas."""
        kinds: list[str] = schema["type"]
        self.unions += 1
        rest = {name: value for name, value in schema.items() if name not in (*_SAID, *_LIMITS, "type")}
        if not rest and not {"object", "array"} & set(kinds):
            return {**said, "type": kinds}
        return {**said, "anyOf": [self._one({**rest, "type": kind}, {}) for kind in kinds]}

    def _one(self, schema: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
        match schema.get("type"):
            case "object":
                return self._object(schema)
            case "array" if "prefixItems" in schema:
                if "items" in schema:
                    raise _Refused
                parts = [self.fit(part) for part in schema["prefixItems"]]
                return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
            case "array":
                return {"type": "array", "items": self.fit(schema.get("items", {}))}
            case kind if "const" in schema or "enum" in schema:
                values: list[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
                if kind == "null":
                    return {"type": "null"}
                same = {type(value) for value in values} == {str}
                return {**({"type": kind or "string"} if kind or same else {}), "enum": values}
            case str(kind):
                return {"type": kind}
            case _:
                # Anything at all.
                text = said.get("description")
                return {"type": "string", "description": f"{text} {ANY_VALUE}" if text else ANY_VALUE}

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        if isinstance(extra, dict) or (not properties and extra is not False):
            # Any keys are allowed, and a closed object would forbid all of them.
            raise _Refused
        required = [name for name in schema.get("required", ()) if name in properties]
        fitted = {name: self.fit(child) for name, child in properties.items()}
        if self.all_required:
            fitted = {name: each if name in required else self._or_null(each) for name, each in fitted.items()}
            required = list(properties)
        self.optional += len(properties) - len(required)
        return {"type": "object", "properties": fitted, "required": required, "additionalProperties": False}

    def _or_null(self, fitted: dict[str, Any]) -> dict[str, Any]:
        kind = fitted.get("type")
        if kind == "null" or (isinstance(kind, list) and "null" in kind):
            return fitted
        if any(choice.get("type") == "null" for choice in fitted.get("anyOf", ())):
            return fitted
        self.unions += 1
        if isinstance(kind, str) and fitted.keys() <= {"type", *_SAID}:
            return {**fitted, "type": [kind, "null"]}
        return {"anyOf": [fitted, {"type": "null"}]}

    def _refuse_recursion(self, name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise _Refused
        for inner in _references(self.root.get("$defs", {}).get(name)):
            self._refuse_recursion(inner, (*above, name))


def _keep_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Title and description, with the dropped limits in words."""
    said = {name: schema[name] for name in _SAID if name in schema}
    if limits := [f"{name}: {schema[name]}" for name in _LIMITS if name in schema and "prefixItems" not in schema]:
        said["description"] = " ".join([*([said["description"]] if "description" in said else []), *limits])
    return said


def _references(node: object) -> set[str]:
    """The definitions that a schema names."""
    if isinstance(node, dict):
        schema = cast("dict[str, Any]", node)
        own = {str(schema["$ref"]).removeprefix(_DEFINITION)} if "$ref" in schema else set[str]()
        return own.union(*(_references(inner) for inner in schema.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(inner) for inner in cast("list[Any]", node)))
    return set()
