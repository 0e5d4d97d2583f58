"""Which schemas a provider can hold a model to, and how a stream's bytes become events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from chargehand.models.schema_modes import ANY_VALUE, fit, instruction
from chargehand.models.sse import Events
from chargehand.planner.draft import PLAN_SCHEMA, tasks_schema
from chargehand.text.json_repair import read_object
from chargehand.text.optional_nulls import without_nulls
from chargehand.workers.worker_answer import FINDINGS_SCHEMA


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT = {"type": "string"}


def _fit(schema: dict[str, Any], *, all_required: bool = True) -> Any:
    packed = fit(to_json(schema), all_required=all_required)
    return None if packed is None else from_json(packed)


OPEN_TEXT = {"type": "string", "description": ANY_VALUE}
ITEM = {"type": "array", "items": TEXT}


@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        (_object(), _object()),
        (_object(a=TEXT, b=ITEM), _object(a=TEXT, b=ITEM)),
        (_object(a={}), _object(a=OPEN_TEXT)),
        (_object(a={"type": "array"}), _object(a={"type": "array", "items": OPEN_TEXT})),
        (_object(a=True), _object(a=OPEN_TEXT)),
        (
            _object(a={"type": "integer", "minimum": 0, "description": "Sure."}),
            _object(a={"type": "integer", "description": "Sure. minimum: 0"}),
        ),
        (
            _object(a={**ITEM, "uniqueItems": True, "minItems": 1}),
            _object(a={**ITEM, "description": "minItems: 1 uniqueItems: True"}),
        ),
        (_object(a={"enum": ["x", "y"]}), _object(a={"type": "string", "enum": ["x", "y"]})),
        (_object(a={"const": 1}), _object(a={"enum": [1]})),
        (_object(a={"type": ["string", "null"]}), _object(a={"type": ["string", "null"]})),
        (
            _object(a={"type": ["array", "null"], "items": TEXT}),
            _object(a={"anyOf": [ITEM, {"type": "null"}]}),
        ),
        (_object(a={"oneOf": [TEXT, {"type": "null"}]}), _object(a={"anyOf": [TEXT, {"type": "null"}]})),
        ({"type": "object", "properties": {"a": TEXT}}, _object(a={"type": ["string", "null"]})),
        (
            {"type": "object", "properties": {"a": {"enum": ["x"]}}},
            _object(a={"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}),
        ),
        (
            {**_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": _object(b={})}},
            {**_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": _object(b=OPEN_TEXT)}},
        ),
    ],
)
def test_a_schema_is_rewritten_to_what_strict_modes_take(schema: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Closed objects, all required, no limits, no open values; what is left out is said."""
    assert _fit(schema) == fitted


@pytest.mark.parametrize(
    "schema",
    [
        {**_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": _object(b={"$ref": "#/$defs/A"})}},
        _object(a={"$ref": "#/$defs/Absent"}),
        _object(a={"$ref": "http://elsewhere"}),
        _object(a={"type": "object"}),
        _object(a={"type": "object", "additionalProperties": TEXT}),
        _object(a={"allOf": [TEXT]}),
        _object(a=False),
        {"type": "object"},
        {"type": "array", "items": TEXT},
    ],
)
def test_what_a_strict_mode_cannot_say_is_left_to_words(schema: dict[str, Any]) -> None:
    """Recursion, references elsewhere, objects with any keys, conditions, and answers that are not objects."""
    assert _fit(schema) is None


def test_where_properties_may_be_left_out_they_stay_optional() -> None:
    """Up to as many as the provider counts, and so for values of several types."""
    schema = {"type": "object", "properties": {"a": TEXT, "b": {"type": ["string", "null"]}}, "required": ["a"]}
    assert _fit(schema, all_required=False) == {**_object(a=TEXT, b={"type": ["string", "null"]}), "required": ["a"]}
    packed = to_json(schema)
    assert fit(packed, all_required=False, most_optional=0) is None
    assert fit(packed, all_required=False, most_unions=0) is None


OURS = {
    "findings": FINDINGS_SCHEMA,
    "typed": _object(total={"type": "integer", "minimum": 0}),
    "plan": PLAN_SCHEMA,
    "split": tasks_schema(["a", "b"]),
    "extension": tasks_schema(["a", "b"], replaces=ITEM),
}


@pytest.mark.parametrize("name", OURS)
def test_our_own_schemas_fit_every_mode(name: str) -> None:
    """A worker's findings, a plan and tasks for one are held to their shape by OpenAI, Anthropic and grammars alike."""
    for limits in ({"all_required": True}, {"all_required": False, "most_unions": 16, "most_optional": 24}):
        fitted = fit(to_json(OURS[name]), **limits)
        assert fitted is not None
        assert not [word for word in (b'"minimum"', b'"uniqueItems"', b":{}") if word in fitted]


def test_a_null_for_what_may_be_left_out_counts_as_left_out() -> None:
    """Only where the schema itself does not allow it; what is required stays, and is wrong."""
    inner = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": ["string", "null"]}}}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": TEXT, "b": {"type": "array", "items": {"$ref": "#/$defs/I"}}, "c": TEXT},
        "required": ["c"],
        "$defs": {"I": inner},
    }
    data = {"a": None, "b": [{"x": None, "y": None}, {"x": 1}], "c": None, "d": None}
    assert without_nulls(data, schema) == {"b": [{"y": None}, {"x": 1}], "c": None, "d": None}
    assert read_object('{"a": null, "c": "x"}', schema) == ({"c": "x"}, [])
    assert read_object('{"a": null, "c": null}', schema)[0] is None


def test_the_instruction_holds_the_schema() -> None:
    """A model without a schema mode is shown the schema itself."""
    assert '{"type":"string"}' in instruction(to_json(TEXT))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), max_size=8), st.data())
def test_events_do_not_depend_on_where_the_stream_was_cut(data: list[str], draw: st.DataObject) -> None:
    """Whatever the chunks, the same events come out."""
    end = draw.draw(st.sampled_from(["\n", "\r\n"]))
    stream = "".join(f": note{end}event: x{end}data: {d}{end}{end}" for d in data).encode()
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    events = Events()
    heard: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        heard += events.feed(stream[start:stop])
    assert heard == [d.encode() for d in data]


def test_data_on_several_lines_is_one_event() -> None:
    """Data lines of one event are joined; an event without data is none."""
    assert Events().feed(b"data: a\ndata:b\n\nevent: ping\n\n") == [b"a\nb"]
