"""What somebody is about to buy."""

from dataclasses import dataclass, field

from .prices import discounted  # noqa: TID252 -- as many packages do


@dataclass
class Basket:
    """Prices in cents, in the order they were put in."""

    prices: list[int] = field(default_factory=list)

    def total(self, discount: int = 0) -> int:
        """The sum after a discount in percent."""
        return discounted(sum(self.prices), discount)

    def with_item(self, cents: int) -> "Basket":
        """A basket with one thing more."""
        return Basket([*self.prices, cents])
