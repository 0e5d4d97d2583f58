"""Selected findings -> text for a terminal: grouped by file, with the line of code and the severity as a word."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from chargehand.apps.review.analyzers.fix_patch import changed_text
from chargehand.apps.review.choices import SEVERITIES
from chargehand.apps.review.selection import Judged, Selection
from chargehand.apps.review.source_lines import SourceLines
from chargehand.text.escaping import show_controls
from chargehand.trace.number_text import several
from chargehand.values.outcome import Severity

Paint = Callable[[str, str], str]
# For a line of code: the most characters shown, its indentation, the most characters marked.
_LONGEST, _DEEPEST, _MARKED = 160, 24, 40
# The column of messages, and the margin of the lines below them.
_MESSAGE, _MARGIN = 19, " " * 9
_NARROWEST = 60


def text(
    selection: Selection,
    source: SourceLines,
    headline: str,
    missing: Mapping[str, Sequence[str]] = MappingProxyType({}),
    *,
    all: bool,
    paint: Paint,
    width: int | None,
) -> str:
    """`missing`: title -> sentences about what was not checked.

    `paint(words, style)` colours words, or leaves them. Styles are the severities, `path` and `dim`.

    No line is longer than `width`, except for single long words such as file names; None sets no limit.
    """
    room = _Room(width)
    parts = [*_by_file(selection.shown, source, paint, room)]
    if all and selection.left_out:
        parts.append(paint("Left out", "path"))
        parts += _by_file(selection.left_out, source, paint, room)
    for title, sentences in missing.items():
        if sentences:
            lines = (f"  {line}" for words in sentences for line in room.wrap_words(_flat(words), 2))
            parts.append("\n".join((paint(title, "path"), *lines)))
    parts.append("\n".join(room.wrap_words(headline, 0)))
    return "\n\n".join(parts) + "\n"


def headline(selection: Selection, files: int, gaps: int = 0, unanalysed: int = 0, *, hint: bool) -> str:
    """How many findings there are and of what severity, and what was left out or could not be checked.

    `hint`: the option that lists what is left out is named.
    """
    found = len(selection.shown)
    words = several(found, "finding") if found else "No findings"
    counts = Counter(each.finding.severity for each in selection.shown)
    by_severity = ", ".join(_count_severity(counts[severity], severity) for severity in SEVERITIES if counts[severity])
    where = f"{several(files, 'file')}{f' ({unanalysed:,} not analysed)' if unanalysed else ''}"
    first = f"{words} in {where}{f': {by_severity}' if by_severity else ''}."
    missing = f" Not all was reviewed: {several(gaps, 'gap')}." if gaps else ""
    return f"{first}{missing}{f' {left_out(selection, hint=hint)}' if selection.left_out else ''}"


def _count_severity(number: int, severity: Severity) -> str:
    return several(number, severity) if severity == "warning" else f"{number:,} {severity}"


def left_out(selection: Selection, *, hint: bool) -> str:
    """How many findings are not shown, by reason."""
    reasons = Counter((each.why or "").partition(" is below")[0].rstrip("0123456789 ") for each in selection.left_out)
    words = {"confidence": "of low confidence"}
    counted = ", ".join(f"{count:,} {words.get(reason, reason)}" for reason, count in reasons.most_common())
    shows = f"; --all shows {'it' if len(selection.left_out) == 1 else 'them'}" if hint else ""
    return f"Left out: {counted}{shows}."


class _Room:
    """How much fits on a line."""

    def __init__(self, width: int | None) -> None:
        self._width = None if width is None else max(width, _NARROWEST)

    def room_left(self, taken: int, most: int) -> int:
        return most if self._width is None else min(most, self._width - taken)

    def wrap_words(self, words: str, taken: int) -> list[str]:
        if self._width is None:
            return [words]
        # Words are not split: half of a secret would not be recognized.
        return textwrap.wrap(words, self._width - taken, break_long_words=False, break_on_hyphens=False) or [""]

    def beside(self, lines: list[str], words: str, taken: int) -> bool:
        """Whether the words fit at the end of the last line."""
        return self._width is None or taken + len(lines[-1]) + 2 + len(words) <= self._width


def _by_file(judged: Iterable[Judged], source: SourceLines, paint: Paint, room: _Room) -> Iterable[str]:
    for path, group in itertools.groupby(judged, key=lambda each: each.finding.path):
        lines = [paint(_flat(path or "The change as a whole"), "path")]
        for each in group:
            lines += _entry(each, source, paint, room)
        yield "\n".join(lines)


def _entry(judged: Judged, source: SourceLines, paint: Paint, room: _Room) -> Iterable[str]:
    finding = judged.finding
    place = f"{finding.line}" if finding.line is not None else "-"
    severity = paint(f"{finding.severity:<8}", finding.severity)
    tail = _flat(f"({finding.category or 'other'}, confidence {finding.confidence}{judged.reasons})")
    message = room.wrap_words(_flat(finding.message), _MESSAGE)
    if room.beside(message, tail, _MESSAGE):
        message[-1] += f"  {paint(tail, 'dim')}"
    else:
        message += [paint(line, "dim") for line in room.wrap_words(tail, _MESSAGE)]
    yield f"  {place:>5}  {severity}  {message[0]}"
    yield from (f"{' ' * _MESSAGE}{line}" for line in message[1:])
    code = _flat(source.line_of(finding).expandtabs(4))
    if code.strip():
        indent = min(len(code) - len(code.lstrip()), _DEEPEST)
        bar = f"{_MARGIN}{paint('|', 'dim')} {' ' * indent}"
        shown = _cut(code.strip(), room.room_left(len(_MARGIN) + 2 + indent, _LONGEST))
        yield f"{bar}{shown}"
        before, marked = _mark_place(judged, source, len(shown))
        yield f"{bar}{' ' * before}{paint('^' * marked, finding.severity)}"
    if finding.suggestion:
        first, *more = room.wrap_words(_flat(finding.suggestion), len(_MARGIN) + 2)
        yield f"{_MARGIN}{paint('=', 'dim')} {first}"
        yield from (f"{_MARGIN}  {line}" for line in more)
    for line in changed_text(finding.patch) if finding.patch else ():
        shown = _cut(_flat(line.expandtabs(4)), room.room_left(len(_MARGIN), _LONGEST))
        yield f"{_MARGIN}{paint(shown, 'dim')}"
    if judged.why is not None:
        yield f"{_MARGIN}{paint(f'left out: {judged.why}', 'dim')}"


def _mark_place(judged: Judged, source: SourceLines, length: int) -> tuple[int, int]:
    """The start and length of the mark in the shown code; the whole code if the columns are not known."""
    finding = judged.finding
    line = source.line(finding.path, finding.line)
    # Columns are not valid if text was hidden or is shown in other characters.
    is_same = _flat(source.line_of(finding).expandtabs(4)) == line.expandtabs(4)
    if finding.column is None or not is_same or finding.column > len(line):
        return 0, min(length, _MARKED)
    ends_here = finding.end_line in (None, finding.line) and (finding.end_column or 0) > finding.column
    last = (finding.end_column or 1) - 1 if ends_here else len(line.rstrip())
    margin = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    start, end = (len(line[:place].expandtabs(4)) - margin for place in (finding.column - 1, last))
    start = max(start, 0)
    if start >= length:
        return 0, min(length, _MARKED)
    return start, max(1, min(end, length) - start)


def _cut(code: str, most: int) -> str:
    return code if len(code) <= most else f"{code[: most - 1]}…"


def _flat(words: str) -> str:
    """The text on one line, without control characters for a terminal."""
    return show_controls(words.replace("\n", "⏎").replace("\t", "\\t"))


def plain(words: str, _style: str) -> str:
    return words


STYLES: dict[str, dict[str, Any]] = {
    "critical": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow"},
    "info": {"fg": "blue"},
    "path": {"bold": True},
    "dim": {"dim": True},
}
