"""Totals."""


def total(prices: list[float]) -> float:
    result = 0.0
    for price in prices:
        result += price
    return reslt


def discount(price: float) -> float:
    return price * rate


__all__ = ["discount", "total", "tax"]
