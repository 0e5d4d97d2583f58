"""`models`: the settings become a list of the model of each role, with its price, window and key."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.screen import NARROWEST, fit, terminal_columns
from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHOOSE = "Choose models with --model of `run`, with CHARGEHAND_MODEL, or in [models] of chargehand.toml."


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
        head = ("for", "model", "input", "cached", "output", "window")
        # Secrets are removed before a name is cut or a line is broken.
        rows = [(c["for"], out.clean(c["model"]), *_price(c["price"]), f"{c['window']:,}") for c in chosen]
        out.table(head, _cut_names(head, rows) if sys.stdout.isatty() else rows)
        keys = ", ".join(dict.fromkeys(_key(c["key"]) for c in chosen))
        below = f"Prices in USD per million tokens, as of {prices.AS_OF}. Keys: {keys}.\n{_CHOOSE}"
        out.put("\n" + fit(out.redactor.text(below), sys.stdout))
    else:
        rows = [(each["name"], _key(each["key"]), _address(each)) for each in described["providers"]]
        out.table(("provider", "key", "address"), rows)
    if not chosen:
        raise MissingKey(NO_MODEL)


def _cut_names(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The rows, with model names that fit a terminal: a long one keeps its provider and its end."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = max(terminal_columns() - sum(widths) + widths[1] - 2 * (len(head) - 1), NARROWEST)
    return [(use, _cut(model, room), *rest) for use, model, *rest in rows]


def _cut(model: str, room: int) -> str:
    provider, _, name = model.partition(":")
    return model if len(model) <= room else f"{provider}:…{name[len(provider) + 2 - room :]}"


def _key(key: Mapping[str, Any] | None) -> str:
    return "none needed" if key is None else f"{key['variable']} {'is set' if key['set'] else 'is not set'}"


def _address(provider: Mapping[str, Any]) -> str:
    return "in this process" if provider["name"] == "embedded" else provider["base_url"]


def _price(price: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if price is None:
        return ("unknown", "", "")
    return (f"{price['input']:g}", f"{price['cached']:g}", f"{price['output']:g}")
