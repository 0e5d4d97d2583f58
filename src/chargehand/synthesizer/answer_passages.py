"""A Markdown answer -> its passages, each with the tasks it rests on. Figures are checked against these tasks.

Blank lines separate paragraphs, which are numbered from 1. Inside a paragraph, each list item, table row and heading is
a passage; the prose between them is a passage too. A passage rests on the tasks it cites; one that cites none rests on
those of its paragraph; a list, table or quotation that cites none, on those of the paragraph before it that ends with a
colon, or of the one after it that does nothing but cite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias

from chargehand.synthesizer.plain_report import paragraphs
from chargehand.text.citation import Citations, without_code
from chargehand.values.lazy_regex import lazy_regex

Kind: TypeAlias = Literal["heading", "item", "row", "quote", "prose"]

_HEADING = lazy_regex(r" {0,3}#{1,6}\s")
_ITEM = lazy_regex(r"\s*(?:[-*+\u2022]|\d{1,9}[.)])\s")
_LISTED: tuple[Kind, ...] = ("item", "row", "quote")
# `Source: [t1]` without its citation.
_SOURCES = lazy_regex(r"[\W_]*(?:sources?|results?|quellen?|from|based on|see|data)?[\W_]*", re.IGNORECASE)
_SHORT = 40
_RULE = lazy_regex(r"[\s|:=-]+")
# `12 %` in backticks is a figure of the text like any other.
_FIGURE_AS_CODE = lazy_regex(r"`([~\u2248$\u20ac\u00a3+\u2212-]?\s?\d[\d.,' ]{0,20}\s?[\w%\u00b0\u20ac$\u00a3]{0,12})`")


@dataclass(frozen=True, slots=True)
class AnswerPassage:
    """A part of paragraph `paragraph`; `text` has neither code nor citations in it."""

    paragraph: int
    kind: Kind
    text: str
    tasks: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    # The tasks cited at each place where it cites some, and the text around them, between the citations next to them.
    clauses: tuple[tuple[tuple[str, ...], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """`tasks` are those cited in it."""

    number: int
    tasks: tuple[str, ...]
    passages: tuple[AnswerPassage, ...]


def read(answer: str, citations: Citations) -> list[Paragraph]:
    """The paragraphs of an answer a model wrote, in order."""
    text = without_code(_FIGURE_AS_CODE.sub(r" \1 ", answer))
    found: list[Paragraph] = []
    lead: tuple[str, ...] = ()
    for number, part in enumerate(paragraphs(text), 1):
        paragraph = _paragraph(number, part, citations, lead)
        if _only_cites(paragraph):
            _attribute(found, paragraph.tasks)
        found.append(paragraph)
        if any(passage.kind in ("prose", "heading") for passage in paragraph.passages):
            lead = paragraph.tasks if part.rstrip(" *_").endswith((":", "\uff1a")) else ()
    return found


def _only_cites(paragraph: Paragraph) -> bool:
    texts = [passage.text.strip() for passage in paragraph.passages]
    return bool(paragraph.tasks) and all(len(text) < _SHORT and _SOURCES.fullmatch(text) for text in texts)


def _attribute(found: list[Paragraph], tasks: tuple[str, ...]) -> None:
    """Give the lists at the end of the passages so far, if they cite nothing, the tasks named under them."""
    for n in range(len(found) - 1, -1, -1):
        passages = found[n].passages
        if any(passage.tasks or passage.kind == "prose" for passage in passages) or not _has_list(passages):
            return
        found[n] = replace(found[n], passages=tuple(replace(passage, tasks=tasks) for passage in passages))


def _has_list(passages: Iterable[AnswerPassage]) -> bool:
    return any(passage.kind in _LISTED for passage in passages)


def _paragraph(number: int, text: str, citations: Citations, lead: tuple[str, ...]) -> Paragraph:
    parts = list(_parts(text))
    tasks = tuple(dict.fromkeys(task for _, part in parts for task in citations.tasks(part)))
    passages: list[AnswerPassage] = []
    for kind, part in parts:
        unknown = tuple(dict.fromkeys(name for cited in citations.find(part) for name in cited.unknown))
        own = citations.tasks(part) or tasks or (lead if kind in _LISTED else ())
        clauses = tuple(_clauses(part, citations))
        passages.append(AnswerPassage(number, kind, citations.blank_out(part), own, unknown, clauses))
    return Paragraph(number, tasks, tuple(passages))


def _clauses(text: str, citations: Citations) -> Iterator[tuple[tuple[str, ...], str]]:
    """Citations side by side, as in `[t1] [t2]`, belong to one clause."""
    places: list[tuple[tuple[str, ...], int, int]] = []
    for cited in citations.find(text):
        if places and not any(map(str.isalnum, text[places[-1][2] : cited.start])):
            tasks, start, _ = places.pop()
            places.append(((*tasks, *cited.tasks), start, cited.end))
        else:
            places.append((cited.tasks, cited.start, cited.end))
    ends = [0, *(end for _, _, end in places)]
    starts = [*(start for _, start, _ in places), len(text)]
    for number, (tasks, start, end) in enumerate(places):
        yield tuple(dict.fromkeys(tasks)), f"{text[ends[number] : start]} {text[end : starts[number + 1]]}"


def _parts(text: str) -> Iterator[tuple[Kind, str]]:
    """The lines that belong together. The first row of a table names its columns: a heading."""
    lines = text.split("\n")
    ruled = {n for n, line in enumerate(lines) if "-" in line and "|" in line and _RULE.fullmatch(line)}
    kinds: list[tuple[Kind, int]] = []
    number = 0
    kind: Kind = "prose"
    for n, line in enumerate(lines):
        kind = _kind(line, kind)
        if n + 1 in ruled:
            kind = "heading"
        # Lines after an item continue it unless they begin something new; lines of prose and of a quotation stay
        # together.
        if kind in ("heading", "row") or _ITEM.match(line) or not kinds or kinds[-1][0] != kind:
            number += 1
        kinds.append((kind, number))
    for (kind, _), group in groupby(range(len(lines)), key=lambda n: kinds[n]):
        part = "\n".join(lines[n] for n in group if n not in ruled).rstrip()
        if part.strip():
            yield kind, part


def _kind(line: str, before: Kind) -> Kind:
    if _HEADING.match(line):
        return "heading"
    if _ITEM.match(line):
        return "item"
    if line.lstrip().startswith("|") or line.count("|") > 1:
        return "row"
    if line.lstrip().startswith(">"):
        return "quote"
    return "item" if before == "item" else "prose"
