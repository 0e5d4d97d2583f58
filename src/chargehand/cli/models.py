"""`models`: the settings become a list of the model of each role, with its price, window and key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON document.")
def models(as_json: bool) -> None:
    """Show which model does what, what it costs, and whether its key is set. Keys themselves are never shown.

    Without any model it lists the providers with the variables of their keys, and exits with 2; so does --json.
    """
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.errors import MissingKey
    from chargehand.models import prices
    from chargehand.settings.model_table import describe_models
    from chargehand.settings.settings import NO_MODEL

    supervisor = make_supervisor(None, {})
    out = screen()
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    described = describe_models(supervisor.settings, os.environ)
    chosen = described["models"]
    if as_json:
        out.document(described)
    elif chosen:
        rows = [(c["for"], c["model"], *_price(c["price"]), f"{c['window']:,}") for c in chosen]
        out.table(("for", "model", "input", "cached", "output", "window"), rows)
        keys = ", ".join(dict.fromkeys(_key(c["key"]) for c in chosen))
        out.put(f"\nPrices in USD per million tokens, as of {prices.AS_OF}. Keys: {keys}.")
        out.put("Choose models with --model, CHARGEHAND_MODEL, or [models] in chargehand.toml.")
    else:
        rows = [(each["name"], _key(each["key"]), _address(each)) for each in described["providers"]]
        out.table(("provider", "key", "address"), rows)
    if not chosen:
        raise MissingKey(NO_MODEL)


def _key(key: Mapping[str, Any] | None) -> str:
    return "none needed" if key is None else f"{key['variable']} {'is set' if key['set'] else 'is not set'}"


def _address(provider: Mapping[str, Any]) -> str:
    return "in this process" if provider["name"] == "embedded" else provider["base_url"]


def _price(price: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if price is None:
        return ("unknown", "", "")
    return (f"{price['input']:g}", f"{price['cached']:g}", f"{price['output']:g}")
