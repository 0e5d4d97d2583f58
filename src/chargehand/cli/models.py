"""`models` and `trust`: what is set up here, and what files in this folder are allowed to set."""

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
    from chargehand.cli.make_supervisor import supervisor
    from chargehand.models import prices
    from chargehand.settings.settings import NO_MODEL

    door = supervisor(None, {})
    out = screen()
    for warning in door.warnings:
        out.say(f"warning: {warning}")
    chosen = list(_choices(door.settings))
    if as_json:
        providers = [_provider(each) for each in door.settings.providers.values()]
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
    from chargehand.settings.settings_file import ROLES, TIERS

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
            "window": prices.window(provider, called),
        }


def _provider(provider: Provider) -> dict[str, Any]:
    variable = provider.key_env
    key = {"variable": variable, "set": bool(os.environ.get(variable, "").strip())} if variable else None
    return {"name": provider.name, "base_url": provider.base_url, "wire": provider.wire, "key": key}


def _key(key: Mapping[str, Any] | None) -> str:
    return "none needed" if key is None else f"{key['variable']} {'is set' if key['set'] else 'is not set'}"


def _price(price: Mapping[str, Any] | None) -> str:
    return "unknown" if price is None else f"{price['input']:g} in, {price['cached']:g} cached, {price['output']:g} out"


@click.command(cls=Command)
@click.argument("folder", required=False, metavar="DIR")
@click.option("--remove", is_flag=True, help="Take the trust back.")
@click.option("--list", "listing", is_flag=True, help="List the folders that are trusted.")
def trust(folder: str | None, remove: bool, listing: bool) -> None:
    """Let the files in DIR, and in all folders below it, set endpoints, key variables, commands and tool code."""
    from chargehand.errors import UsageError
    from chargehand.record.home import default_path
    from chargehand.record.trust import TrustRegistry

    registry = TrustRegistry(str(default_path(os.environ).absolute()))
    out = screen()
    if listing:
        for name in registry.directories():
            out.put(name)
    elif folder is None:
        raise UsageError("Say which folder: chargehand trust DIR, or list them with --list.")
    elif not remove:
        out.say(f"{registry.trust(folder)} is trusted from now on, with all below it.")
    elif registry.untrust(folder):
        out.say(f"{folder} is no longer trusted.")
    else:
        raise UsageError(f"{folder} was not trusted: chargehand trust --list shows what is.")
