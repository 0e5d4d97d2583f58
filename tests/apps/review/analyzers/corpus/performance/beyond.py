"""Costs that no rule here knows."""


def load(repository, ids: list[int]) -> list[object]:
    found = []
    for number in ids:
        found.append(repository.find(number))
    return found


def common(a: list[int], b: list[int]) -> list[int]:
    return [value for value in a if value in b]
