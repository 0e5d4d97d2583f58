"""Buttons that remember their number."""

from collections.abc import Callable
from functools import partial


def buttons() -> list[Callable[[], int]]:
    return [partial(int, number) for number in range(3)]


def largest(rows: list[list[int]]) -> list[int]:
    return [max(row, key=lambda value: -value) for row in rows]
