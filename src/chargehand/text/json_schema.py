"""Turns JSON data and a JSON Schema into the list of places where the data breaks it, in words.

Supported is the part of draft 2020-12 that models and people write; other keywords are ignored. Patterns run on
pydantic's regular-expression engine, which takes linear time and knows neither look-around nor back-references.
The library jsonschema was measured against it: docs/adr/0011.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from chargehand.values.base import JSON

# Deeper data or schemas are refused, so that the result never depends on the interpreter's stack.
MAX_DEPTH = 100

_Place: TypeAlias = tuple[str | int, ...]
# The place, relative to the checked data, and what is wrong there.
_Found: TypeAlias = list[tuple[_Place, str]]

_ARTICLE = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_SUBSCHEMA = ("additionalProperties", "items", "not")
_SUBSCHEMA_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_SUBSCHEMA_MAP = ("properties", "patternProperties", "$defs", "definitions")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def violations(data: JSON, schema: dict[str, JSON], limit: int = 20) -> list[str]:
    """Where the data breaks the schema, at most `limit` sentences; empty when it fits."""
    if too_deep(data):
        return [f"nested more than {MAX_DEPTH} levels deep"]
    if too_deep(schema):
        return [f"the schema is nested more than {MAX_DEPTH} levels deep"]
    # The check looks for at least one, even with limit 0: `anyOf` and `not` need the result.
    found = _Check(schema, max(limit, 1)).check(schema, data, 0)
    return [_sentence(place, text) for place, text in found[: max(limit, 0)]]


def problems_in(schema: JSON) -> list[str]:
    """The parts of a user's schema that cannot be used; empty when all of it can."""
    if not _is_object(schema):
        return [f"a schema is a JSON object, got {_show(schema)}"]
    if too_deep(schema):
        return [f"the schema is nested more than {MAX_DEPTH} levels deep"]
    problems: list[str] = []
    seen: set[int] = set()
    waiting: list[tuple[_Place, JSON]] = [((), schema)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, bool) or id(part) in seen:
            continue
        if not _is_object(part):
            problems.append(_sentence(place, f"a schema is an object or true or false, got {_show(part)}"))
            continue
        seen.add(id(part))
        problems += [_sentence((*place, keyword), text) for keyword, text in _keyword_problems(part, schema)]
        inner = [((*place, *step), sub) for step, sub in _subschemas(part)]
        target = _resolve(schema, part.get("$ref"))
        if target is not _ABSENT:
            inner.append(((part["$ref"],), target))
        waiting += reversed(inner)
    return problems


def too_deep(data: JSON) -> bool:
    """Whether the data nests more than MAX_DEPTH lists and objects."""
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return False
    return True


def _children(data: JSON) -> Iterable[JSON]:
    if _is_object(data):
        return data.values()
    return data if _is_list(data) else ()


class _WrongType(str):
    """The sentence for a value of the wrong type: a form that breaks first in this way was not the intended one."""

    __slots__ = ()


