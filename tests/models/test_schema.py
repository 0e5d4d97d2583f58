"""Which schemas a provider can hold a model to, and how a stream's bytes become events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from chargehand.models.schema_modes import instruction, qualifies
from chargehand.models.sse import Events


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        (_object(), True),
        (_object(a=TEXT, b={"type": "array", "items": _object(c={"type": "integer"})}), True),
        (_object(a={"anyOf": [TEXT, {"type": "null"}]}), True),
        (_object(a={"enum": ["x", "y"]}, b={"const": 1}), True),
        ({**_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": _object(b=TEXT)}}, True),
        ({**_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": _object(b={"$ref": "#/$defs/A"})}}, False),
        (_object(a={"$ref": "#/$defs/Absent"}), False),
        (_object(a={"$ref": "http://elsewhere"}), False),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, False),
        ({**_object(a=TEXT), "required": []}, False),
        (_object(a={}), False),
        (_object(a={"type": "array"}), False),
        (_object(a={"type": "integer", "minimum": 0}), False),
        (_object(a={"type": ["string", "null"]}), False),
        (_object(a=True), False),
        ({"type": "array", "items": TEXT}, False),
    ],
)
def test_only_closed_schemas_qualify(schema: dict[str, Any], fits: bool) -> None:
    """Closed objects with all properties required qualify; open values, self-reference and limits do not."""
    assert qualifies(to_json(schema)) is fits


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
