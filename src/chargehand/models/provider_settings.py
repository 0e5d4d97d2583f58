"""Where models are served: the endpoints that need no setting up, and what settings say of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from chargehand.values.base import Value

Wire = Literal["openai", "anthropic"]


class Provider(Value):
    """Where models are served. The key in `key_env` goes to `base_url` and nowhere else."""

    name: str
    base_url: str
    wire: Wire
    key_env: str | None = None
    key_required: bool = False
    # What it allows: requests and tokens a minute, calls at once. None is no limit but what it answers.
    rpm: int | None = Field(default=None, gt=0)
    tpm: int | None = Field(default=None, gt=0)
    max_concurrent: int | None = Field(default=None, gt=0)


def built_in(env: Mapping[str, str]) -> dict[str, Provider]:
    """The providers that need no setting up, with the base URLs the environment gives."""
    known = (
        Provider(
            name="anthropic",
            base_url=env.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com",
            wire="anthropic",
            key_env="ANTHROPIC_API_KEY",
            key_required=True,
        ),
        Provider(
            name="openai",
            base_url=env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1",
            wire="openai",
            key_env="OPENAI_API_KEY",
            key_required=True,
        ),
        Provider(name="ollama", base_url="http://localhost:11434/v1", wire="openai"),
        Provider(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            wire="openai",
            key_env="OPENROUTER_API_KEY",
            key_required=True,
        ),
    )
    return {provider.name: provider for provider in known}
