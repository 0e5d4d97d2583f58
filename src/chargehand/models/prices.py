"""A dated table: what known models cost, how much they can read, and which one is the default of a tier."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.message import TokenCount

Tier = Literal["small", "medium", "large"]

AS_OF = "2026-11-15"
UNKNOWN_WINDOW = 32_000


class Price(NamedTuple):
    """USD per million tokens. Writing to a provider's prompt cache is counted as plain input."""

    input: float
    output: float
    cached: float
    # Some models charge the whole call at other rates if its input is longer than this.
    long_after: int | None = None
    long: Price | None = None

    def usd(self, count: TokenCount) -> float:
        """What a call with this count costs."""
        if self.long is not None and self.long_after is not None and count.input_tokens > self.long_after:
            return self.long.usd(count)
        fresh = max(0, count.input_tokens - count.cached_tokens)
        return (fresh * self.input + count.cached_tokens * self.cached + count.output_tokens * self.output) / 1e6

    def to_json(self) -> dict[str, Any]:
        """The rates as plain JSON data."""
        rates = {"input": float(self.input), "output": float(self.output), "cached": float(self.cached)}
        return rates | {"long_after": self.long_after, "long": None if self.long is None else self.long.to_json()}


def _openai_long(input: float, output: float, cached: float) -> Price:
    """OpenAI's newer models: over 272,000 tokens of input, twice the input and 1.5 times the output rate."""
    double = Price(input=2 * input, output=1.5 * output, cached=2 * cached)
    return Price(input=input, output=output, cached=cached, long_after=272_000, long=double)


def _gemini_pro(input: float, output: float, cached: float) -> Price:
    """Google's Pro models: over 200,000 tokens of input, twice the input and 1.5 times the output rate."""
    double = Price(input=2 * input, output=1.5 * output, cached=2 * cached)
    return Price(input=input, output=output, cached=cached, long_after=200_000, long=double)


_HAIKU_LONG = Price(input=0.50, output=2.50, cached=0.05)

_FREE = Price(input=0, output=0, cached=0)

