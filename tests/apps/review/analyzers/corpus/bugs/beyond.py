"""Defects that no rule here knows."""


def pages(items: list[int], size: int) -> int:
    return len(items) // size


def average(values: list[float]) -> float:
    return sum(values) / len(values)


def remove_small(values: list[int]) -> None:
    for value in values:
        if value < 10:
            values.remove(value)
