"""Where models are served: the endpoints that need no configuration, and the settings of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from chargehand.values.base import Field, Value
from chargehand.values.field_schema import Before

WireName = Literal["openai_chat", "openai_responses", "anthropic"]
WIRES: tuple[WireName, ...] = get_args(WireName)


# Servers on this machine, at their usual ports.
_LOCAL = (("ollama", 11434), ("lmstudio", 1234), ("vllm", 8000), ("llamacpp", 8080))


def wire_named(name: Any) -> Any:
    """The wire format that a file calls by this name: `openai` is short for `openai_chat`."""
    return "openai_chat" if name == "openai" else name


# How long a provider may be silent: before the first event of a reply, while it reads a long prompt or reasons; between
# two events; and between two events of a server on this machine or network, which may serve many calls on few cores.
FIRST_EVENT_S = 600.0
SILENCE_S = 60.0
LOCAL_SILENCE_S = 300.0


class Silence(NamedTuple):
    """Seconds without an event after which a call is given up: before the first, and between two."""

    first_s: float
    between_s: float


class Provider(Value):
    """Where models are served. The key in `key_env` goes to `base_url` and nowhere else."""

    name: str
    base_url: str
    # None: Responses for models that only OpenAI has, chat completions for others.
    wire: Annotated[WireName | None, Before(wire_named)]
    key_env: str | None = None
    key_required: bool = False
    # What it allows: requests and tokens per minute, parallel calls. None: no limit except the provider's own refusals.
    rpm: int | None = Field(default=None, gt=0)
    tpm: int | None = Field(default=None, gt=0)
    max_concurrent: int | None = Field(default=None, gt=0)
    # How many tokens its models can hold, if the table of known models does not say.
    window: int | None = Field(default=None, gt=0)
    # How long it may be silent; None means the default for its location.
    first_event_s: float | None = Field(default=None, gt=0)
    silence_s: float | None = Field(default=None, gt=0)

    @property
    def silence(self) -> Silence:
        usual = LOCAL_SILENCE_S if _is_local(self.base_url) else SILENCE_S
        return Silence(self.first_event_s or FIRST_EVENT_S, self.silence_s or usual)


def is_openai(base_url: str) -> bool:
    """Whether OpenAI itself is at the address."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def is_loopback(base_url: str) -> bool:
    """Whether the address is on this machine."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def openai_wire(base_url: str) -> WireName | None:
    """The wire format for OpenAI's models at the address; None, for other servers: it depends on the model."""
    return "openai_responses" if is_openai(base_url) else None


def built_in(env: Mapping[str, str]) -> dict[str, Provider]:
    """The providers that need no configuration, with the base URLs from the environment."""
    openai_url = env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
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
            base_url=openai_url,
            wire=openai_wire(openai_url),
            key_env="OPENAI_API_KEY",
            key_required=True,
        ),
        Provider(
            name="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            wire="openai_chat",
            key_env="GEMINI_API_KEY",
            key_required=True,
        ),
        Provider(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            wire="openai_chat",
            key_env="OPENROUTER_API_KEY",
            key_required=True,
        ),
        # In this process; the port is chosen when it starts.
        Provider(name="embedded", base_url="http://127.0.0.1", wire="openai_chat"),
        *(Provider(name=name, base_url=f"http://localhost:{port}/v1", wire="openai_chat") for name, port in _LOCAL),
    )
    return {provider.name: provider for provider in known}


@lru_cache(maxsize=64)
def _is_local(base_url: str) -> bool:
    """Whether the server is on this machine or in a private network, by its address or its name."""
    try:
        host = urlsplit(base_url).hostname or ""
        return "." not in host or host.endswith((".local", ".lan", ".internal")) or ip_address(host).is_private
    except ValueError:
        return False
