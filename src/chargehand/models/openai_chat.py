"""The chat completions wire format: a neutral call to its request, its response or stream to a neutral reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, cast

from pydantic_core import from_json, to_json

from chargehand.models import schema_modes as schema
from chargehand.models.call_options import sendable, take_effort
from chargehand.models.openai_names import is_reasoning
from chargehand.models.profiles import Profile
from chargehand.models.provider_fields import add_pieces, own_fields, unknown_fields
from chargehand.models.received_json import BOM, in_unicode
from chargehand.models.reported_usage import count, fields_of, read_numbers
from chargehand.models.tool_requests import read_request
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message, Reply, TokenCount, ToolRequest

# These models accept function tools in this format only with reasoning switched off.
_TOOLS_WITHOUT_REASONING = ("gpt-5.6", "gpt-6")
# Fields of a message that are read here, or that no provider wants back.
_OF_A_MESSAGE = frozenset({"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"})
# Fields in the delta of an event that only adds text.
_TEXT_ONLY = frozenset({"role", "content"})
_SAMPLING = frozenset({"temperature", "top_p"})

Stop = Literal["end", "tools", "length", "refused"]
_STOPS: dict[str, Stop] = {
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}


class OpenAIChat:
    """Chat completions, as used by OpenAI and by many other servers.

    OpenAI itself (by host, or by a model name only it has) gets its newer fields; any other server gets the fields that
    all of them accept. Unknown fields of a message or a tool call go back with it: some providers put signatures of
    their models' reasoning there.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def request(self, call: ModelCall, max_output: int) -> bytes:
        # Thousands of calls of a run differ only in their messages; the rest is looked up by its bytes.
        name = call.model.partition(":")[2]
        shape = (call.packed_tools, call.tool_choice, call.packed_schema, call.packed_options)
        limit, rest, advice = _rest(name, self._profile, *shape)
        messages = [message.as_written(_message) for message in call.messages]
        if advice:
            messages.insert(_lead(call.messages), advice)
        return b'{"messages":[%b],"%b":%d,%b' % (b",".join(messages), limit, max_output, rest)

    def error(self, body: dict[str, Any]) -> object:
        return body.get("error")

    def reply(self, body: dict[str, Any]) -> Reply:
        choice = body["choices"][0]
        message = choice["message"]
        calls = [
            (c.get("id"), c["function"]["name"], c["function"].get("arguments"), unknown_fields(c))
            for c in message.get("tool_calls") or ()
        ]
        return _reply(
            text=_text(message.get("content")),
            refusal=message.get("refusal"),
            calls=calls,
            finish=choice.get("finish_reason"),
            usage=body.get("usage"),
            model=body.get("model") or "",
            extra=own_fields(message, _OF_A_MESSAGE),
            first_words=_first_words(choice.get("logprobs")),
        )

    def listen(self) -> ChatListener:
        return ChatListener()


class ChatListener:
    """Collects the chunks of one streamed completion."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._refusal: list[str] = []
        # By the index the server gives.
        self._calls: dict[int, _CallPieces] = {}
        self._extra: dict[str, Any] = {}
        self._first_words: dict[str, float] = {}
        self._finish: str | None = None
        self._usage: object = None
        self._model = ""

    def hear(self, event: dict[str, Any]) -> str:
        self._model = event.get("model") or self._model
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        if not choices:
            return ""
        choice = choices[0]
        self._finish = choice.get("finish_reason") or self._finish
        if (logprobs := choice.get("logprobs")) is not None:
            self._first_words = self._first_words or _first_words(logprobs)
        delta: dict[str, Any] = choice.get("delta") or {}
        for position, piece in enumerate(delta.get("tool_calls") or ()):
            self._hear_call(position, piece)
        if refusal := delta.get("refusal"):
            self._refusal.append(refusal)
        if extra := own_fields(delta, _OF_A_MESSAGE):
            add_pieces(self._extra, extra)
        text = delta.get("content") or ""
        if text:
            self._text.append(text)
        return text

    def text_adder(self, event: dict[str, Any]) -> Callable[[str], object] | None:
        choice = event["choices"][0]
        plain = choice["delta"].keys() <= _TEXT_ONLY and not choice.get("finish_reason") and not event.get("usage")
        return self._text.append if plain else None

    def reply(self) -> Reply | None:
        if self._finish is None:
            return None
        return _reply(
            text=in_unicode("".join(self._text)),
            refusal=in_unicode("".join(self._refusal)),
            calls=[in_unicode((c.id, c.name, "".join(c.arguments), c.extra)) for _, c in sorted(self._calls.items())],
            finish=self._finish,
            usage=self._usage,
            model=in_unicode(self._model),
            extra=in_unicode(self._extra),
            first_words=in_unicode(self._first_words),
        )

    def _hear_call(self, position: int, piece: Mapping[str, Any]) -> None:
        given = piece.get("index")
        index = position if given is None else given
        if (call := self._calls.get(index)) is None:
            call = self._calls[index] = _CallPieces()
        function: dict[str, Any] = piece.get("function") or {}
        # Id and name come once; some servers repeat them in every piece.
        call.id = call.id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        if function.get("arguments"):
            call.arguments.append(function["arguments"])
        if extra := unknown_fields(piece):
            add_pieces(call.extra, extra)


@dataclass(slots=True)
class _CallPieces:
    """The part of one streamed tool call that has arrived."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@lru_cache(maxsize=64)
