"""A loop somebody measured."""


def drain(values: list[int]) -> int:
    queue = sorted(values)
    total = 0
    while queue:
        total += queue.pop(0)  # noqa
    return total
