"""The usage that a provider reports for a call -> a count of tokens, or what is wrong with the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from chargehand.values.message import TokenCount


def fields_of(said: object) -> Mapping[str, Any]:
    """The fields of a usage object. Anything else becomes an invalid number, so that it is not overlooked."""
    if isinstance(said, Mapping):
        return cast("Mapping[str, Any]", said)
    return {} if said is None else {"prompt_tokens": said, "input_tokens": said}


def read_numbers(said: Mapping[str, Any], *names: str) -> tuple[list[int], str]:
    """The numbers under these names, 0 for missing ones; and what is wrong with them, "" if nothing."""
    numbers = [0 if (value := said.get(name)) is None else _whole_number(value) for name in names]
    if None not in numbers:
        return cast("list[int]", numbers), ""
    wrong = [f"{name}: {_short(said[name])}" for name, number in zip(names, numbers, strict=True) if number is None]
    return [], f"{', '.join(wrong)} is not a number of tokens"


def count(input_tokens: int, output_tokens: int, cached_tokens: int, reasoning_tokens: int = 0) -> TokenCount:
    return TokenCount(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        reasoning_tokens=reasoning_tokens,
    )


def _whole_number(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int() if value >= 0:
            return value
        case float() if value >= 0 and value.is_integer():  # nan and infinities are not
            return int(value)
        case _:
            return None


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**20:
        return "an integer of more than 20 digits"
    written = repr(value)
    return written if len(written) <= 40 else f"{written[:40]}..."
