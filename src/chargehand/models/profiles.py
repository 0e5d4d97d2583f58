"""What differs between providers of one wire format: how reasoning effort is set, and what a schema may contain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from chargehand.models.call_options import Effort
from chargehand.models.openai_names import is_reasoning, lowest_effort
from chargehand.models.provider_settings import Provider, is_loopback, is_openai
from chargehand.values.lazy_regex import lazy_regex

_GEMINI = lazy_regex(r"(?:models/)?gemini-(\d+)(?:\.(\d+))?")
_FLASH = lazy_regex(r"(?:models/)?gemini-.*flash")


class Profile(NamedTuple):
    """What the servers of one provider accept."""

    name: str
    # The server turns a schema into a grammar for the whole answer, which forbids tool calls.
    grammar: bool = False

    @property
    def all_required(self) -> bool:
        """Whether all properties of a schema must be required."""
        return not self.grammar and self.name != "gemini"

    def effort(self, name: str, effort: Effort) -> dict[str, Any]:
        """The fields of a chat completion that ask a model for that much reasoning."""
        match self.name:
            case "openai":
                least = lowest_effort(name) if effort == "none" else effort
                return {"reasoning_effort": least} if is_reasoning(name) else {}
            case "gemini":
                return {"reasoning_effort": _least_of_gemini(name) if effort == "none" else effort}
            case "openrouter":
                return {"reasoning": {"effort": effort}}
            case "llamacpp" | "vllm" | "embedded":
                # Chat templates read these two; a template without them ignores both.
                return {"chat_template_kwargs": {"enable_thinking": effort != "none", "reasoning_effort": effort}}
            case _:
                return {"reasoning_effort": effort}

    def samples(self, name: str) -> bool:
        """Whether a temperature of 0 suits a model of this name, if no temperature was set."""
        # Gemini 3 repeats itself at temperatures below 1, according to its documentation.
        return _gemini_version(name) < (3, 0)

    def takes_schema_with_tools(self, name: str) -> bool:
        """Whether an answer is held to a schema while tools may be called."""
        if self.name == "gemini":
            return _gemini_version(name) >= (3, 0)
        return self.name == "openai" or is_reasoning(name)


_GRAMMAR = ("ollama", "lmstudio", "vllm", "llamacpp", "embedded")
_BY_NAME: Mapping[str, Profile] = {
    **{name: Profile(name) for name in ("anthropic", "gemini", "openrouter")},
    **{name: Profile(name, grammar=True) for name in _GRAMMAR},
}
_OPENAI = Profile("openai")
_LOCAL = Profile("local", grammar=True)
_OTHER = Profile("other")


def profile_of(provider: Provider) -> Profile:
    """Chosen by name if it is known, else by address: a server on this machine turns schemas into grammars."""
    if is_openai(provider.base_url):
        return _OPENAI
    return _BY_NAME.get(provider.name) or (_LOCAL if is_loopback(provider.base_url) else _OTHER)


@lru_cache(maxsize=128)
def _gemini_version(name: str) -> tuple[int, int]:
    """A Gemini model's version, (0, 0) for another name."""
    found = _GEMINI.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _least_of_gemini(name: str) -> str:
    if _gemini_version(name) >= (3, 0):
        return "minimal" if _FLASH.match(name) else "low"
    return "none" if _FLASH.match(name) else "low"
