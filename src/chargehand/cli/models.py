"""`models`: the settings become a list of the model of each role, with its price, window and key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chargehand.models.provider_settings import Provider
    from chargehand.settings import Settings


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON document.")
def models(as_json: bool) -> None:
    """Show which model does what, what it costs, and whether its key is set. Keys themselves are never shown."""
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.models import prices
    from chargehand.settings.settings import NO_MODEL

    supervisor = make_supervisor(None, {})
    out = screen()
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    chosen = list(_choices(supervisor.settings))
    if as_json:
        providers = [_provider(each) for each in supervisor.settings.providers.values()]
        out.document({"models": chosen, "providers": providers, "prices_as_of": prices.AS_OF})
        return
    if not chosen:
        out.put(NO_MODEL)
        return
    rows = [(c["for"], c["model"], _key(c["key"]), _price(c["price"]), f"{c['window']:,}") for c in chosen]
    out.table(("for", "model", "key", "USD per million tokens", "window"), rows)
    out.put(f"\nPrices as of {prices.AS_OF}. Models: --model, CHARGEHAND_MODEL, [models] in chargehand.toml.")


def _choices(settings: Settings) -> Iterator[dict[str, Any]]:
    from chargehand.errors import MissingKey
    from chargehand.models import prices
    from chargehand.models.resolve import Models
    from chargehand.settings.settings_file import ROLES, TIERS

    models = Models(settings.providers, os.environ)
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
            "key": _provider(settings.providers[provider])["key"] if provider in settings.providers else None,
            "price": price.to_json() if price else None,
            "window": models.window(model),
        }


def _provider(provider: Provider) -> dict[str, Any]:
    variable = provider.key_env
    key = {"variable": variable, "set": bool(os.environ.get(variable, "").strip())} if variable else None
    return {"name": provider.name, "base_url": provider.base_url, "wire": provider.wire, "key": key}


def _key(key: Mapping[str, Any] | None) -> str:
    return "none needed" if key is None else f"{key['variable']} {'is set' if key['set'] else 'is not set'}"


def _price(price: Mapping[str, Any] | None) -> str:
    return "unknown" if price is None else f"{price['input']:g} in, {price['cached']:g} cached, {price['output']:g} out"
