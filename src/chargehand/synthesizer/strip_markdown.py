"""Markdown -> its words, so the statements of workers are compared and shown without their layout.

Removed are the marks of lists, headings, quotations and check boxes, fences, rules, the pipes of tables, the stars of
emphasis, the backticks of code and what surrounds the text of a link. Underscores stay: `__init__` is a name. Code
stays unchanged. Linear in the length of the text. Why not by markdown-it: docs/adr/0017.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

_MAY_BE_MARKED: Final = re.compile(r"[*`|#>\[<~]|^\s*[-+]\s|-{3}", re.MULTILINE)
_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+.-]*")
_RULE: Final = frozenset("|:- \t")
# A `>` before a figure means "more than", and a `#` before a number names an issue.
_BEFORE_LINE: Final = re.compile(r"(?:\s*(?:>(?!\s*\d)|[-*+](?=\s)|#{1,6}(?=\s)|\[[ xX]\](?=\s)))+\s*")
_AFTER_HEADING: Final = re.compile(r"\s+#+\s*\Z")
_BACKTICKS: Final = re.compile(r"`+")
_STARS: Final = re.compile(r"\*+")
_BRACKET: Final = re.compile(r"[\[\]]")
_TARGET: Final = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:[ \t]+\"[^\"\n]{0,300}\")?\)")
_ADDRESS: Final = re.compile(r"<(?:https?|mailto):[^<>\s]{1,2000}>")

_Span = tuple[int, int]


def words_of(text: str) -> str:
    """The text without its Markdown, line by line."""
    if _MAY_BE_MARKED.search(text) is None:
        return text
    return "\n".join(words for line in text.split("\n") if (words := _words_of_line(line)) is not None)


def one_line(text: str) -> str:
    """The words on one line. A line of marks alone stays unchanged."""
    return " ".join(words_of(text).split()) or text


def _words_of_line(line: str) -> str | None:
    """The words of a line; None where the line is only markup, such as a fence."""
    bare = line.strip()
    if _FENCE.fullmatch(bare) or (len(bare) > 2 and _RULE.issuperset(bare) and "-" in bare):
        return None
    if before := _BEFORE_LINE.match(line):
        line = line[before.end() :]
        if "#" in before[0]:
            line = _AFTER_HEADING.sub("", line)
    if line.lstrip().startswith("|"):
        line = "; ".join(cell for each in line.split("|") if (cell := each.strip()))
    return _without(line, [*_marks_in(line)])


def _without(line: str, spans: list[_Span]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        parts.append(line[at:start])
        at = max(at, end)
    return "".join([*parts, line[at:]])


def _marks_in(line: str) -> Iterator[_Span]:
    """Where the marks within a line are."""
    masked = line
    if "`" in line:
        parts: list[str] = []
        at = 0
        for start, end, marks in _code(line):
            parts += [line[at:start], "x" * (end - start)]
            at = end
            yield from ((start, start + marks), (end - marks, end))
        masked = "".join([*parts, line[at:]])
    if "[" in masked:
        yield from _links(masked)
    if "<" in masked:
        for address in _ADDRESS.finditer(masked):
            yield address.start(), address.start() + 1
            yield address.end() - 1, address.end()
    if "*" in masked:
        yield from _emphasis(masked)


def _code(line: str) -> Iterator[tuple[int, int, int]]:
    """Start and end of each stretch of code, marks included, and how many marks: as many after it as before."""
    runs = [match.span() for match in _BACKTICKS.finditer(line)]
    of_length: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(runs):
        of_length.setdefault(end - start, []).append(number)
    number = 0
    while number < len(runs):
        start, end = runs[number]
        alike = of_length[end - start]
        later = bisect_right(alike, number)
        if later < len(alike):
            number = alike[later]
            yield start, runs[number][1], end - start
        number += 1


def _links(line: str) -> Iterator[_Span]:
    """What is around the text of a link or an image."""
    opened: list[int] = []
    for bracket in _BRACKET.finditer(line):
        at = bracket.start()
        if bracket[0] == "[":
            opened.append(at)
        elif opened:
            start = opened.pop()
            target = _TARGET.match(line, at)
            if target is None:
                continue
            if start and line[start - 1] == "!":
                start -= 1
            if start == 0 or not (line[start - 1].isalnum() or line[start - 1] in "_])"):
                yield start, start + (2 if line[start] == "!" else 1)
                yield target.span()


def _emphasis(line: str) -> Iterator[_Span]:
    """Stars in pairs around words, and two or more that were left alone at an end of the line."""
    opened: dict[int, list[_Span]] = {}
    paired: set[int] = set()
    runs = [match.span() for match in _STARS.finditer(line)]
    for start, end in runs:
        before, after = line[start - 1 : start], line[end : end + 1]
        waiting = opened.get(end - start)
        if waiting and _is_text(before) and not _is_word(after):
            first = waiting.pop()
            paired.update((first[0], start))
            yield from (first, (start, end))
            # What was opened in between is never closed.
            for others in opened.values():
                while others and others[-1] > first:
                    others.pop()
        elif _is_text(after) and not _is_word(before) and before not in ("/", "\\"):
            opened.setdefault(end - start, []).append((start, end))
    if not runs:
        return
    start, end = runs[0]
    if start == 0 and end > 1 and start not in paired and _is_word(line[end : end + 1]):
        yield start, end
    start, end = runs[-1]
    if (
        start > 0
        and end == len(line.rstrip())
        and end - start > 1
        and start not in paired
        and _is_text(line[start - 1])
    ):
        yield start, end


def _is_text(character: str) -> bool:
    return bool(character) and not character.isspace()


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