class _Check:
    """One comparison: each pair of a schema and a value is checked once, so the time stays polynomial."""

    def __init__(self, root: dict[str, JSON], limit: int) -> None:
        self._root = root
        self._limit = limit
        # Keyed by identity: both trees outlive the check. An entry made before its answer is known ends $ref cycles.
        self._known: dict[tuple[int, int], _Found] = {}

    def check(self, schema: JSON, data: JSON, depth: int) -> _Found:
        if schema is False:
            return [((), "nothing is allowed here")]
        if not _is_object(schema):
            return []
        if depth > MAX_DEPTH:
            return [((), "nested too deeply to check")]
        pair = (id(schema), id(data))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._look(schema, data, depth + 1)
        return self._known[pair]

    def _look(self, schema: dict[str, JSON], data: JSON, depth: int) -> _Found:
        wrong_type = _type_problem(schema, data)
        if wrong_type:
            # Other violations of a value of the wrong type only distract.
            return [((), wrong_type)]
        found: _Found = [((), text) for text in _value_problems(schema, data)]
        steps: list[Callable[[dict[str, JSON], JSON, int], Iterator[_Found]]] = [self._references, self._combinations]
        if _is_object(data):
            steps.append(self._properties)
        elif _is_list(data):
            steps.append(self._items)
        for step in steps:
            for more in step(schema, data, depth):
                found += more
                if len(found) >= self._limit:
                    return found[: self._limit]
        return found

    def _references(self, schema: dict[str, JSON], data: JSON, depth: int) -> Iterator[_Found]:
        target = _resolve(self._root, schema.get("$ref"))
        if target is not _ABSENT:
            yield self.check(target, data, depth)

    def _combinations(self, schema: dict[str, JSON], data: JSON, depth: int) -> Iterator[_Found]:
        for part in _list(schema.get("allOf")):
            yield self.check(part, data, depth)
        if any_of := _list(schema.get("anyOf")):
            tries = [self.check(part, data, depth) for part in any_of]
            if all(tries):
                yield _closest(tries)
        if one_of := _list(schema.get("oneOf")):
            tries = [self.check(part, data, depth) for part in one_of]
            fitting = sum(not each for each in tries)
            if fitting == 0:
                yield _closest(tries)
            elif fitting > 1:
                yield [((), f"fits {fitting} of the {len(tries)} forms of which exactly one is allowed")]
        if "not" in schema and _is_schema(schema["not"]) and not self.check(schema["not"], data, depth):
            yield [((), f"is of a form that is not allowed, got {_show(data)}")]

    def _properties(self, schema: dict[str, JSON], data: dict[str, JSON], depth: int) -> Iterator[_Found]:
        named = _object(schema.get("properties"))
        patterns = _object(schema.get("patternProperties"))
        rest = schema.get("additionalProperties", True)
        for name in _list(schema.get("required")):
            if isinstance(name, str) and name not in data:
                yield [((), f"{_quote(name)} is missing")]
        for name, value in data.items():
            parts = [named[name]] if name in named else []
            parts += [part for pattern, part in patterns.items() if matches(pattern, name)]
            if not parts and rest is False:
                allowed = f"; allowed are {_some(map(_quote, named))}" if named else ""
                yield [((), f"{_quote(name)} is not allowed{allowed}")]
                continue
            for part in parts or [rest]:
                yield _under(name, self.check(part, value, depth))

    def _items(self, schema: dict[str, JSON], data: list[JSON], depth: int) -> Iterator[_Found]:
        prefix = _list(schema.get("prefixItems"))
        rest = schema.get("items", True)
        for index, value in enumerate(data):
            if index >= len(prefix) and rest is True:
                return
            yield _under(index, self.check(prefix[index] if index < len(prefix) else rest, value, depth))


def _under(step: str | int, found: _Found) -> _Found:
    return [((step, *place), text) for place, text in found]


def _closest(tries: list[_Found]) -> _Found:
    """The violations of the intended form, when it is clear which one that is; else a line about all forms."""
    meant = [found for found in tries if found[0][0] or not isinstance(found[0][1], _WrongType)]
    if len(meant) == 1:
        return meant[0]
    # Shortened, because nested forms would repeat each other's text.
    forms = _some((_sentence(*found[0])[:120] for found in tries), most=4, between="; ")
    return [((), f"fits none of the {len(tries)} allowed forms: {forms}")]


def _type_problem(schema: dict[str, JSON], data: JSON) -> _WrongType | None:
    stated = schema.get("type")
    names = [name for name in (stated if _is_list(stated) else [stated]) if isinstance(name, str) and name in _ARTICLE]
    if not names or any(_is_type(name, data) for name in names):
        return None
    return _WrongType(f"expected {' or '.join(_ARTICLE[name] for name in names)}, got {_show(data)}")


def _is_type(name: str, data: JSON) -> bool:
    match name:
        case "string":
            return isinstance(data, str)
        case "number":
            return _is_number(data)
        case "integer":
            return _is_number(data) and (isinstance(data, int) or data.is_integer())
        case "boolean":
            return isinstance(data, bool)
        case "null":
            return data is None
        case "array":
            return isinstance(data, list)
        case _:
            return isinstance(data, dict)


