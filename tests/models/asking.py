"""How the tests in this folder put a call to a provider on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.models.provider_settings import Provider
from chargehand.models.resolve import Models
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message, Reply, user
from tests.loopback import Answer, Handler, Seen, Server, serve

KEY = "sk-canary-0123456789"
OPENAI = "openai:some-model"
ANTHROPIC = "anthropic:claude-sonnet-4-5"
RESPONSES = "responses:some-model"
BOTH = (OPENAI, ANTHROPIC)
ALL = (OPENAI, RESPONSES, ANTHROPIC)
WHO = Attribution(run="r1", task="t3", attempt=2, role="worker", idempotency_key="r1/t3/2/model/4")


def environment(url: str, **more: str) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        **more,
    }


def a_call(model: str, *messages: Message, **more: Any) -> ModelCall:
    return ModelCall(role="worker", worker="writer", model=model, messages=messages or (user("Say hi."),), **more)


def providers(url: str, own: Mapping[str, Any] | None = None) -> dict[str, Provider]:
    """`responses` speaks Responses, whatever its models are called; `own` is set up as a test says."""
    set_up = {"responses": {"wire": "openai_responses"}, "own": {"wire": "openai_chat", **(own or {})}}
    common = {"base_url": f"{url}/v1", "key_env": "OPENAI_API_KEY"}
    return {name: Provider.model_validate({"name": name, **common, **more}) for name, more in set_up.items()}


async def put(models: Models, call: ModelCall, on_text: Callable[[str], None] | None = None) -> Reply:
    try:
        return await models.client(call.model).complete(call, 500, WHO, on_text)
    finally:
        await models.close()


def ask(
    answer: Answer | Handler,
    call: ModelCall,
    on_text: Callable[[str], None] | None = None,
    env: Mapping[str, str] | None = None,
    own: Mapping[str, Any] | None = None,
) -> tuple[Reply, Seen]:
    """The reply to one call, and the request the provider saw."""
    handler: Handler = (lambda _: answer) if isinstance(answer, Answer) else answer

    async def main() -> tuple[Reply, Server]:
        async with serve(handler) as server:
            models = Models(providers(server.url, own), environment(server.url, **(env or {})))
            return await put(models, call, on_text), server

    reply, server = asyncio.run(main())
    return reply, server.requests[-1]


def fault(answer: Answer | Handler, call: ModelCall, on_text: Callable[[str], None] | None = None) -> ModelError:
    """The error one call ends in; the key is in none of its texts."""
    with pytest.raises(ModelError) as caught:
        ask(answer, call, on_text)
    error = caught.value
    assert KEY not in f"{error} {error!r} {error.__cause__!r}"
    assert "\n" not in str(error)
    return error
