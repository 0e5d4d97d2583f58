"""A model -> what it and its server can do, found by test calls: streaming, tools, JSON schema, both at once, window.

Each probe is one small call, sent as a run would send it, and states what the result means for a run.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_core import from_json

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.models.provider_errors import Endpoint
from chargehand.text.json_repair import read_object
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, ToolSpec, system, user

if TYPE_CHECKING:
    from chargehand.models.provider_settings import Provider
    from chargehand.models.resolve import Models

# A slow machine loads its model for the first call.
_LONGEST_S = 180.0
_MOST_OUTPUT = 1_024
# In bytes; some gateways list hundreds of models.
_LONGEST_LIST = 4_000_000
_NUMBER: dict[str, Any] = {"type": "number"}
_ADD = ToolSpec(
    name="add",
    description="Adds two numbers.",
    parameters={"type": "object", "properties": {"a": _NUMBER, "b": _NUMBER}, "required": ["a", "b"]},
)
_SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
_USE_TOOL = "Call the tool add with a=20 and b=22. Do not answer before you have its result."
# The names that servers use for a model's window in their lists of models.
_WINDOW_FIELDS = ("max_model_len", "context_length", "loaded_context_length", "max_context_length", "max_input_tokens")


class Ability(NamedTuple):
    """One ability that was tested. If `well` is False, a run still works, in the way that `says` describes."""

    name: str
    well: bool
    says: str


async def probe(models: Models, model: str) -> AsyncIterator[Ability]:
    """One ability after the other. Raises ModelError or UsageError when the model does not answer at all."""
    pieces: list[str] = []
    reply = await _ask(models, model, "Count from 1 to 20, with commas.", on_text=pieces.append)
    streamed = len(pieces) > 1
    yield Ability(
        "streaming",
        streamed,
        "replies arrive as they are written"
        if streamed
        else "replies come whole, so a long one is silent until it ends: if calls time out, raise first_event_s",
    )
    reply = await _ask(models, model, _USE_TOOL, tools=(_ADD,))
    yield _made_call(
        reply, "tools", "tool calls are made", "no tool call was made: give workers with tools another model"
    )
    reply = await _ask(models, model, "What is 20 + 22? Put it into the field sum.", output_schema=_SUM)
    kept = read_object(reply.text, _SUM)[0] is not None
    yield Ability(
        "schema",
        kept,
        "answers keep to a JSON schema"
        if kept
        else "an answer did not keep to its JSON schema: such answers are repaired, and asked for again once",
    )
    reply = await _ask(models, model, _USE_TOOL, tools=(_ADD,), output_schema=_SUM)
    yield _made_call(
        reply,
        "both",
        "tool calls are made while the answer has a schema",
        "no tool call was made while the answer had a schema: give workers with both another model",
    )
    yield await _window(models, model)


async def _ask(
    models: Models, model: str, text: str, on_text: Callable[[str], None] | None = None, **more: Any
) -> Reply:
    messages = (system("You are being tested. Do exactly what is asked."), user(text))
    call = ModelCall(role="worker", model=model, messages=messages, **more)
    who = Attribution("doctor", None, None, "worker", f"doctor-{secrets.token_hex(8)}")
    arrived = 0

    def hear(piece: str) -> None:
        nonlocal arrived
        arrived += len(piece)
        if on_text is not None:
            on_text(piece)

    try:
        async with asyncio.timeout(_LONGEST_S):
            return await models.client(model).complete(call, _MOST_OUTPUT, who, hear)
    except TimeoutError:
        raise ModelError("timeout", _too_slow(arrived)) from None


def _too_slow(arrived: int) -> str:
    """What a small call that did not end means for a run, whose calls are larger."""
    if arrived:
        return (
            f"wrote {arrived:,} characters in {_LONGEST_S:g} s and did not end. Runs wait for as long as it writes, "
            "but will be slow: use a smaller model, or a machine that has less to do"
        )
    return (
        f"wrote nothing within {_LONGEST_S:g} s. Runs wait longer (first_event_s of its provider): look whether its "
        "server is busy or still loading, or use a smaller model"
    )


def _made_call(reply: Reply, name: str, well: str, otherwise: str) -> Ability:
    made = any(request.name == _ADD.name for request in reply.tool_calls)
    return Ability(name, made, well if made else otherwise)


async def _window(models: Models, model: str) -> Ability:
    prefix, _, name = model.partition(":")
    used, known = models.window(model), models.known_window(model) is not None
    provider = models.providers[prefix]
    found = None if prefix == "embedded" else await _listed_window(models, provider, name, models.key(model))
    setting = f"window in [providers.{prefix}]"
    if found is not None and found < used:
        return Ability(
            "window", False, f"holds {found:,} tokens, and {used:,} are counted on: set {setting} to {found}"
        )
    if found is not None and found > used and not known:
        return Ability("window", True, f"holds {found:,} tokens; only {used:,} are used until {setting} says so")
    if found is None and not known:
        return Ability(
            "window", False, f"the server does not say what it holds; {used:,} tokens are assumed: set {setting}"
        )
    return Ability("window", True, f"holds {found or used:,} tokens")


async def _listed_window(models: Models, provider: Provider, name: str, key: str | None) -> int | None:
    """The model's window according to the server's list of models; None when the list does not give it."""
    base = provider.base_url.rstrip("/")
    if provider.wire == "anthropic":
        base = f"{base.removesuffix('/v1')}/v1"
    headers = {"Authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"} if key else {}
    endpoint = Endpoint(provider.name, f"{base}/models", headers, key, provider.key_env)
    try:
        _, body = await models.transport.get(endpoint, _LONGEST_LIST)
        listed: Any = from_json(body)
        entries = cast("list[dict[str, Any]]", listed.get("data", ()))
        entry = next((each for each in entries if each.get("id") in (name, f"models/{name}")), None)
        if entry is None:
            entry = entries[0] if len(entries) == 1 else {}
        # llama.cpp puts it under `meta`.
        meta = cast("dict[str, Any]", entry.get("meta") or {})
        numbers = [*(entry.get(field) for field in _WINDOW_FIELDS), meta.get("n_ctx")]
    except (ModelError, ValueError, AttributeError, TypeError):
        return None
    return next((number for number in numbers if isinstance(number, int) and number > 0), None)
