"""What the name of an OpenAI model says about it: whether it reasons, and how little it can reason."""

from __future__ import annotations

from functools import lru_cache

from chargehand.values.lazy_regex import lazy_regex

_REASONING = lazy_regex(r"(gpt-[5-9]|o\d)(?!.*-chat)")
_FIRST_GPT_5 = lazy_regex(r"gpt-5(?:-(?:mini|nano|pro))?(?:-\d{4}-\d{2}-\d{2})?$")


@lru_cache(maxsize=128)
def is_reasoning(name: str) -> bool:
    """Whether the model reasons; only OpenAI has models with these names."""
    return _REASONING.match(name) is not None


def lowest_effort(name: str) -> str:
    """The lowest effort that a reasoning model accepts."""
    if name.startswith("o"):
        return "low"
    return "minimal" if _FIRST_GPT_5.match(name) else "none"
