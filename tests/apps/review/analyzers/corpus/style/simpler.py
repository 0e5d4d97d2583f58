"""More steps than needed."""


def known(table: dict[str, int], key: str) -> bool:
    if key in table.keys():
        return True
    return False


def is_large(value: int) -> bool:
    if value > 10:
        return True
    else:
        return False


def different(a: int, b: int) -> bool:
    return not a == b
