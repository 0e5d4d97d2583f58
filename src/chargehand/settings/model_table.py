"""Settings -> the model of each role with its price, window and key as JSON. Keys themselves are never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chargehand.errors import MissingKey
from chargehand.models import prices
from chargehand.models.provider_settings import Provider
from chargehand.models.resolve import Models
from chargehand.settings.settings import Settings
from chargehand.settings.settings_file import ROLES, TIERS


def describe_models(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """The table as `models --json` prints it; no models if none is configured."""
    providers = [_provider(each, environ) for each in settings.providers.values()]
    return {"models": list(_choices(settings, environ)), "providers": providers, "prices_as_of": prices.AS_OF}


def _choices(settings: Settings, environ: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    models = Models(settings.providers, environ)
    for name in (*ROLES, *(f"worker, {tier}" for tier in TIERS)):
        role, _, tier = name.partition(", ")
        try:
            model = settings.model_for(role, tier or None).model  # pyright: ignore[reportArgumentType]
        except MissingKey:
            return
        provider, _, called = model.partition(":")
        price = prices.price(provider, called)
        yield {
            "for": name,
            "model": model,
            "key": _provider(settings.providers[provider], environ)["key"] if provider in settings.providers else None,
            "price": price.to_json() if price else None,
            "window": models.window(model),
        }


def _provider(provider: Provider, environ: Mapping[str, str]) -> dict[str, Any]:
    variable = provider.key_env
    key = {"variable": variable, "set": bool(environ.get(variable, "").strip())} if variable else None
    return {"name": provider.name, "base_url": provider.base_url, "wire": provider.wire, "key": key}
