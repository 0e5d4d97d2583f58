"""Lines whose authors know better than the rule."""

import os  # noqa: F401


def add(item: str, basket: list[str] = []) -> list[str]:  # noqa: B006
    basket.append(item)
    return basket


def silent() -> None:
    try:
        print("x")
    except:  # noqa
        print("y")
