"""The messages wire format: a neutral call to its request, its response or stream to a neutral reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, cast

from pydantic_core import from_json, to_json

from chargehand.models import schema_modes as schema
from chargehand.models.call_options import Effort, sendable, take_effort
from chargehand.models.received_json import BOM, in_unicode, read_json
from chargehand.models.reported_usage import count, fields_of, read_numbers
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message, Reply, TokenCount, ToolRequest

_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
# The most values of several types, and the most optional properties, in one schema; the API refuses more.
_MOST_UNIONS = 16
_MOST_OPTIONAL = 24
# How many tokens models before 4.6 may think, and the smallest number that can be set.
_THINKING_TOKENS = {"none": 0, "low": 1_024, "medium": 4_096, "high": 16_384}
_LEAST_THINKING = 1_024
# In characters: a provider caches no prefix of less than 1,024 tokens, and writing to the cache costs a quarter more.
_LEAST_SHARED = 4_096
_EPHEMERAL = {"type": "ephemeral"}

_STOPS: dict[str, Literal["tools", "length", "refused"]] = {
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class Anthropic:
    """The messages format. Models known to have a JSON-schema mode get the schema there; others get it in words.

    The prefix all calls of a worker share (tools and system prompt) is marked for the provider's prompt cache. With
    tools another turn is likely, so the newest turn is marked too: the next turn then reads everything before it from
    the cache. Material that tasks share comes before the parts that differ, and its end is marked.
    """

    def request(self, call: ModelCall, max_output: int) -> bytes:
        name = call.model.partition(":")[2]
        version = _version(name)
        system: list[dict[str, Any]] = [{"type": "text", "text": m.text} for m in call.messages if m.role == "system"]
        body: dict[str, Any] = {"model": name, "max_tokens": max_output, "messages": _turns(call.messages)}
        output: dict[str, Any] = {}
        if call.output_schema is not None:
            fitted = schema.fit(
                call.packed_schema, all_required=False, most_unions=_MOST_UNIONS, most_optional=_MOST_OPTIONAL
            )
            if version >= (4, 5) and fitted is not None:
                output = {"format": {"type": "json_schema", "schema": from_json(fitted)}}
            else:
                system.append({"type": "text", "text": schema.instruction(call.packed_schema)})
        if call.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in call.tools
            ]
            if call.tool_choice == "none":
                body["tool_choice"] = {"type": "none"}
            _mark(body["messages"])
        if system:
            system[-1]["cache_control"] = _EPHEMERAL
            body["system"] = system
        elif call.tools:
            body["tools"][-1]["cache_control"] = _EPHEMERAL
        body["stream"] = True
        effort, given = take_effort(call.options)
        given = sendable(given, _SAMPLING if version >= (4, 7) else frozenset[str]())
        asked = {} if effort is None else _effort(version, effort, max_output)
        if (3, 0) <= version < (4, 7) and "thinking" not in {**asked, **given}:
            given.setdefault("temperature", 0)
        body.update({**asked, **given})
        output = {**cast("dict[str, Any]", asked.get("output_config", {})), **output}
        if output:
            body["output_config"] = {**body.get("output_config", {}), **output}
        return to_json(body)

    def error(self, body: dict[str, Any]) -> object:
        return body.get("error")

    def reply(self, body: dict[str, Any]) -> Reply:
        return _reply(body["content"], body.get("stop_reason"), body.get("usage"), body.get("model") or "")

    def listen(self) -> AnthropicListener:
        return AnthropicListener()


class AnthropicListener:
    """Collects the events of one streamed message."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        # The additions to each block's fields, as pieces that are joined once at the end.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._stop: str | None = None
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._ended = False

    def hear(self, event: dict[str, Any]) -> str:
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model") or ""
                self._usage.update(fields_of(event["message"].get("usage")))
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
                return event["content_block"].get("text") or ""
            case "content_block_delta":
                return self._hear_delta(event["index"], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._usage.update({k: v for k, v in fields_of(event.get("usage")).items() if v is not None})
            case "message_stop":
                self._ended = True
            case _:  # pings, block ends, and what later versions add
                pass
        return ""

    def text_adder(self, event: dict[str, Any]) -> Callable[[str], object] | None:
        if event["type"] != "content_block_delta":
            return None
        return self._pieces[event["index"], "text"].append

    def reply(self) -> Reply | None:
        if not self._ended:
            return None
        for (index, name), pieces in self._pieces.items():
            written = "".join(pieces)
            block = self._blocks[index]
            block[name] = _input(written) if name == "input" else block.get(name, "") + written
        blocks = [in_unicode(block) for _, block in sorted(self._blocks.items())]
        return _reply(blocks, self._stop, self._usage, in_unicode(self._model))

    def _hear_delta(self, index: int, delta: dict[str, Any]) -> str:
        match delta.get("type"):
            case "text_delta":
                self._add(index, "text", delta["text"])
                return delta["text"]
            case "input_json_delta":
                self._add(index, "input", delta["partial_json"])
            case "thinking_delta":
                self._add(index, "thinking", delta["thinking"])
            case "signature_delta":
                self._add(index, "signature", delta["signature"])
            case _:
                pass
        return ""

    def _add(self, index: int, name: str, piece: str) -> None:
        self._pieces.setdefault((index, name), []).append(piece)


@lru_cache(maxsize=128)
def _version(name: str) -> tuple[int, int]:
    """A Claude model's version, (0, 0) for a name that shows none."""
    found = _VERSION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _effort(version: tuple[int, int], effort: Effort, max_output: int) -> dict[str, Any]:
    """The fields that ask for that much thinking; none for a model that does not think, or without room for it."""
    if effort == "none":
        return {"thinking": {"type": "disabled"}} if version >= (4, 7) else {}
    if version >= (4, 6):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    # Thinking counts as output, so at least half of the output is left for the answer.
    budget = min(_THINKING_TOKENS[effort], max_output // 2)
    if version < (3, 7) or budget < _LEAST_THINKING:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for message in messages:
        match message.role:
            case "system":
                continue
            case "assistant":
                if content := _assistant(message):
                    turns.append({"role": "assistant", "content": content})
            case "user":
                for block in _blocks(message):
                    _say(turns, block)
            case "tool":
                block: dict[str, Any] = {
                    "type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text,
                }  # fmt: skip
                if message.tool_failed:
                    block["is_error"] = True
                _say(turns, block)
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    """The text of a user's message; the part that other calls share is marked for the cache if it is long enough."""
    text, end = message.text, message.shared
    if not _LEAST_SHARED <= end < len(text):
        return [{"type": "text", "text": text}]
    return [{"type": "text", "text": text[:end], "cache_control": _EPHEMERAL}, {"type": "text", "text": text[end:]}]


def _say(turns: list[dict[str, Any]], block: dict[str, Any]) -> None:
    """Add a block to the user's turn: all results of one round of tool calls must be in one turn."""
    if turns and turns[-1]["role"] == "user":
        turns[-1]["content"].append(block)
    else:
        turns.append({"role": "user", "content": [block]})


def _assistant(message: Message) -> list[dict[str, Any]]:
    opaque = list(message.opaque)
    if any(block.get("type") in ("text", "tool_use") for block in opaque):
        return opaque
    if message.text:
        opaque.append({"type": "text", "text": message.text})
    # A call with invalid arguments goes back without arguments: the wire format takes only objects.
    opaque.extend(
        {"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments or {}} for c in message.tool_calls
    )
    return opaque


def _mark(turns: list[dict[str, Any]]) -> None:
    if turns and turns[-1]["role"] == "user":
        turns[-1]["content"][-1]["cache_control"] = _EPHEMERAL


def _reply(content: list[dict[str, Any]], stop: str | None, usage: object, model: str) -> Reply:
    counted, problem = _count(usage) if usage else (None, "")
    return Reply(
        text="".join(b["text"] for b in content if b["type"] == "text").removeprefix(BOM),
        tool_calls=tuple(_call(b) for b in content if b["type"] == "tool_use"),
        stop=_STOPS.get(stop or "", "end"),
        usage=counted,
        usage_problem=problem,
        model=model,
        opaque=_opaque(content),
    )


def _opaque(content: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The blocks that must go back unchanged: all, unless the turn is thinking, one text, calls, in that order."""
    kinds = [b["type"] for b in content]
    own = [k for k in kinds if k not in ("text", "tool_use")]
    if not own:
        return ()
    plain = [*own, *(["text"] * (kinds.count("text") and 1)), *(["tool_use"] * kinds.count("tool_use"))]
    return tuple(content[: len(own)] if kinds == plain else content)


def _call(block: dict[str, Any]) -> ToolRequest:
    arguments = block.get("input")
    if isinstance(arguments, dict):
        return ToolRequest(id=block["id"], name=block["name"], arguments=cast("dict[str, Any]", arguments))
    return ToolRequest(id=block["id"], name=block["name"], arguments=None, raw=_arguments_text(arguments))


def _arguments_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else to_json(arguments).decode()


def _input(written: str) -> Any:
    """A streamed call's input: the object, or the unchanged text when it is not an object."""
    if not written.strip():
        return {}
    try:
        return read_json(written)
    except ValueError:
        return written


def _count(usage: object) -> tuple[TokenCount | None, str]:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    numbers, problem = read_numbers(fields_of(usage), *names)
    if problem:
        return None, problem
    fresh, written, cached, output = numbers
    return count(fresh + written + cached, output, cached), ""
