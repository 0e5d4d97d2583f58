"""Fields of a message or a tool call that chat completions do not define: found, and put together from a stream.

Providers use such fields for data that they need back in the next turn: signatures of a model's reasoning, or the
reasoning itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_OF_A_CALL = frozenset({"id", "type", "index", "function"})
_OF_A_FUNCTION = frozenset({"name", "arguments"})
# Texts inside a field that arrive in pieces; other texts arrive whole, and the last one counts.
_IN_PIECES = frozenset({"text", "summary", "content", "thinking", "reasoning", "data"})


def own_fields(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The unknown fields that are not empty."""
    if data.keys() <= known:
        return {}
    return {name: value for name, value in data.items() if name not in known and value not in (None, "", [], {})}


def unknown_fields(call: Mapping[str, Any]) -> dict[str, Any]:
    """The unknown fields of a tool call, with those of its function under `function`."""
    extra = own_fields(call, _OF_A_CALL)
    if function := own_fields(call.get("function") or {}, _OF_A_FUNCTION):
        extra["function"] = function
    return extra


def add_pieces(whole: dict[str, Any], piece: Mapping[str, Any], *, outermost: bool = True) -> None:
    """Add a piece of a stream: texts are joined, objects merged, parts of a list found by their `index`."""
    for name, value in piece.items():
        before = whole.get(name)
        if isinstance(before, str) and isinstance(value, str) and (outermost or name in _IN_PIECES):
            whole[name] = before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            add_pieces(cast("dict[str, Any]", before), cast("dict[str, Any]", value), outermost=False)
        elif isinstance(before, list) and isinstance(value, list):
            for part in cast("list[Any]", value):
                _add_part(cast("list[Any]", before), part)
        else:
            whole[name] = value


def _add_part(parts: list[Any], part: Any) -> None:
    index = cast("dict[str, Any]", part).get("index") if isinstance(part, dict) else None
    if index is not None:
        for known in parts:
            if isinstance(known, dict) and cast("dict[str, Any]", known).get("index") == index:
                add_pieces(cast("dict[str, Any]", known), cast("dict[str, Any]", part), outermost=False)
                return
    parts.append(part)
