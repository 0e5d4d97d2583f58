"""A helper somebody stepped through."""


def total(prices: list[float]) -> float:
    breakpoint()
    return sum(prices)


def count(prices: list[float]) -> int:
    import pdb; pdb.set_trace()
    return len(prices)
