"""Shipping; no test imports it."""


def cost(weight: float) -> float:
    base = 3.5
    return base + 0.8 * weight
