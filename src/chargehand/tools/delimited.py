"""A file of separated values in any dialect becomes a file in a plain dialect, without the records that do not fit.

Records that do not fit are reported by line number and never guessed: one extra comma must not damage another row.
docs/adr/0007 compares it with DuckDB's own sniffer.
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
# A character that occurs in no text: the whole line is one value.
NONE = "\x1f"
# Excel's own first line, which names the delimiter.
SEP = re.compile(r'"?sep=([^"\\\w\r\n ])"?\s*', re.IGNORECASE)
# Delimiter, number of columns and header are determined from this many records, and from the start of each value.
SAMPLE = 1000
START = 50
MAX_VALUE = 2_000_000
# The end of a quoted value is searched for in this many lines. After this many lines were searched without success, it
# is searched for only in its own line. Without a limit each of many stray quotation marks would search the whole file.
MAX_LINES = 1000
MAX_UNCLOSED = 200_000
MAX_REPORTED = 3
BLANK: tuple[list[str], ...] = ([], [""])
NOT_CLOSED = "a quotation mark is not closed"
NO_HEADER = "no header found: columns are column0…"


@dataclass(frozen=True)
class Plain:
    """The plain file: how many records it has, whether the first is a header, and what to report to the worker."""

    kept: int
    header: bool
    note: str


class _Record(NamedTuple):
    """The values on some lines, or why they could not be read."""

    first: int
    last: int
    values: list[str]
    problem: str = ""


class _Lines:
    """The lines of a file; the lines taken since the last record can be given back."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._again: list[str] = []
        self._taken: list[str] = []
        self._before = 0
        self._unclosed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self._taken) == (MAX_LINES if self._unclosed < MAX_UNCLOSED else 1):
            raise csv.Error(NOT_CLOSED)
        line = self._again.pop() if self._again else next(self._text)
        self._taken.append(line)
        return line

    @property
    def taken(self) -> int:
        return len(self._taken)

    def give_back(self) -> None:
        """Let all taken lines be read again."""
        self._again += reversed(self._taken)
        self._taken.clear()

    def record(self, values: list[str], problem: str = "") -> _Record:
        """Make one record of the taken lines."""
        first = self._before + 1
        self._before += len(self._taken)
        self._taken.clear()
        return _Record(first, self._before, values, problem)

    def give_up_record(self, problem: str) -> _Record:
        """Make the first taken line one record, with a problem or one value; the other lines are read again."""
        self._unclosed += len(self._taken)
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
    reported: list[str] = []
    with target.open("w", encoding="utf-8", newline="") as out:
        # Both characters, so that the writer puts a value with either of them in quotation marks.
        write = csv.writer(out, lineterminator="\r\n").writerow
        for record in _below_blanks(source, delimiter):
            if len(record.values) == width:
                write(record.values)
                kept += 1
            elif record.problem or record.values not in BLANK:
                odd += 1
                if odd <= MAX_REPORTED:
                    reported.append(_describe_record(record, width))
    more = [f"and {odd - MAX_REPORTED} more"] if odd > MAX_REPORTED else []
    notes = [f"{odd} of {kept + odd} records left out: {'; '.join(reported + more)}"] if odd else []
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
    """The records of a file. A quoted value may span lines; if it is not closed, only its first line is left out."""
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
                # Without a delimiter, quotation marks are part of the only value.
                yield _second_try(lines, escaped, "" if delimiter == NONE else problem)
            else:
                return


def _below_blanks(source: Path, delimiter: str) -> Iterator[_Record]:
    """The records from the first one that is not empty; an empty one further down may be a row of a single column."""
    return dropwhile(lambda record: record.values in BLANK and not record.problem, _records(source, delimiter))


def _second_try(lines: _Lines, escaped: Iterator[list[str]], problem: str) -> _Record:
    """The record with backslashes as escapes of quotation marks; if that also fails, its first line is left out."""
    lines.give_back()
    try:
        return lines.record(next(escaped))
    except csv.Error:
        return lines.give_up_record(problem)


def _sample(source: Path, delimiter: str) -> list[list[str]]:
    """The first records, with only the start of each value."""
    return [[value[:START] for value in record.values] for record in islice(_below_blanks(source, delimiter), SAMPLE)]


def _delimiter(source: Path) -> str:
    """The delimiter that splits the most records, and the first line, into the same number of values; else none."""
    best, most = NONE, (0, 0)
    for delimiter in DELIMITERS:
        sample = _sample(source, delimiter)
        fitting = _fitting(sample)
        found = len(fitting), _width(sample)
        if found > most and found[1] > 1 and (len(_top(sample)) > 1 or header_row.above_numbers(fitting)):
            best, most = delimiter, found
    return best


def _top(sample: Sequence[list[str]]) -> list[str]:
    """The first line. If an empty line follows, the first line is a title, and the next line counts."""
    first, *others = (at for at, values in enumerate(sample) if values not in BLANK)
    return sample[others[0]] if others and others[0] > first + 1 else sample[first]


def _fitting(sample: Sequence[list[str]]) -> list[list[str]]:
    width = _width(sample)
    return [values for values in sample if len(values) == width]


def _width(sample: Sequence[list[str]]) -> int:
    """How many values most records have; of two equally frequent numbers, that of the earlier record."""
    counts = Counter(len(values) for values in sample if values not in BLANK)
    return counts.most_common(1)[0][0] if counts else 1
