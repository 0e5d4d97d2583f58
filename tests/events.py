"""Events made without running anything: what a test does not name of an event is empty."""

from __future__ import annotations

from typing import Any

from chargehand.events import Event, EventBody, read_body
from chargehand.events.body import BODIES, fields_of

_EMPTY: dict[str, Any] = {
    "str": "",
    "int": 0,
    "float": 0.0,
    "bool": False,
    "Data": {},
    "list[str]": [],
    "list[Data]": [],
}


def make_body(kind: str, **fields: Any) -> EventBody:
    """A body that can be read: fields that must be there and are not given are empty."""
    needed = {name: field.type for name, field in fields_of(BODIES[kind]).items() if field.required}
    empty = {name: _EMPTY.get(said) for name, said in needed.items() if name not in fields}
    return read_body(kind, fields | empty)


def make_event(
    kind: str,
    task: str | None = None,
    attempt: int | None = None,
    *,
    run: str = "r",
    seq: int = 1,
    at: float = 0.0,
    **fields: Any,
) -> Event:
    return Event(run, seq, at, task, attempt, make_body(kind, **fields))
