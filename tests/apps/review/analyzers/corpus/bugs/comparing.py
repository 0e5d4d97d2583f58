"""States."""


def is_open(state: str) -> bool:
    return state is "open"


def check(value: int) -> None:
    assert (value > 0, "must be positive")


def closed(order: object) -> bool:
    order.state == "closed"
    return True


def missing(value: object) -> bool:
    return value == None


def same(a: int, b: int) -> bool:
    return a == a
