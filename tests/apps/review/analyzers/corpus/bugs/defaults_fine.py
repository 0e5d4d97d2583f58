"""Baskets, each with its own list."""

from dataclasses import dataclass, field


def add(item: str, basket: list[str] | None = None) -> list[str]:
    basket = [] if basket is None else basket
    basket.append(item)
    return basket


def sizes(known: tuple[str, ...] = ("s", "m", "l")) -> set[str]:
    return set(known)


@dataclass
class Order:
    items: list[str] = field(default_factory=list)
