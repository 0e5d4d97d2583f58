"""Data is held against a JSON Schema as the reference validator does it, and what is wrong is said in words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chargehand.text.json_schema import MAX_DEPTH, problems_in, violations
from tests.counts import examples
from tests.pace import Timed

ORDER = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1},
        "status": {"enum": ["open", "paid"]},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    },
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}},
}

MESSAGES: list[tuple[Any, dict[str, Any], list[str]]] = [
    ({"items": [{"price": 1}]}, ORDER, []),
    (
        {"items": [{"price": 1}, {"price": 2}, {"price": "12 EUR"}]},
        ORDER,
        ['items[2].price: expected a number, got "12 EUR"'],
    ),
    ({"items": [{}]}, ORDER, ['items[0]: "price" is missing']),
    ({"items": []}, ORDER, ["items: expected at least 1 items, got 0"]),
    ([1], ORDER, ["expected an object, got a list of 1"]),
    ({}, ORDER, ['"items" is missing']),
    (
        {"items": [{"price": True}], "status": "lost", "x": 1},
        ORDER,
        [
            "items[0].price: expected a number, got true",
            'status: expected one of "open", "paid", got "lost"',
            '"x" is not allowed; allowed are "items", "status", "note"',
        ],
    ),
    ({"items": [{"price": 1}], "note": "too long"}, ORDER, ["note: expected at most 5 characters, got 8"]),
    (1.5, {"type": ["integer", "null"]}, ["expected an integer or null, got 1.5"]),
    (2, {"const": 3}, ["expected 3, got 2"]),
    ("ab", {"pattern": "^[0-9]+$"}, ['expected text matching ^[0-9]+$, got "ab"']),
    (5, {"minimum": 6, "multipleOf": 2}, ["expected at least 6, got 5", "expected a multiple of 2, got 5"]),
    (5, {"exclusiveMaximum": 5}, ["expected less than 5, got 5"]),
    ([1, 1.0], {"uniqueItems": True}, ["expected items that all differ, got the same one twice"]),
    (1, {"oneOf": [{}, {"type": "integer"}]}, ["fits 2 of the 2 forms of which exactly one is allowed"]),
    (1, {"not": {"type": "integer"}}, ["is of a form that is not allowed, got 1"]),
    (
        1,
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ["fits none of the 2 allowed forms: expected a string, got 1; expected null, got 1"],
    ),
    ({"a b": {"c-d": 1}}, {"additionalProperties": {"additionalProperties": False}}, ['["a b"]: "c-d" is not allowed']),
    ({"a": 1}, {"properties": {"a": False}}, ["a: nothing is allowed here"]),
    ({"a": 1}, {"properties": {"a": False}, "additionalProperties": False}, ["a: nothing is allowed here"]),
    (0.3, {"multipleOf": 0.1}, []),
    ([10**5000], {"items": {"maximum": 1}}, ["[0]: expected at most 1, got a huge number"]),
    (
        {"a/b": 1},
        {"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"maxProperties": 0}}},
        ["expected at most 0 properties, got 1"],
    ),
]

PROBLEMS: list[tuple[Any, list[str]]] = [
    (ORDER, []),
    ({}, []),
    ({"properties": {"a": True}, "x-unknown": 1, "format": "date"}, []),
    ({"$ref": "#"}, []),
    ([], ["a schema is a JSON object, got a list of 0"]),
    ("string", ['a schema is a JSON object, got "string"']),
    (
        {"type": "str"},
        ['type: unknown type "str"; known are string, number, integer, boolean, null, array, object'],
    ),
    (
        {"properties": {"a": {"$ref": "https://x/y"}}},
        ['properties.a.$ref: "https://x/y" is not a reference into this schema (#/$defs/...)'],
    ),
    ({"$ref": "#/$defs/x"}, ['$ref: "#/$defs/x" points to nothing in this schema']),
    (
        {"items": {"pattern": "(a"}},
        ['items.pattern: "(a" is not a usable regular expression (no look-around, no back-references)'],
    ),
    (
        {"patternProperties": {"(?=a)": {}}},
        ['patternProperties: "(?=a)" is not a usable regular expression (no look-around, no back-references)'],
    ),
    ({"items": [{}]}, ["items: a schema is an object or true or false, got a list of 1"]),
    ({"required": "a"}, ["required: expected a list of property names"]),
    ({"anyOf": []}, ["anyOf: expected a list of schemas, got a list of 0"]),
    ({"minLength": -1}, ["minLength: expected an integer of at least 0, got -1"]),
    ({"minimum": "1"}, ['minimum: expected a number, got "1"']),
    ({"multipleOf": 0}, ["multipleOf: expected a number above 0, got 0"]),
    (
        {"enum": 1, "uniqueItems": 1},
        ["enum: expected a list of values, got 1", "uniqueItems: expected true or false, got 1"],
    ),
    ({"$ref": "#/x", "x": {"type": "no"}}, ['["#/x"].type: unknown type "no"; known are ']),
]

names = st.sampled_from(["a", "b", "ab"])
small = st.integers(-2, 4)
scalars = st.none() | st.booleans() | small | st.sampled_from([0.5, 1.0, 2.5]) | names | st.just("")
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
types = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
counts = st.integers(0, 3)
patterns = st.sampled_from(["a", "^a$", "b+", "^[ab]*$"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "type": types | st.lists(types, min_size=1, max_size=2, unique=True),
        "enum": st.lists(data, min_size=1, max_size=3),
        "const": data,
        "required": st.lists(names, max_size=2, unique=True),
        "uniqueItems": st.booleans(),
        "pattern": patterns,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], small),
        **dict.fromkeys(["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"], counts),
        **dict.fromkeys(["anyOf", "oneOf", "allOf", "prefixItems"], several),
        **dict.fromkeys(["not", "items", "additionalProperties"], inner),
        "properties": st.dictionaries(names, inner, max_size=3),
        "patternProperties": st.dictionaries(patterns, inner, max_size=2),
        # "#/$defs/x" may refer to what refers to it, but only from inside the data: see `schemas`.
        "$ref": st.just("#/$defs/leaf"),
    }
    return st.lists(st.sampled_from(sorted(plain)), min_size=1, max_size=3, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: plain[keyword] for keyword in chosen})
    )


leaves = st.booleans() | st.fixed_dictionaries({"type": types}) | st.fixed_dictionaries({"const": scalars})
schemas = st.builds(
    lambda schema, leaf: {
        **schema,
        "$defs": {"leaf": {"anyOf": [leaf, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/leaf"}}]}},
    },
    keywords(st.recursive(leaves, keywords, max_leaves=4)),
    leaves,
)
KEYWORDS = {
    "type",
    "enum",
    "const",
    "required",
    "pattern",
    "minimum",
    "multipleOf",
    "minItems",
    "uniqueItems",
    "minLength",
}
KEYWORDS |= {"anyOf", "oneOf", "allOf", "not", "items", "prefixItems", "properties", "additionalProperties"}
KEYWORDS |= {"patternProperties", "$ref", "$defs", "a"}
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | types
    | st.sampled_from(["#", "#/a"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(sorted(KEYWORDS)) | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(("value", "schema", "expected"), MESSAGES)
def test_a_violation_names_the_place_the_expectation_and_the_value(
    value: Any, schema: dict[str, Any], expected: list[str]
) -> None:
    """Each sentence says where, what was expected and what was there."""
    assert violations(value, schema) == expected


@pytest.mark.parametrize(("schema", "expected"), PROBLEMS)
def test_what_is_unusable_in_a_schema_is_named(schema: Any, expected: list[str]) -> None:
    """Every unusable keyword is reported with its place; unknown keywords are let be."""
    problems = problems_in(schema)
    assert len(problems) == len(expected)
    assert all(map(str.startswith, problems, expected))


@pytest.mark.slow
@settings(max_examples=examples(600), deadline=None)
@given(schemas, data)
def test_the_verdict_is_that_of_the_reference_validator(schema: dict[str, Any], value: Any) -> None:
    """On the supported keywords this and jsonschema agree on what fits."""
    assert problems_in(schema) == []
    assert (violations(value, schema) == []) == Draft202012Validator(schema).is_valid(value), (schema, value)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(anything, st.dictionaries(st.text(max_size=3), anything) | anything)
def test_no_data_and_no_schema_raises(value: Any, schema: Any) -> None:
    """Whatever the user supplied, the check ends and its words can be encoded."""
    json.dumps(violations(value, schema) + problems_in(schema), ensure_ascii=False).encode()


def test_the_number_of_violations_is_limited() -> None:
    """A long list of wrong items does not become a long message."""
    assert len(violations(["x"] * 1000, {"items": {"type": "integer"}})) == 20
    assert len(violations(["x"] * 1000, {"items": {"type": "integer"}}, limit=3)) == 3
    assert violations("x", {"type": "integer"}, limit=0) == []


def test_deep_data_and_deep_schemas_are_refused_not_crashed_on() -> None:
    """Beyond the depth limit there is one sentence; the interpreter's stack is never the limit."""
    deep: Any = 1
    schema: Any = {}
    for _ in range(50_000):
        deep, schema = [deep], {"items": schema}
    assert violations(deep, {}) == [f"nested more than {MAX_DEPTH} levels deep"]
    assert violations(1, schema) == problems_in(schema) == [f"the schema is nested more than {MAX_DEPTH} levels deep"]


