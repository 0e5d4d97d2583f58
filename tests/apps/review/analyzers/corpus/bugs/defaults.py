"""Baskets."""

from dataclasses import dataclass


def add(item: str, basket: list[str] = []) -> list[str]:
    basket.append(item)
    return basket


def options(extra: dict = {}) -> dict:
    extra.setdefault("colour", "red")
    return extra


@dataclass
class Order:
    items: tuple[str, ...] = ()