def _rest(
    name: str, profile: Profile, tools: bytes, tool_choice: str, output_schema: bytes, options: bytes
) -> tuple[bytes, bytes, bytes]:
    """All of a request except its messages: the name of its limit, its other fields to the end, and advice to add.

    `tools` are packed as in a call, one on each line.
    """
    own = profile.name == "openai" or is_reasoning(name)
    effort, given = take_effort(from_json(options))
    body: dict[str, Any] = {"model": name}
    if not is_reasoning(name) and profile.samples(name):
        body["temperature"] = 0
    if effort is not None:
        body.update(profile.effort(name, effort))
    if tools:
        body["tools"] = [{"type": "function", "function": from_json(tool)} for tool in tools.split(b"\n")]
        if tool_choice == "none":
            body["tool_choice"] = "none"
        if own and name.startswith(_TOOLS_WITHOUT_REASONING):
            body["reasoning_effort"] = "none"
    advice = b""
    if output_schema != b"null":
        form = _form(output_schema, profile)
        if form and (not tools or tool_choice == "none" or profile.takes_schema_with_tools(name)):
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", **form}}
        else:
            # A grammar for the whole answer would forbid tool calls: if calls are allowed, the schema is given in
            # words.
            advice = to_json({"role": "system", "content": schema.instruction(output_schema)})
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    body.update(sendable(given, _SAMPLING if is_reasoning(name) else frozenset()))
    return b"max_completion_tokens" if own else b"max_tokens", to_json(body)[1:], advice


def _form(output_schema: bytes, profile: Profile) -> dict[str, Any]:
    """The schema as the provider accepts it; nothing when it can only be given in words."""
    fitted = schema.fit(output_schema, all_required=profile.all_required)
    if fitted is not None:
        return {"schema": from_json(fitted), "strict": True}
    # A schema that is not strict is advice. A server that turns it into a grammar may refuse it.
    return {} if profile.grammar else {"schema": from_json(output_schema), "strict": False}


def _message(message: Message) -> bytes:
    return to_json(_as_dict(message))


def _as_dict(message: Message) -> dict[str, Any]:
    match message.role:
        case "tool":
            # This wire has no mark for a failed tool; the text says it.
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        case "assistant" if message.tool_calls:
            calls = [_call(request) for request in message.tool_calls]
            return {**_extra(message), "role": "assistant", "content": message.text or None, "tool_calls": calls}
        case _:
            return {**_extra(message), "role": message.role, "content": message.text}


def _extra(message: Message) -> dict[str, Any]:
    return message.opaque[0] if message.opaque else {}


def _call(request: ToolRequest) -> dict[str, Any]:
    arguments = request.raw or to_json(request.arguments or {}).decode()
    function = {**cast("dict[str, Any]", request.extra.get("function", {})), "name": request.name}
    return {**request.extra, "id": request.id, "type": "function", "function": {**function, "arguments": arguments}}


def _lead(messages: Sequence[Message]) -> int:
    """How many system messages the conversation opens with."""
    for number, message in enumerate(messages):
        if message.role != "system":
            return number
    return len(messages)


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """A message's text; some servers give it as parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _first_words(logprobs: object) -> dict[str, float]:
    """The possible first words of a reply, each with the logarithm of its probability; empty if not reported."""
    try:
        likely = cast("Any", logprobs)["content"][0]["top_logprobs"]
        return {str(each["token"]): float(each["logprob"]) for each in likely}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _reply(
    *,
    text: str,
    refusal: str | None,
    calls: list[tuple[Any, Any, Any, dict[str, Any]]],
    finish: str | None,
    usage: object,
    model: str,
    extra: dict[str, Any],
    first_words: dict[str, float],
) -> Reply:
    stop = "refused" if refusal else _STOPS.get(finish or "", "end")
    if calls and stop == "end":
        stop = "tools"
    counted, problem = _count(usage) if usage else (None, "")
    return Reply(
        text=text.removeprefix(BOM) or refusal or "",
        tool_calls=tuple(
            read_request(id, *call[1:]) for id, call in zip(_ids([call[0] for call in calls]), calls, strict=True)
        ),
        stop=stop,
        usage=counted,
        usage_problem=problem,
        model=model,
        opaque=(extra,) if extra else (),
        first_words=first_words,
    )


def _ids(given: list[str | None]) -> list[str]:
    """A unique id for each call: some servers omit ids, or give all calls of a reply the same id."""
    ids: list[str] = []
    for position, id in enumerate(given):
        name = id or f"call_{position}"
        ids.append(f"{name}_{position}" if name in ids else name)
    return ids


def _count(usage: object) -> tuple[TokenCount | None, str]:
    said = fields_of(usage)
    numbers, problem = read_numbers(said, "prompt_tokens", "completion_tokens")
    cached, wrong = read_numbers(fields_of(said.get("prompt_tokens_details")), "cached_tokens")
    reasoned, _ = read_numbers(fields_of(said.get("completion_tokens_details")), "reasoning_tokens")
    return (None, problem or wrong) if problem or wrong else (count(*numbers, *cached, *(reasoned or [0])), "")
