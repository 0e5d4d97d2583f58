"""The Responses wire format: a neutral call to its request, its response or stream to a neutral reply.

It is used without state: nothing is stored at the provider. The model's reasoning comes encrypted with the reply, is
kept on the record, and goes back with its turn, so that the model continues its reasoning across tool calls.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json, to_json

from chargehand.models import schema_modes as schema
from chargehand.models.call_options import sendable, take_effort
from chargehand.models.openai_names import is_reasoning, lowest_effort
from chargehand.models.received_json import BOM, in_unicode
from chargehand.models.reported_usage import count, fields_of, read_numbers
from chargehand.models.tool_requests import read_request
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message, Reply, TokenCount

# Options that chat completions accept and this format does not.
_NOT_HERE = frozenset(
    {"frequency_penalty", "min_p", "presence_penalty", "repetition_penalty", "seed", "stop", "stop_sequences",
     "thinking", "top_k"}
)  # fmt: skip
_SAMPLING = frozenset({"temperature", "top_p"})
# A turn that has only items of these kinds and fields contains nothing beyond its text and its tool calls.
_PLAIN = {
    "message": frozenset({"type", "id", "role", "status", "content"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status"}),
}


class OpenAIResponses:
    """OpenAI's Responses format: tools, reasoning and a JSON schema in one call."""

    def request(self, call: ModelCall, max_output: int) -> bytes:
        name = call.model.partition(":")[2]
        shape = (call.packed_tools, call.tool_choice, call.packed_schema, call.packed_options)
        rest = _rest(name, *shape)
        items = [written for message in call.messages if (written := message.as_written(_items))]
        return b'{"input":[%b],"max_output_tokens":%d,%b' % (b",".join(items), max_output, rest)

    def error(self, body: dict[str, Any]) -> object:
        """The error an answer or an event holds; None when it holds none."""
        if body.get("type") == "error":
            return body.get("error") or body
        return body.get("error") or _field(body, "response", "error")

    def reply(self, body: dict[str, Any]) -> Reply:
        return _reply(body, body["output"])

    def listen(self) -> ResponsesListener:
        return ResponsesListener()


class ResponsesListener:
    """Collects the events of one streamed response."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] | None = None

    def hear(self, event: dict[str, Any]) -> str:
        match event.get("type"):
            case "response.output_text.delta":
                return event["delta"]
            case "response.output_item.done":
                # Only this event has the complete item, including its encrypted reasoning.
                self._items[event["output_index"]] = event["item"]
            case "response.completed" | "response.incomplete":
                self._response = event["response"]
            case _:
                pass
        return ""

    def text_adder(self, event: dict[str, Any]) -> None:
        """None: each event has its own number, so no two events are alike."""

    def reply(self) -> Reply | None:
        if self._response is None:
            return None
        items = [item for _, item in sorted(self._items.items())] or self._response.get("output") or []
        return _reply(in_unicode(self._response), in_unicode(items))


@lru_cache(maxsize=64)
def _rest(name: str, tools: bytes, tool_choice: str, output_schema: bytes, options: bytes) -> bytes:
    """All of a request except its messages and its limit; `tools` are packed as in a call, one on each line."""
    reasons = is_reasoning(name)
    effort, others = take_effort(from_json(options))
    given = sendable(others, _NOT_HERE | (_SAMPLING if reasons else frozenset[str]()))
    body: dict[str, Any] = {"model": name}
    if not reasons:
        given.setdefault("temperature", 0)
    if tools:
        body["tools"] = [{"type": "function", **from_json(tool), "strict": False} for tool in tools.split(b"\n")]
        if tool_choice == "none":
            body["tool_choice"] = "none"
    text = dict(cast("dict[str, Any]", given.pop("text", None) or {}))
    if "verbosity" in given:
        text["verbosity"] = given.pop("verbosity")
    if (wanted := from_json(output_schema)) is not None:
        fitted = schema.fit(output_schema, all_required=True)
        strict = (
            {"schema": wanted, "strict": False} if fitted is None else {"schema": from_json(fitted), "strict": True}
        )
        text["format"] = {"type": "json_schema", "name": "answer", **strict}
    reasoning = dict(cast("dict[str, Any]", given.pop("reasoning", None) or {}))
    if effort is not None:
        reasoning.setdefault("effort", lowest_effort(name) if effort == "none" else effort)
    if (exact := given.pop("reasoning_effort", None)) is not None:
        reasoning["effort"] = exact
    if reasons:
        body["include"] = ["reasoning.encrypted_content"]
        if reasoning:
            body["reasoning"] = reasoning
    if text:
        body["text"] = text
    return to_json({**given, **body, "store": False, "stream": True})[1:]


def _items(message: Message) -> bytes:
    return b",".join([to_json(item) for item in _as_items(message)])


def _as_items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        # This format has no mark for a failed tool; the text says it.
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}]
    if message.opaque:
        return list(message.opaque)
    items: list[dict[str, Any]] = []
    if message.text or not message.tool_calls:
        items.append({"role": message.role, "content": message.text})
    for call in message.tool_calls:
        arguments = call.raw or to_json(call.arguments or {}).decode()
        items.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
    return items


def _reply(body: dict[str, Any], items: list[dict[str, Any]]) -> Reply:
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    refusal = "".join(part["refusal"] for part in parts if part["type"] == "refusal")
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    calls = tuple(
        read_request(item["call_id"], item["name"], item.get("arguments"))
        for item in items
        if item["type"] == "function_call"
    )
    usage = body.get("usage")
    counted, problem = _count(usage) if usage else (None, "")
    return Reply(
        text=text.removeprefix(BOM) or refusal,
        tool_calls=calls,
        stop="refused" if refusal else _stop(body, called=bool(calls)),
        usage=counted,
        usage_problem=problem,
        model=body.get("model") or "",
        opaque=() if all(map(_is_plain, items)) else tuple(items),
    )


def _stop(body: dict[str, Any], *, called: bool) -> Any:
    if body.get("status") == "incomplete":
        return "refused" if _field(body, "incomplete_details", "reason") == "content_filter" else "length"
    return "tools" if called else "end"


def _field(body: dict[str, Any], outer: str, inner: str) -> object:
    found = body.get(outer)
    return cast("dict[str, Any]", found).get(inner) if isinstance(found, dict) else None


def _is_plain(item: dict[str, Any]) -> bool:
    return {name for name, value in item.items() if value is not None} <= _PLAIN.get(item["type"], frozenset())


def _count(usage: object) -> tuple[TokenCount | None, str]:
    said = fields_of(usage)
    numbers, problem = read_numbers(said, "input_tokens", "output_tokens")
    cached, wrong = read_numbers(fields_of(said.get("input_tokens_details")), "cached_tokens")
    reasoned, _ = read_numbers(fields_of(said.get("output_tokens_details")), "reasoning_tokens")
    return (None, problem or wrong) if problem or wrong else (count(*numbers, *cached, *(reasoned or [0])), "")