def _value_problems(schema: dict[str, JSON], data: JSON) -> Iterator[str]:
    """What is wrong with the value itself, apart from the values inside it."""
    if "const" in schema and _identity(schema["const"]) != _identity(data):
        yield f"expected {_show(schema['const'])}, got {_show(data)}"
    if _is_list(choices := schema.get("enum")) and _identity(data) not in {_identity(each) for each in choices}:
        yield f"expected one of {_some(map(_show, choices))}, got {_show(data)}"
    if isinstance(data, str):
        yield from _count_problems(schema, "Length", len(data), "characters")
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and matches(pattern, data) is False:
            yield f"expected text matching {pattern}, got {_show(data)}"
    elif _is_number(data):
        yield from _number_problems(schema, data)
    elif _is_list(data):
        yield from _count_problems(schema, "Items", len(data), "items")
        if schema.get("uniqueItems") is True and len({_identity(each) for each in data}) < len(data):
            yield "expected items that all differ, got the same one twice"
    elif _is_object(data):
        yield from _count_problems(schema, "Properties", len(data), "properties")


def _count_problems(schema: dict[str, JSON], noun: str, count: int, unit: str) -> Iterator[str]:
    least, most = schema.get(f"min{noun}"), schema.get(f"max{noun}")
    if _is_number(least) and count < least:
        yield f"expected at least {_show(least)} {unit}, got {count}"
    if _is_number(most) and count > most:
        yield f"expected at most {_show(most)} {unit}, got {count}"


def _number_problems(schema: dict[str, JSON], data: int | float) -> Iterator[str]:
    least, most, above, below = (schema.get(keyword) for keyword in ("minimum", "maximum", *_BOUNDS[2:]))
    if _is_number(least) and data < least:
        yield f"expected at least {_show(least)}, got {_show(data)}"
    if _is_number(most) and data > most:
        yield f"expected at most {_show(most)}, got {_show(data)}"
    if _is_number(above) and data <= above:
        yield f"expected more than {_show(above)}, got {_show(data)}"
    if _is_number(below) and data >= below:
        yield f"expected less than {_show(below)}, got {_show(data)}"
    step = schema.get("multipleOf")
    if _is_number(step) and step > 0 and not _is_multiple(data, step):
        yield f"expected a multiple of {_show(step)}, got {_show(data)}"


def _is_multiple(data: int | float, step: int | float) -> bool:
    """Exact in decimals: 0.3 is a multiple of 0.1."""
    try:
        # A float is converted through its shortest decimal form. An int is not: a long int has no text form.
        whole, part = (Fraction(each) if isinstance(each, int) else Fraction(repr(each)) for each in (data, step))
    except ValueError:  # inf, nan
        return False
    return whole % part == 0