def test_the_deepest_data_a_recursive_schema_meets_ends_in_words() -> None:
    """A reference at every level through several forms neither crashes nor passes unchecked."""
    tree: Any = {}
    for _ in range(MAX_DEPTH // 2 - 1):
        tree = {"children": [tree]}
    schema = {
        "properties": {"children": {"type": "array", "items": {"allOf": [{"anyOf": [{"$ref": "#"}]}]}}},
        "additionalProperties": False,
    }
    assert violations(tree, schema)[0].endswith("nested too deeply to check")
    assert violations(tree["children"][0]["children"], {"items": {"type": "object"}}) == []


def test_references_in_a_circle_end() -> None:
    """A schema that refers to itself without going deeper into the data says nothing about it."""
    assert violations(1, {"$ref": "#"}) == []
    assert violations(1, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}) == []


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
@pytest.mark.parametrize("value", [1, "x"])
def test_forms_in_forms_do_not_multiply(keyword: str, value: Any) -> None:
    """Forty doublings would be 10**12 steps if each were walked."""
    defs: dict[str, Any] = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    defs["d40"] = {"type": "integer"}
    with Timed(time.process_time) as took:
        found = violations(value, {"$ref": "#/$defs/d0", "$defs": defs})
    assert took.within(2)
    assert all(len(text) < 1000 for text in found)
    assert bool(found) == (value == "x" or keyword == "oneOf")


def test_a_pattern_that_backtracks_takes_no_time() -> None:
    """Nested repetition, which hangs a backtracking engine for years, is linear here."""
    with Timed(time.process_time) as took:
        assert violations("a" * 50_000 + "!", {"pattern": "^(a+)+$"}) != []
    assert took.within(2)
