"""Loops over their own variable."""


def flat(rows: list[list[int]]) -> list[int]:
    found = []
    for row in rows:
        for row in row:
            found.append(row)
    return found


def unique(values: list[int]) -> set[int]:
    return {1, 2, 1} | set(values)


def trimmed(name: str) -> str:
    return name.strip("https://")
