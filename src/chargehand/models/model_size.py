"""The name of a model -> whether it is a small one, which needs shorter and simpler questions than others."""

from __future__ import annotations

import re
from functools import lru_cache

from chargehand.models.prices import default_model
from chargehand.values.lazy_regex import lazy_regex

# `qwen2.5-coder-1.5b`, `llama3.2:3b`, `smollm2-135m`: billions or millions of parameters.
_PARAMETERS = lazy_regex(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)([bm])(?![a-z0-9])", re.IGNORECASE)
# Models with fewer parameters, in billions, are small.
_SMALL = 10.0


@lru_cache(maxsize=256)
def is_small(model: str) -> bool:
    """Whether its name states fewer than ten billion parameters, or it is only its provider's default for small."""
    if stated := _PARAMETERS.findall(model):
        return _billions(*stated[-1]) < _SMALL
    provider = model.partition(":")[0]
    return model == default_model(provider, "small") and model != default_model(provider, "large")


@lru_cache(maxsize=256)
def is_small_open(model: str) -> bool:
    """Whether its name states fewer than ten billion parameters, as names of open models do."""
    stated = _PARAMETERS.findall(model)
    return bool(stated) and _billions(*stated[-1]) < _SMALL


def _billions(number: str, unit: str) -> float:
    return float(number) / (1_000 if unit in "mM" else 1)
