"""What a provider sent as a tool call -> a ToolRequest; arguments that are not an object are kept as written."""

from __future__ import annotations

from typing import Any, cast

from chargehand.models.received_json import read_json
from chargehand.values.base import JSON
from chargehand.values.message import Reply, ToolRequest


def read_request(
    id: str, name: str, arguments: str | dict[str, Any] | None, extra: dict[str, JSON] | None = None
) -> ToolRequest:
    """The request; `extra` are the provider's own fields, which go back with it."""
    if isinstance(arguments, dict):
        return ToolRequest(id=id, name=name, arguments=arguments, extra=extra or {})
    raw = arguments or ""
    try:
        found: Any = read_json(raw) if raw.strip() else {}
    except ValueError:
        found = None
    if isinstance(found, dict):
        return ToolRequest(id=id, name=name, arguments=cast("dict[str, Any]", found), extra=extra or {})
    return ToolRequest(id=id, name=name, arguments=None, raw=raw, extra=extra or {})


def with_distinct_ids(reply: Reply) -> Reply:
    """The reply with repeated ids made unique by the place of the call: a result names its call by the id."""
    ids = [call.id for call in reply.tool_calls]
    if len(set(ids)) == len(ids):
        return reply
    calls = (
        call.model_copy(update={"id": f"{call.id}_{place}"}) if call.id in ids[:place] else call
        for place, call in enumerate(reply.tool_calls)
    )
    return reply.model_copy(update={"tool_calls": tuple(calls)})
