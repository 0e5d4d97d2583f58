"""Prices."""


def discounted(price: float) -> float:
    return price * 0.85


def with_tax(price: float) -> float:
    rate = 0.25
    return price * (1 + rate)


class Basket:
    def __init__(self) -> None:
        self.items: list[float] = []

    def clear_expired(self) -> None:
        self.items = [item for item in self.items if item > 0]


def described(price: float) -> str:
    """The price as text, in euros."""
    return f"{price:.2f} EUR"
