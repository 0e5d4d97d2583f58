"""Lists where sets would do."""

import re


def unique(values: list[str]) -> list[str]:
    seen = []
    for value in values:
        if value not in seen:
            seen.append(value)
    return seen


def drain(values: list[int]) -> int:
    queue = sorted(values)
    total = 0
    while queue:
        total += queue.pop(0)
    return total


def flat(rows: list[list[int]]) -> list[int]:
    return sum(rows, [])


def matches(lines: list[str]) -> int:
    count = 0
    for line in lines:
        pattern = re.compile(r"\d+-\d+")
        count += bool(pattern.search(line))
    return count


def values(table: dict[str, int]) -> int:
    total = 0
    for _, value in table.items():
        total += value
    return total
