"""Docstrings that describe another function."""


def send(address: str, text: str) -> None:
    """Send a message.

    Args:
        address: Where to.
        body: What to say.
    """
    print(address, text)


def price(amount: float, tax: float) -> float:
    """The price.

    :param amount: before tax
    :param rate: the tax rate
    """
    return amount * tax


def area(width: float, height: float) -> float:
    """The area.

    Parameters
    ----------
    width : float
        From left to right.
    length : float
        From top to bottom.
    """
    return width * height
