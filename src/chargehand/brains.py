"""Which model a role of the supervisor uses, resolved once per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chargehand.effect import Role
from chargehand.value import Value


class Brain(Value):
    """A resolved model with its options, its window and how much it may write."""

    model: str
    options: dict[str, Any] = Field(default_factory=dict)
    window: int = 32_000
    output_cap: int = 8_192


Brains = Mapping[Role, Brain]
