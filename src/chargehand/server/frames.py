"""Events and drafts -> server-sent events."""

from __future__ import annotations

from typing import Any

from chargehand.events import Event
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor


def event_frame(event: Event, redactor: Redactor) -> bytes:
    """One event, without secrets; its id is its number."""
    return f"id: {event.seq}\ndata: {dump_json(redactor.json(event.to_json()))}\n\n".encode()


def draft_frame(draft: dict[str, Any]) -> bytes:
    """A part of a text that is being written. It has no id: a client that reconnects gets the whole text again."""
    return f"event: draft\ndata: {dump_json(draft)}\n\n".encode()
