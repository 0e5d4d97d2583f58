"""Receipts as lines of text."""

import random

SEPARATOR = ";"


def encode_row(fields: list[str]) -> str:
    """One line for the fields of a receipt's row."""
    return "".join(field + SEPARATOR for field in fields)


def decode_row(line: str) -> list[str]:
    """The fields of a line that `encode_row` made."""
    return line.split(SEPARATOR)[:-1]


def stamp(prefix: str) -> str:
    """A number for a receipt."""
    return f"{prefix}-{random.randrange(10**12)}"
