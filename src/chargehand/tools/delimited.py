"""A file of separated values in whatever dialect becomes one in a plain dialect, without the records that do not fit.

What does not fit is told by its lines and never guessed at: one comma too many must not cost another row.
DuckDB's own sniffer was measured against it: docs/adr/0007.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice
from pathlib import Path
from typing import NamedTuple, TextIO

from chargehand.tools import header_row

DELIMITERS = (",", ";", "\t", "|")
# In no text: the whole line is one value.
NONE = "\x1f"
# Excel's own first line, which names the delimiter.
SEP = re.compile(r'"?sep=([^"\\\w\r\n ])"?\s*', re.IGNORECASE)
# The delimiter, the number of columns and their names are told by so many records, by the start of each value.
SAMPLE = 1000
START = 50
MAX_VALUE = 2_000_000
# So far is looked for the end of a value, until so many lines were read in vain; from then on, in its own line only.
# Without a bound, each of many stray quotation marks would take the whole file.
MAX_LINES = 1000
MAX_IN_VAIN = 200_000
MAX_TOLD = 3
BLANK: tuple[list[str], ...] = ([], [""])
NOT_CLOSED = "a quotation mark is not closed"
NO_HEADER = "no header found: columns are column0…"


@dataclass(frozen=True)
class Plain:
    """What became of a file: how many records it has now, whether the first is a header, and what is to be told."""

    kept: int
    header: bool
    note: str


class _Record(NamedTuple):
    """The values on some lines, or why they cannot be told apart."""

    first: int
    last: int
    values: list[str]
    problem: str = ""


class _Lines:
    """The lines of a file; those that were taken since the last record can be given back."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._again: list[str] = []
        self._taken: list[str] = []
        self._before = 0
        self._in_vain = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self._taken) == (MAX_LINES if self._in_vain < MAX_IN_VAIN else 1):
            raise csv.Error(NOT_CLOSED)
        line = self._again.pop() if self._again else next(self._text)
        self._taken.append(line)
        return line

    @property
    def taken(self) -> int:
        return len(self._taken)

    def give_back(self) -> None:
        """All that was taken is read again."""
        self._again += reversed(self._taken)
        self._taken.clear()

    def record(self, values: list[str], problem: str = "") -> _Record:
        """What was taken is one record."""
        first = self._before + 1
        self._before += len(self._taken)
        self._taken.clear()
        return _Record(first, self._before, values, problem)

    def give_up_record(self, problem: str) -> _Record:
        """Of what was taken, the first line is a record, of one value if there is no problem; others are read again."""
        self._in_vain += len(self._taken)
        self.give_back()
        line = next(self).rstrip("\r\n")
        return self.record([] if problem else [line], problem)


def plain(source: Path, target: Path, delimiter: str | None) -> Plain:
    """Write the records of `source` (UTF-8) that fit to `target`, separated by commas."""
    delimiter = _named_delimiter(source) or delimiter or _delimiter(source)
    sample = _sample(source, delimiter)
    width = _width(sample)
    header = header_row.is_header(_fitting(sample))
    kept, odd = 0, 0
    told: list[str] = []
    with target.open("w", encoding="utf-8", newline="") as out:
        # Both characters, so that the writer puts a value with either of them in quotation marks.
        write = csv.writer(out, lineterminator="\r\n").writerow
        for record in _below_blanks(source, delimiter):
            if len(record.values) == width:
                write(record.values)
                kept += 1
            elif record.problem or record.values not in BLANK:
                odd += 1
                if odd <= MAX_TOLD:
                    told.append(_describe_record(record, width))
    more = [f"and {odd - MAX_TOLD} more"] if odd > MAX_TOLD else []
    notes = [f"{odd} of {kept + odd} records left out: {'; '.join(told + more)}"] if odd else []
    if kept and not header:
        notes.append(NO_HEADER)
    return Plain(kept, header, "; ".join(notes))


def _describe_record(record: _Record, width: int) -> str:
    lines = f"line {record.first}" if record.first == record.last else f"lines {record.first}-{record.last}"
    return f"{lines}: {record.problem}" if record.problem else f"{lines} has {len(record.values)} fields, not {width}"


def _named_delimiter(source: Path) -> str | None:
    with source.open(encoding="utf-8", newline="") as text:
        found = SEP.fullmatch(text.readline(START))
    return found[1] if found else None


def _records(source: Path, delimiter: str) -> Iterator[_Record]:
    """The records of a file. A value in quotation marks may have several lines; one without an end costs its line."""
    csv.field_size_limit(MAX_VALUE)
    with source.open(encoding="utf-8", newline="") as text:
        lines = _Lines(text)
        strict, escaped = (
            csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True, escapechar=escape)
            for escape in (None, "\\")
        )
        if SEP.fullmatch(next(lines, "")):
            lines.record([])
        lines.give_back()
        while True:
            try:
                for values in strict:
                    yield lines.record(values)
            except csv.Error as error:
                problem = NOT_CLOSED if lines.taken > 1 or "end of data" in str(error) else str(error)
                # Where nothing separates values, quotation marks are a part of the one there is.
                yield _second_try(lines, escaped, "" if delimiter == NONE else problem)
            else:
                return


def _below_blanks(source: Path, delimiter: str) -> Iterator[_Record]:
    """The records from the first that is not empty; further down, an empty one may be a row of a single column."""
    return dropwhile(lambda record: record.values in BLANK and not record.problem, _records(source, delimiter))


def _second_try(lines: _Lines, escaped: Iterator[list[str]], problem: str) -> _Record:
    """The record that could not be read, if backslashes escape its quotation marks; else its first line is given up."""
    lines.give_back()
    try:
        return lines.record(next(escaped))
    except csv.Error:
        return lines.give_up_record(problem)


def _sample(source: Path, delimiter: str) -> list[list[str]]:
    """The first records, of each value only the start."""
    return [[value[:START] for value in record.values] for record in islice(_below_blanks(source, delimiter), SAMPLE)]


def _delimiter(source: Path) -> str:
    """The one that splits the most records alike, and the first line too; else none."""
    best, most = NONE, (0, 0)
    for delimiter in DELIMITERS:
        sample = _sample(source, delimiter)
        fitting = _fitting(sample)
        found = len(fitting), _width(sample)
        if found > most and found[1] > 1 and (len(_top(sample)) > 1 or header_row.above_numbers(fitting)):
            best, most = delimiter, found
    return best


def _top(sample: Sequence[list[str]]) -> list[str]:
    """The first line, or the next one where an empty line parts it from the first, which is a title then."""
    first, *others = (at for at, values in enumerate(sample) if values not in BLANK)
    return sample[others[0]] if others and others[0] > first + 1 else sample[first]


def _fitting(sample: Sequence[list[str]]) -> list[list[str]]:
    width = _width(sample)
    return [values for values in sample if len(values) == width]


def _width(sample: Sequence[list[str]]) -> int:
    """How many values most records have; of two that are as frequent, that of the earlier record."""
    counts = Counter(len(values) for values in sample if values not in BLANK)
    return counts.most_common(1)[0][0] if counts else 1
