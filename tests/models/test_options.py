"""Options tune a call; they never replace what chargehand itself puts into it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models.anthropic import Anthropic
from chargehand.models.call_options import HARMLESS, wrong_option
from chargehand.models.openai_chat import OpenAIChat
from chargehand.models.profiles import Profile
from chargehand.values.effect import ModelCall
from chargehand.values.message import user

WIRES = {"openai:gpt-4o": OpenAIChat(Profile("other")), "anthropic:claude-sonnet-4-5": Anthropic()}
OWN = [
    "model", "messages", "system", "tools", "tool_choice", "functions", "max_tokens", "max_completion_tokens", "n",
    "stream", "stream_options", "response_format", "output_format", "mcp_servers", "N", "Max_Tokens",
]  # fmt: skip


def body(model: str, options: dict[str, Any]) -> dict[str, Any]:
    call = ModelCall(role="worker", model=model, messages=(user("u"),), options=options)
    return json.loads(WIRES[model].request(call, 500))


@pytest.mark.parametrize("model", WIRES)
@pytest.mark.parametrize("name", OWN)
def test_no_option_replaces_a_part_of_the_call(model: str, name: str) -> None:
    """On either wire the call is not sent, and the error names the option."""
    with pytest.raises(ModelError, match=f"{name!r} is not an option"):
        body(model, {name: 7})


@pytest.mark.parametrize("model", WIRES)
@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_sampling_options_are_sent(model: str, name: str) -> None:
    """What tunes a reply reaches the provider."""
    assert body(model, {name: 1})[name] == 1


def test_the_effort_may_be_set_but_not_the_format() -> None:
    """`output_config` is shared: its `format` is chargehand's."""
    assert wrong_option("output_config", {"effort": "low"}) is None
    for wrong in ({"effort": "low", "format": {}}, {"Format": {}}, "x"):
        assert wrong_option("output_config", wrong) is not None
