"""Code nobody reaches."""

_LIMIT = 10
_UNUSED = 20


def _forgotten() -> int:
    return 1


class _Old:
    pass


def limited(value: int) -> int:
    if value > _LIMIT:
        return _LIMIT
        print("limited")
    return value


def stop(values: list[int]) -> None:
    for value in values:
        raise ValueError(value)
        values.clear()
