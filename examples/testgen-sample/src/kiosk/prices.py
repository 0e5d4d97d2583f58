"""Prices in cents."""

VAT_PERCENT = 19


def net(gross: int) -> int:
    """The price without tax, rounded down."""
    return gross * 100 // (100 + VAT_PERCENT)


def discounted(cents: int, percent: int = 10) -> int:
    """The price after a discount.

    >>> discounted(200, 25)
    150
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"a discount of {percent} % is not between 0 and 100")
    return cents - cents * percent // 100


def shown(cents: int, currency: str = "EUR") -> str:
    """As on the receipt: `12.50 EUR`."""
    sign = "-" if cents < 0 else ""
    euros, rest = divmod(abs(cents), 100)
    return f"{sign}{euros}.{rest:02d} {currency}"


def cheapest(prices: list[int]) -> int | None:
    """The lowest price, None when there is none."""
    return min(prices) if prices else None
