"""Recorded messages and replies -> messages in the form of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

Data: TypeAlias = dict[str, Any]

_REASONS = {"end": "stop", "tools": "tool_call", "length": "length", "refused": "content_filter"}


def input_messages(hashes: Iterable[str], found: dict[str, bytes]) -> list[Data]:
    """The messages sent to a model. A message that is missing in the record is left out."""
    read = (_read(found[each]) for each in hashes if each in found)
    return [{"role": str(message.get("role", "user")), "parts": _parts(message)} for message in read]


def output_messages(reply: Data) -> list[Data] | None:
    """The reply of a model; None if there was none."""
    if not reply:
        return None
    reason = _REASONS.get(str(reply.get("stop", "end")), "stop")
    return [{"role": "assistant", "parts": _parts(reply), "finish_reason": reason}]


def _parts(message: Data) -> list[Data]:
    text = message.get("text")
    if message.get("role") == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": text}]
    parts: list[Data] = [{"type": "text", "content": text}] if text else []
    calls = cast(list[Data], message.get("tool_calls") or [])
    names = ("id", "name", "arguments")
    return parts + [{"type": "tool_call", **{name: call.get(name) for name in names}} for call in calls]


def _read(packed: bytes) -> Data:
    try:
        message = json.loads(packed)
    except ValueError:
        message = None
    return cast(Data, message) if isinstance(message, dict) else {"text": packed.decode("utf-8", "replace")}
