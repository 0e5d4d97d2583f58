"""Totals with names that exist, some of them only at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


def total(prices: list[Decimal]) -> Decimal:
    return sum(prices)


def attribute(name: str) -> object:
    return globals()[name]


def __getattr__(name: str) -> object:
    raise AttributeError(name)
