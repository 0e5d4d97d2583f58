"""What differs between providers: how much to reason, the temperature, how many calls at once, the window."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from chargehand.models.anthropic import Anthropic
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import profile_of
from chargehand.models.provider_settings import Provider, built_in
from chargehand.models.resolve import Models
from chargehand.values.effect import ModelCall
from chargehand.values.message import user


def _body(provider: str, name: str, max_output: int = 8_192, **options: Any) -> dict[str, Any]:
    """The request to a built-in provider, chat completions or messages."""
    known = built_in({})[provider]
    wire = Anthropic() if known.wire == "anthropic" else OpenAIChat(profile_of(known))
    call = ModelCall(role="worker", model=f"{provider}:{name}", messages=(user("u"),), options=options)
    return json.loads(wire.request(call, max_output))


@pytest.mark.parametrize(
    ("provider", "name", "effort", "fields"),
    [
        ("openai", "gpt-6-sol", "none", {"reasoning_effort": "none"}),
        ("openai", "o3", "none", {"reasoning_effort": "low"}),
        ("openai", "gpt-4o", "high", {}),
        ("gemini", "gemini-3-pro", "high", {"reasoning_effort": "high"}),
        ("gemini", "gemini-3-pro", "none", {"reasoning_effort": "low"}),
        ("gemini", "gemini-3.5-flash", "none", {"reasoning_effort": "minimal"}),
        ("gemini", "gemini-2.5-flash", "none", {"reasoning_effort": "none"}),
        ("openrouter", "a/b", "none", {"reasoning": {"effort": "none"}}),
        ("ollama", "qwen3", "low", {"reasoning_effort": "low"}),
        ("lmstudio", "qwen3", "low", {"reasoning_effort": "low"}),
        ("vllm", "q", "none", {"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "none"}}),
        ("llamacpp", "q", "high", {"chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "high"}}),
        ("anthropic", "claude-opus-5-5", "none", {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            "claude-opus-5-5",
            "low",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        ("anthropic", "claude-sonnet-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
        ("anthropic", "claude-sonnet-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
        ("anthropic", "claude-sonnet-4-5", "none", {}),
        ("anthropic", "other", "high", {}),
    ],
)
def test_effort_is_said_in_each_providers_words(provider: str, name: str, effort: str, fields: dict[str, Any]) -> None:
    """Exactly these fields are added by it."""
    plain, asked = _body(provider, name), _body(provider, name, effort=effort)
    assert {field: value for field, value in asked.items() if plain.get(field) != value} == fields


def test_an_old_model_without_room_to_think_is_not_asked_to() -> None:
    """Thinking takes at least 1,024 tokens and leaves half of the output for the answer."""
    assert "thinking" not in _body("anthropic", "claude-sonnet-4-5", 2_000, effort="high")


@pytest.mark.parametrize(
    ("provider", "name", "sent"),
    [
        ("openai", "gpt-4o", True),
        ("openai", "gpt-6-sol", False),
        ("ollama", "qwen3", True),
        ("gemini", "gemini-2.5-pro", True),
        ("gemini", "gemini-3-pro", False),
        ("anthropic", "claude-sonnet-4-6", True),
        ("anthropic", "claude-sonnet-5-5", False),
        ("anthropic", "other", False),
    ],
)
def test_the_temperature_is_0_where_a_model_takes_it(provider: str, name: str, sent: bool) -> None:
    """Models that refuse a temperature, or do badly with 0, get none unless one is set."""
    assert _body(provider, name).get("temperature") == (0 if sent else None)


def test_a_model_that_thinks_by_budget_gets_no_temperature() -> None:
    """The provider refuses both together."""
    assert "temperature" not in _body("anthropic", "claude-sonnet-4-5", effort="high")


def _at_once(models: Models, model: str) -> float:
    async def main() -> float:
        return models.limits(model).adaptive.most

    return asyncio.run(main())


def test_a_server_on_this_machine_is_asked_two_at_once() -> None:
    """Unless its provider says otherwise, or somebody set how many calls a run makes at once."""
    lab = Provider(name="lab", base_url="http://127.0.0.1:9/v1", wire="openai_chat", max_concurrent=16, window=4_000)
    far = Provider(name="far", base_url="https://llm.example.com/v1", wire="openai_chat")
    models = Models({"lab": lab, "far": far}, {})
    assert (_at_once(models, "ollama:m"), _at_once(models, "lab:m")) == (2, 16)
    assert _at_once(models, "far:m") > 1_000
    assert _at_once(Models({}, {}, wide=True), "ollama:m") > 1_000
    assert (models.window("lab:m"), models.known_window("far:m")) == (4_000, None)


@pytest.mark.parametrize("name", ["gemini", "lmstudio", "vllm", "llamacpp", "ollama", "openrouter"])
def test_named_providers_need_no_setting_up(name: str) -> None:
    """With a key where one is needed, a name is enough."""
    models = Models({}, {"GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "k"})
    assert models.wire(f"{name}:m") == "openai_chat"
