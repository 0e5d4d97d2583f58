"""Which models are small, by their names."""

from __future__ import annotations

import pytest

from chargehand.models.model_size import is_small
from chargehand.models.prices import default_model


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("ollama:qwen2.5-coder:1.5b", True),
        ("llamacpp:Llama-3.2-3B-Instruct-Q4_K_M", True),
        ("embedded:/models/smollm2-135m.gguf", True),
        ("ollama:llama3.1:70b", False),
        ("openrouter:mistral-8x22b", False),
        ("ollama:llama3.1", False),
        ("openai:gpt-5-mini", False),
        ("scripted:model", False),
        ("scripted:b2b-sales.json", False),
    ],
)
def test_the_name_says_how_large_a_model_is(model: str, small: bool) -> None:
    """Fewer than ten billion parameters is small; what says nothing is not."""
    assert is_small(model) == small


def test_a_default_for_small_work_is_small() -> None:
    """Unless the provider has the same one for large work."""
    assert is_small(default_model("anthropic", "small") or "")
    assert not is_small(default_model("anthropic", "large") or "")
