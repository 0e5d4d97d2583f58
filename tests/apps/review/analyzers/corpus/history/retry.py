"""Retries."""


def delay(attempt: int) -> float:
    return 2.0 ** attempt * 1000


def attempts() -> int:
    return 3
