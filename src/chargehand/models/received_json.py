"""What a server sent -> JSON and text that can be recorded and sent again.

Strict readers refuse a byte order mark before JSON, and half of a surrogate pair in it (`\\ud83d` alone). Some servers
send both, and the two halves may arrive in two pieces of a stream. A half that is still alone at the end becomes
U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from pydantic_core import from_json

BOM = "\ufeff"


def read_json(data: bytes | str, *, piece: bool = False) -> Any:
    """The JSON; ValueError when it is not JSON. In a `piece` of a stream half a pair is kept: the rest may follow."""
    try:
        return from_json(data)
    except ValueError:
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
        try:
            found = json.loads(text.removeprefix(BOM))
            return found if piece else in_unicode(found)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def in_unicode(value: Any) -> Any:
    """The value with pairs joined and halves replaced, in all its texts."""
    match value:
        case str():
            return _whole(value)
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {in_unicode(key): in_unicode(inner) for key, inner in items}
        case list() | tuple():
            return [in_unicode(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def pair_pieces(on_text: Callable[[str], None]) -> Callable[[str], None]:
    """Passes on the pieces of a text without a byte order mark at its beginning; half a pair waits for the next piece.

    Empty pieces are passed on too.
    """
    held, begun = "", False

    def hear(piece: str) -> None:
        nonlocal held, begun
        text = held + (piece if begun else piece.removeprefix(BOM))
        begun, held = begun or bool(piece), ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, held = text[:-1], text[-1]
        on_text(_whole(text))

    return hear


def _whole(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
