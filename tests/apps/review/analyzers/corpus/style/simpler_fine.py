"""Steps that make it easier to read."""


def size(value: int) -> str:
    if value > 10:
        return "large"
    return "small"


def nested(a: bool, b: bool) -> int:
    if a:
        # The inner question only makes sense here.
        if b:
            return 2
    return 1


def price(table: dict[str, int], key: str) -> int:
    for name, value in table.items():
        if name == key:
            return value
    raise KeyError(key)