# name -> (price, context window)
_MODELS: dict[str, dict[str, tuple[Price, int]]] = {
    "anthropic": {
        "claude-fable-5-1": (Price(input=10, output=50, cached=0.25), 1_000_000),
        "claude-opus-5-5": (Price(input=4, output=20, cached=0.20), 1_000_000),
        "claude-opus-5": (Price(input=5, output=25, cached=0.50), 1_000_000),
        "claude-sonnet-5-5": (Price(input=2, output=10, cached=0.20), 1_000_000),
        "claude-sonnet-5": (Price(input=2, output=10, cached=0.20), 1_000_000),
        "claude-haiku-5-5": (
            Price(input=0.10, output=0.50, cached=0.01, long_after=100_000, long=_HAIKU_LONG), 1_000_000,
        ),
        "claude-opus-4-6": (Price(input=5, output=25, cached=0.50), 200_000),
        "claude-opus-4-5": (Price(input=5, output=25, cached=0.50), 200_000),
        "claude-opus-4-1": (Price(input=15, output=75, cached=1.50), 200_000),
        "claude-sonnet-4-6": (Price(input=3, output=15, cached=0.30), 200_000),
        "claude-sonnet-4-5": (Price(input=3, output=15, cached=0.30), 200_000),
        "claude-haiku-4-5": (Price(input=1, output=5, cached=0.10), 200_000),
    },
    "openai": {
        "gpt-6-astra": (_openai_long(10, 50, 1.0), 1_050_000),
        "gpt-6.1-sol": (_openai_long(2, 10, 0.10), 1_050_000),
        "gpt-6-sol": (_openai_long(2, 10, 0.20), 1_050_000),
        "gpt-6-luna": (_openai_long(0.10, 0.50, 0.01), 1_050_000),
        "gpt-5.4": (_openai_long(2.50, 15, 0.25), 1_050_000),
        "gpt-5.4-mini": (Price(input=0.75, output=4.50, cached=0.075), 400_000),
        "gpt-5.1": (Price(input=1.25, output=10, cached=0.125), 400_000),
        "gpt-5": (Price(input=1.25, output=10, cached=0.125), 400_000),
        "gpt-5-mini": (Price(input=0.25, output=2, cached=0.025), 400_000),
        "gpt-5-nano": (Price(input=0.05, output=0.40, cached=0.005), 400_000),
        "gpt-4.1": (Price(input=2, output=8, cached=0.50), 1_047_576),
        "gpt-4.1-mini": (Price(input=0.40, output=1.60, cached=0.10), 1_047_576),
        "gpt-4o": (Price(input=2.50, output=10, cached=1.25), 128_000),
        "gpt-4o-mini": (Price(input=0.15, output=0.60, cached=0.075), 128_000),
    },
    # Google's list has double rates for argon from 2026-12-01 and for 3.6 to 3.8 flash from 2027-01-01.
    "gemini": {
        "gemini-4-argon": (Price(input=2, output=10, cached=0.10), 1_048_576),
        "gemini-3.8-flash": (Price(input=0.75, output=3.75, cached=0.075), 1_000_000),
        "gemini-3.7-flash": (Price(input=0.75, output=3.75, cached=0.075), 1_000_000),
        "gemini-3.6-flash": (Price(input=0.75, output=3.75, cached=0.075), 1_000_000),
        "gemini-3.5-flash": (Price(input=1.50, output=9, cached=0.15), 1_000_000),
        "gemini-3.5-flash-lite": (Price(input=0.30, output=2.50, cached=0.03), 1_000_000),
        "gemini-3.1-pro-preview": (_gemini_pro(2, 12, 0.20), 1_048_576),
        "gemini-3.1-flash-lite": (Price(input=0.25, output=1.50, cached=0.025), 1_000_000),
        "gemini-3-pro-preview": (_gemini_pro(2, 12, 0.20), 1_048_576),
        "gemini-3-flash-preview": (Price(input=0.50, output=3, cached=0.05), 1_000_000),
        "gemini-2.5-pro": (_gemini_pro(1.25, 10, 0.125), 1_048_576),
        "gemini-2.5-flash": (Price(input=0.30, output=2.50, cached=0.03), 1_048_576),
        "gemini-2.5-flash-lite": (Price(input=0.10, output=0.40, cached=0.01), 1_000_000),
    },
}  # fmt: skip

# Ollama has no entry: its models depend on the machine.
_DEFAULTS: dict[str, dict[Tier, str]] = {
    "anthropic": {"small": "claude-haiku-5-5", "medium": "claude-sonnet-5-5", "large": "claude-opus-5-5"},
    "openai": {"small": "gpt-6-luna", "medium": "gpt-6-sol", "large": "gpt-6-sol"},
    "openrouter": {
        "small": "anthropic/claude-haiku-5.5",
        "medium": "anthropic/claude-sonnet-5.5",
        "large": "anthropic/claude-opus-5.5",
    },
}

_SNAPSHOT = lazy_regex(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def price(provider: str, name: str) -> Price | None:
    """The model's price; None when the table does not know it, never 0."""
    if provider == "embedded":
        return _FREE
    known = _find(provider, name)
    return known[0] if known else None


def known_window(provider: str, name: str) -> int | None:
    """How many tokens the model can hold, input and output together; None when the table does not know it."""
    known = _find(provider, name)
    return known[1] if known else None


def default_model(provider: str, tier: Tier) -> str | None:
    """The model, as `provider:name`, that a tier uses when no model was chosen."""
    name = _DEFAULTS.get(provider, {}).get(tier)
    return f"{provider}:{name}" if name else None


def list_models() -> list[tuple[str, Price, int]]:
    """Every known model as (`provider:name`, price, window)."""
    return [(f"{p}:{name}", *known) for p, models in _MODELS.items() for name, known in models.items()]


@lru_cache(maxsize=512)
def _find(provider: str, name: str) -> tuple[Price, int] | None:
    models = _MODELS.get(provider, {})
    return models.get(name) or models.get(_SNAPSHOT.sub("", name))
