"""Turns a model string (`provider:name`) into the client that answers for it, its price and its window."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from urllib.parse import urlsplit

from chargehand import __version__
from chargehand.errors import MissingKey, UsageError
from chargehand.limits import ProviderLimits, ProviderRegistry
from chargehand.models import MADE_IN_PYTHON, ModelClient, prices, provider_settings
from chargehand.models.openai_names import is_reasoning
from chargehand.models.prices import Price
from chargehand.models.provider_settings import Provider, Silence, WireName, built_in, is_loopback

if TYPE_CHECKING:
    from chargehand.models.transport import Transport

# How many parallel calls a server on this machine gets, unless another number is set.
LOCAL_AT_ONCE = 2
# All runs of a process share the limits of a provider.
REGISTRY = ProviderRegistry()


class Models:
    """All models a process may call: the built-in providers and the given ones, on one pool of connections."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        env: Mapping[str, str],
        scripts: Mapping[str, ModelClient] | None = None,
        *,
        wide: bool = False,
    ) -> None:
        """`wide`: the number of parallel calls was set, and also applies to a server on this machine."""
        self._providers = {**built_in(env), **providers}
        self._env = env
        self._wide = wide
        # By what comes after `scripted:`.
        self._scripts: dict[str, ModelClient] = dict(scripts or {})
        self._clients: dict[tuple[str, WireName], ModelClient] = {}
        # Models in this process, by their file.
        self._files: dict[Path, ModelClient] = {}
        self._transport: Transport | None = None

    @property
    def providers(self) -> Mapping[str, Provider]:
        return self._providers

    @property
    def transport(self) -> Transport:
        """The pool of connections that all clients share, made at first use."""
        if self._transport is None:
            from chargehand.models.transport import Transport

            self._transport = Transport(self._env)
        return self._transport

    def check(self, model: str) -> None:
        """Raise UsageError unless the model can be called: its provider is known and its key is set."""
        try:
            self.client(model)
        except UsageError as wrong:
            # The error is in the caller's arguments, not in the frames below this one.
            raise wrong.with_traceback(None) from None

    def client(self, model: str) -> ModelClient:
        """The client that answers for the model; one for each provider and wire format, or script."""
        prefix, name = self._split(model)
        if prefix == "scripted":
            if name not in self._scripts:
                from chargehand.models.scripted import ScriptedModel

                if model == MADE_IN_PYTHON:
                    raise UsageError("The run was started with a model made in Python: give Supervisor the same one.")

                self._scripts[name] = ScriptedModel.load(Path(name))
            return self._scripts[name]
        if prefix == "embedded":
            return self._make_embedded(Path(name))
        provider, wire = self._providers[prefix], self.wire(model)
        if (prefix, wire) not in self._clients:
            self._clients[prefix, wire] = self._connect(provider, wire, model)
        return self._clients[prefix, wire]

    def wire(self, model: str) -> WireName:
        """The wire format in which a provider's model is called."""
        prefix, name = self._split(model)
        by_name = "openai_responses" if is_reasoning(name) else "openai_chat"
        return self._providers[prefix].wire or by_name

    def key(self, model: str) -> str | None:
        """The key that goes to the model's provider; None where there is none."""
        return self._key(self._providers[model.partition(":")[0]], model)

    def makes_grammar(self, model: str) -> bool:
        """Whether the model's server turns a schema into a grammar."""
        from chargehand.models.profiles import profile_of

        provider = self._providers.get(model.partition(":")[0])
        return provider is not None and profile_of(provider).grammar

    def price(self, model: str) -> Price | None:
        """USD per million tokens; None when unknown."""
        prefix, _, name = model.partition(":")
        return prices.price(prefix, name)

    def window(self, model: str) -> int:
        """How many tokens the model can hold."""
        return self.known_window(model) or prices.UNKNOWN_WINDOW

    def known_window(self, model: str) -> int | None:
        """The same, None where it is only assumed."""
        return known_window(model, self._providers)

    def limits(self, model: str) -> ProviderLimits:
        """The limits of the model's provider; one for each endpoint in this process."""
        prefix, _, name = model.partition(":")
        provider = self._providers.get(prefix)
        if provider is None:
            return REGISTRY.limits_for(prefix, name)
        at_once = provider.max_concurrent
        if at_once is None and prefix == "embedded":
            from chargehand.models.embedded import usual_slots

            at_once = usual_slots()
        elif at_once is None and not self._wide and is_loopback(provider.base_url):
            at_once = LOCAL_AT_ONCE
        limits = {"rpm": provider.rpm, "tpm": provider.tpm, "max_concurrent": at_once}
        return REGISTRY.limits_for(prefix, provider.base_url, **limits)

    def silence(self, model: str) -> Silence:
        """How long the model's provider may be silent."""
        provider = self._providers.get(model.partition(":")[0])
        if provider is None:
            return Silence(provider_settings.FIRST_EVENT_S, provider_settings.SILENCE_S)
        return provider.silence

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()
        for client in (*self._scripts.values(), *self._files.values()):
            await client.close()
        self._files.clear()

    def _split(self, model: str) -> tuple[str, str]:
        prefix, colon, name = model.partition(":")
        if colon and name and (prefix == "scripted" or prefix in self._providers):
            return prefix, name
        known = [*self._providers, "scripted"]
        if not colon:
            raise UsageError(f"The model {model!r} names no provider: {_advice(model, known)}")
        if not name:
            raise UsageError(f"{model!r} names a provider and no model: write {prefix}:NAME.")
        import difflib

        close = difflib.get_close_matches(prefix, known, n=1, cutoff=0.61)
        hint = f"did you mean {close[0]}:{name}?" if close else f"use one of {', '.join(known)}."
        raise UsageError(f"The model {model!r} names the unknown provider {prefix!r}: {hint}")

    def _make_embedded(self, path: Path) -> ModelClient:
        if path not in self._files:
            from chargehand.models.embedded import EmbeddedModel

            provider = self._providers["embedded"]
            self._files[path] = EmbeddedModel(path, provider.window, provider.max_concurrent)
        return self._files[path]

    def _connect(self, provider: Provider, wire_name: WireName, model: str) -> ModelClient:
        # A script needs no wire format, and most runs need only one.
        from chargehand.models.http_model import HttpModel
        from chargehand.models.provider_errors import Endpoint

        key = self._key(provider, model)
        base = _base(provider)
        headers = {"Content-Type": "application/json", "User-Agent": f"chargehand/{__version__}"}
        if key and wire_name != "anthropic":
            headers["Authorization"] = f"Bearer {key}"
        match wire_name:
            case "openai_chat":
                from chargehand.models.openai_chat import OpenAIChat
                from chargehand.models.profiles import profile_of

                url, wire = f"{base}/chat/completions", OpenAIChat(profile_of(provider))
            case "openai_responses":
                from chargehand.models.openai_responses import OpenAIResponses

                url, wire = f"{base}/responses", OpenAIResponses()
            case "anthropic":
                from chargehand.models.anthropic import Anthropic

                url, wire = f"{base.removesuffix('/v1')}/v1/messages", Anthropic()
                headers["anthropic-version"] = "2023-06-01"
                if key:
                    headers["x-api-key"] = key
            case _:
                assert_never(wire_name)
        self.transport.prepare(url)
        endpoint = Endpoint(provider.name, url, headers, key, provider.key_env)
        return HttpModel(endpoint, wire, self.transport)

    def _key(self, provider: Provider, model: str) -> str | None:
        variable = provider.key_env
        key = self._env.get(variable, "").strip() if variable else ""
        if key and not (key.isascii() and key.isprintable()):
            raise UsageError(f"{variable} holds characters that no key has: set it again.")
        if not key and provider.key_required:
            raise MissingKey(f"{model} needs a key: set {variable}, as in export {variable}=...")
        return key or None


def _base(provider: Provider) -> str:
    if not _usable(provider.base_url):
        raise UsageError(
            f"The provider {provider.name} has the base URL {provider.base_url.rpartition('@')[2]!r}: "
            "it must be http://HOST or https://HOST, without a user name."
        )
    return provider.base_url.rstrip("/")


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
            and "@" not in parts.netloc
            and url.isprintable()
            and " " not in url
        )
    except ValueError:
        return False


def _advice(model: str, known: list[str]) -> str:
    if model.startswith("claude"):
        return f"did you mean anthropic:{model}?"
    if model.startswith(("gpt-", "o1", "o3", "o4")):
        return f"did you mean openai:{model}?"
    return f"write PROVIDER:NAME with one of {', '.join(known)}."


def known_window(model: str, providers: Mapping[str, Provider]) -> int | None:
    """How many tokens the model can hold; None where nobody says."""
    prefix, _, name = model.partition(":")
    provider = providers.get(prefix)
    if provider is not None and provider.window is not None:
        return provider.window
    if prefix == "embedded":
        from chargehand.models.embedded import usual_window

        return usual_window(Path(name))
    return prices.known_window(prefix, name)
