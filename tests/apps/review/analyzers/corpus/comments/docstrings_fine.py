"""Docstrings that are true."""


def send(address: str, *texts: str, **options: str) -> None:
    """Send messages.

    Args:
        address: Where to, for
            example: a name.
        *texts: What to say.
        urgent: One of the options.
    """
    print(address, texts, options)


def price(amount: float, tax: float) -> float:
    """The price.

    :param float amount: before tax
    :param tax: the rate
    :returns: the sum
    """
    return amount * tax


def area(width: float, height: float) -> float:
    """The area.

    Parameters
    ----------
    width, height : float
        Both sides.

    Returns
    -------
    float
        The product.
    """
    return width * height
