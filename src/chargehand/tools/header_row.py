"""The first records of a table -> whether the first of them is a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["nothing", "word", "number", "year", "date"]

NOTHING = frozenset({"", "-", "na", "n/a", "nan", "none", "null"})
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
YEAR = re.compile(r"(19|20)\d\d", re.ASCII)
NUMBER = re.compile(r"[-+]?[$€£]?\s?[-+]?[.,]?\d[\d.,' ]*([eE][-+]?\d+)?\s?[%€$£]?", re.ASCII)
# This many consecutive numbers, such as hours or months, are a header and not data by chance.
COUNTED = 3


def is_header(records: Sequence[list[str]]) -> bool:
    """The first record is the header unless it clearly is data.

    It is data when one of its values is a number, year or date like most values below it. Even then it is the header
    when it has a word above numbers, or is one word followed by consecutive numbers.
    """
    if not records:
        return False
    data = any(_alike(kind, below) for kind, below in _columns(records))
    return not data or above_numbers(records) or _counts_up(records[0])


def above_numbers(records: Sequence[list[str]]) -> bool:
    """Whether the first record has a word above numbers, years or dates, so that it surely is a header."""
    return any(kind == "word" and below in ("number", "year", "date") for kind, below in _columns(records))


def _columns(records: Sequence[list[str]]) -> list[tuple[Kind, Kind]]:
    """For each column, the kind of the first value and the kind of most values below it."""
    first, *others = records
    columns = list(zip(*others, strict=True)) or [()] * len(first)
    return [(_kind(value), _most(column)) for value, column in zip(first, columns, strict=True)]


def _alike(kind: Kind, below: Kind) -> bool:
    match kind:
        case "number":
            return below in ("number", "year", "nothing")
        case "date":
            return below in ("date", "nothing")
        case "year":
            return below == "year"
        case "word" | "nothing":
            return False


def _most(values: Sequence[str]) -> Kind:
    """The kind of more than half of the values that are not empty; a year is a number too."""
    kinds = Counter(map(_kind, values))
    half = (kinds.total() - kinds["nothing"]) / 2
    if kinds["year"] > half:
        return "year"
    if kinds["year"] + kinds["number"] > half:
        return "number"
    if kinds["date"] > half:
        return "date"
    return "word" if half else "nothing"


def _kind(value: str) -> Kind:
    value = value.strip()
    if value.lower() in NOTHING:
        return "nothing"
    if DATE.fullmatch(value):
        return "date"
    if YEAR.fullmatch(value):
        return "year"
    return "number" if NUMBER.fullmatch(value) else "word"


def _counts_up(values: list[str]) -> bool:
    word, *names = (value.strip() for value in values)
    if len(names) < COUNTED or _kind(word) not in ("word", "nothing"):
        return False
    return names[0].isdecimal() and names == [str(int(names[0]) + at) for at in range(len(names))]
