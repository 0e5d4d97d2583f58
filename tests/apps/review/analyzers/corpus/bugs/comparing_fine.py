"""States, compared as they should be."""


def is_open(state: str) -> bool:
    return state == "open"


def check(value: int) -> None:
    assert value > 0, "must be positive"


def missing(value: object) -> bool:
    return value is None


def is_nan(value: float) -> bool:
    return not value <= value + 1
