"""A file of separated values in whatever dialect becomes one in a plain dialect, without the records that do not fit.

What does not fit is told by its lines and never guessed at: one comma too many must not cost another row.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

DELIMITERS = (",", ";", "\t", "|")
# In no text: the whole line is one value.
NONE = "\x1f"
# The delimiter and the number of columns are told by so many records.
SAMPLE = 1000
MAX_VALUE = 2_000_000
MAX_TOLD = 3
BLANK: tuple[list[str], ...] = ([], [""])


@dataclass(frozen=True)
class Plain:
    """What became of a file: how many records it has now, and what was left out of it and why."""

    kept: int
    left_out: str


def plain(source: Path, target: Path, delimiter: str | None) -> Plain:
    """Write the records of `source` (UTF-8) that fit to `target`, separated by commas."""
    delimiter = delimiter or _delimiter(source)
    width = _width(_widths(source, delimiter))
    kept, odd, last = 0, 0, 0
    told: list[str] = []
    with target.open("w", encoding="utf-8", newline="") as out:
        write = csv.writer(out, lineterminator="\n").writerow
        for line, values, problem in _records(source, delimiter):
            first, last = last + 1, line
            if len(values) == width:
                write(values)
                kept += 1
            elif problem or values not in BLANK:
                odd += 1
                if odd <= MAX_TOLD:
                    lines = f"line {first}" if first == last else f"lines {first}-{last}"
                    told.append(f"{lines}: {problem}" if problem else f"{lines} has {len(values)} fields, not {width}")
    more = [f"and {odd - MAX_TOLD} more"] if odd > MAX_TOLD else []
    return Plain(kept, f"{odd} of {kept + odd} records left out: {'; '.join(told + more)}" if odd else "")


def _records(source: Path, delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """The last line and the values of each record, or why they cannot be told apart. A value may have several lines."""
    csv.field_size_limit(MAX_VALUE)
    with source.open(encoding="utf-8", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True)
        while True:
            try:
                for values in reader:
                    yield reader.line_num, values, ""
            except csv.Error as error:
                why = "a quotation mark is not closed" if "end of data" in str(error) else str(error)
                yield reader.line_num, [], why
            else:
                return


def _widths(source: Path, delimiter: str) -> list[int]:
    """How many values each of the first records has."""
    return [len(values) for _, values, _ in islice(_records(source, delimiter), SAMPLE) if values]


def _delimiter(source: Path) -> str:
    """The one that splits the most lines alike, if it splits the first line or more than half of them; else none."""
    best, most = NONE, 0
    for delimiter in DELIMITERS:
        widths = _widths(source, delimiter)
        alike = max((count for width, count in Counter(widths).items() if width > 1), default=0)
        if alike > most and (widths[0] > 1 or alike * 2 > len(widths)):
            best, most = delimiter, alike
    return best


def _width(widths: list[int]) -> int:
    """How many columns there are: as many as names in the first line, unless no other line has so many."""
    counts = Counter(widths)
    if widths and widths[0] > 1 and counts[widths[0]] > 1:
        return widths[0]
    return counts.most_common(1)[0][0] if counts else 0