def _keyword_problems(schema: dict[str, JSON], root: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    stated = schema.get("type", [])
    for name in stated if _is_list(stated) else [stated]:
        if not isinstance(name, str) or name not in _ARTICLE:
            yield "type", f"unknown type {_show(name)}; known are {', '.join(_ARTICLE)}"
    if "$ref" in schema and _resolve(root, schema["$ref"]) is _ABSENT:
        local = isinstance(schema["$ref"], str) and (schema["$ref"] == "#" or schema["$ref"].startswith("#/"))
        reason = "points to nothing in this schema" if local else "is not a reference into this schema (#/$defs/...)"
        yield "$ref", f"{_show(schema['$ref'])} {reason}"
    patterns = [("pattern", schema["pattern"])] if "pattern" in schema else []
    patterns += [("patternProperties", pattern) for pattern in _object(schema.get("patternProperties"))]
    for keyword, pattern in patterns:
        if not isinstance(pattern, str) or _compile_pattern(pattern) is None:
            yield keyword, f"{_show(pattern)} is not a usable regular expression (no look-around, no back-references)"
    yield from _shape_problems(schema)


def _shape_problems(schema: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    for keyword in _SUBSCHEMA_MAP:
        if not _is_object(schema.get(keyword, {})):
            yield keyword, f"expected an object of schemas, got {_show(schema[keyword])}"
    for keyword in _SUBSCHEMA_LIST:
        if keyword in schema and not _list(schema[keyword]):
            yield keyword, f"expected a list of schemas, got {_show(schema[keyword])}"
    required = schema.get("required", [])
    if not _is_list(required) or not all(isinstance(name, str) for name in required):
        yield "required", "expected a list of property names"
    if not _is_list(schema.get("enum", [])):
        yield "enum", f"expected a list of values, got {_show(schema['enum'])}"
    if not isinstance(schema.get("uniqueItems", True), bool):
        yield "uniqueItems", f"expected true or false, got {_show(schema['uniqueItems'])}"
    for keyword in _COUNTS:
        if not (_is_type("integer", schema.get(keyword, 0)) and schema.get(keyword, 0) >= 0):
            yield keyword, f"expected an integer of at least 0, got {_show(schema[keyword])}"
    for keyword in _BOUNDS:
        if not _is_number(schema.get(keyword, 0)):
            yield keyword, f"expected a number, got {_show(schema[keyword])}"
    if not (_is_number(schema.get("multipleOf", 1)) and schema.get("multipleOf", 1) > 0):
        yield "multipleOf", f"expected a number above 0, got {_show(schema['multipleOf'])}"


def _subschemas(schema: dict[str, JSON]) -> Iterator[tuple[_Place, JSON]]:
    for keyword in _SUBSCHEMA:
        if keyword in schema:
            yield (keyword,), schema[keyword]
    for keyword in _SUBSCHEMA_LIST:
        for index, part in enumerate(_list(schema.get(keyword))):
            yield (keyword, index), part
    for keyword in _SUBSCHEMA_MAP:
        for name, part in _object(schema.get(keyword)).items():
            yield (keyword, name), part


_ABSENT: Any = object()


def _resolve(root: JSON, reference: JSON) -> JSON:
    """What a local reference points to, or _ABSENT."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return _ABSENT
    target = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if _is_object(target) and name in target:
            target = target[name]
        elif _is_list(target) and name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(target):
            target = target[int(name)]
        else:
            return _ABSENT
    return target


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> SchemaValidator | None:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=_encodable(pattern), regex_engine="rust-regex"))
    except SchemaError:
        return None


def matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern occurs in the text; None when the pattern is unusable."""
    validator = _compile_pattern(pattern)
    if validator is None:
        return None
    try:
        validator.validate_python(_encodable(text))
    except ValidationError:
        return False
    return True


def _identity(data: JSON) -> object:
    """Equal for equal JSON: 1 is 1.0 but not true."""
    if _is_list(data):
        return ("list", tuple(map(_identity, data)))
    if _is_object(data):
        return ("object", frozenset(zip(data.keys(), map(_identity, data.values()), strict=True)))
    return (isinstance(data, bool), data)


def _sentence(place: _Place, text: str) -> str:
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.replace("$", "_").replace("-", "_").isidentifier():
            path += f".{step}" if path else step
        else:
            path += f"[{_quote(step)}]"
    return _encodable(f"{path}: {text}" if path else text)


def _show(data: JSON) -> str:
    """The value as JSON when it is short, else what it is."""
    if isinstance(data, str):
        return _quote(data)
    if _is_object(data):
        return "an object" if data else "an empty object"
    if _is_list(data):
        return f"a list of {len(data)}"
    # Beyond some thousand digits an int has no text form.
    return "a huge number" if isinstance(data, int) and data.bit_length() > 256 else json.dumps(data, default=repr)


def _quote(text: str) -> str:
    return json.dumps(text if len(text) <= 60 else text[:57] + "...", ensure_ascii=False)


def _some(texts: Iterable[str], most: int = 12, between: str = ", ") -> str:
    every = list(texts)
    more = f"{between}and {len(every) - most} more" if len(every) > most else ""
    return between.join(every[:most]) + more


def _encodable(text: str) -> str:
    """The text with lone surrogates, which no encoding can carry, replaced."""
    return text.encode("utf-8", "replace").decode()


def _is_schema(data: JSON) -> bool:
    return isinstance(data, (bool, dict))


def _is_number(data: JSON) -> TypeGuard[int | float]:
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def _is_object(data: JSON) -> TypeGuard[dict[str, Any]]:
    return isinstance(data, dict)


def _is_list(data: JSON) -> TypeGuard[list[Any]]:
    return isinstance(data, list)


def _object(data: JSON) -> dict[str, Any]:
    return data if _is_object(data) else {}


def _list(data: JSON) -> list[Any]:
    return data if _is_list(data) else []
