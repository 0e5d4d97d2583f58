"""An event's data as JSON bytes and back. All text of a model can be packed, and all packed data can be read."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

# The serialiser stops at 255 levels. Deeper data is of no use and is cut here.
_DEEPEST = 240
_CUT = "[nested too deeply]"


def pack(data: dict[str, Any]) -> bytes:
    try:
        return to_json(data, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError, RecursionError):
        # Rare: lone surrogates in a model's text, or very deep data. Anything else fails again, as a bug should.
        return to_json(_repair_text(data, 0), inf_nan_mode="null")


def unpack(body: bytes) -> dict[str, Any]:
    try:
        return from_json(body)
    except ValueError:
        # The fast parser stops at 200 levels, before the serialiser does.
        return json.loads(body)


def _repair_text(value: Any, depth: int) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict() | list() | tuple() if depth > _DEEPEST:
            return _CUT
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {_repair_text(key, depth): _repair_text(inner, depth + 1) for key, inner in items}
        case list() | tuple():
            return [_repair_text(inner, depth + 1) for inner in cast("list[Any]", value)]
        case _:
            return value
