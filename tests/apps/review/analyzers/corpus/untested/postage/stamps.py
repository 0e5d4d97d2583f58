"""Stamps; no test imports it, though one imports its neighbour."""


def stamps(cents: int) -> list[int]:
    """The fewest stamps."""
    found: list[int] = []
    for value in (80, 20, 5, 1):
        found += [value] * (cents // value)
        cents %= value
    return found
