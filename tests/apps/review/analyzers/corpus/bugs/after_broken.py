"""The file after a broken one is checked all the same."""


def count(values: list[int]) -> int:
    return lenght(values)
