"""HTML becomes the text a person would read, each piece with its line in the source.

The scanner takes linear time for every page; the standard library's parser does not.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

# Elements without readable text.
SKIPPED = frozenset(
    (
        *("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas"),
        *("select", "textarea", "title"),
    )
)
BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "dd", "details", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main"),
        *("nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    )
)
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40})")
TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,500})", re.IGNORECASE)
ENDS = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in SKIPPED}
# How far after a `>` the end of a quoted attribute is searched for.
MAX_QUOTED = 2000


class Piece(NamedTuple):
    """Some text as in the source, or the beginning of a block (`mark` is the text it begins with)."""

    line: int
    text: str = ""
    mark: str | None = None


def title(page: str) -> str:
    """The page's title; empty without one."""
    found = TITLE.search(page)
    return " ".join(html.unescape(found[1]).split()) if found else ""


def text(page: str) -> str:
    """The page as lines of text, one for each block."""
    blocks: list[list[str]] = [[]]
    for piece in _pieces(page):
        if piece.mark is None:
            blocks[-1].append(html.unescape(piece.text))
        else:
            blocks.append([piece.mark])
    lines = (" ".join("".join(block).split()) for block in blocks)
    return "\n".join(line for line in lines if line.strip("#- "))


def by_line(page: str) -> list[str]:
    """The page's text with as many lines as the source, so that references to lines stay correct."""
    lines: list[list[str]] = [[] for _ in range(page.count("\n") + 1)]
    for piece in _pieces(page):
        if piece.mark is not None:
            lines[piece.line] += [" ", piece.mark]
        for at, part in enumerate(piece.text.split("\n")):
            lines[piece.line + at].append(html.unescape(part))
    return [" ".join("".join(line).split()) for line in lines]


def _pieces(page: str) -> Iterator[Piece]:
    at, line = 0, 0
    while at < len(page):
        start = page.find("<", at)
        if start < 0:
            start = len(page)
        if start > at:
            source = page[at:start]
            yield Piece(line, source)
            line += source.count("\n")
        if start >= len(page):
            return
        end, tag = _markup(page, start)
        if end == start:
            yield Piece(line, "<")
            end = start + 1
        elif tag in BLOCKS:
            yield Piece(line, mark=HEADINGS.get(tag, "- " if tag == "li" else ""))
        line += page.count("\n", start, end)
        at = end


def _markup(page: str, start: int) -> tuple[int, str]:
    """Where the markup at `start` ends, and the name of its tag; without markup, `start` itself."""
    if page.startswith("<!--", start):
        return _after(page, "-->", start + 4), ""
    if page.startswith(("<!", "<?"), start):
        return _after(page, ">", start + 2), ""
    found = TAG.match(page, start)
    if found is None:
        return start, ""
    end = _tag_end(page, found.end())
    name = found[2].lower()
    if not found[1] and name in ENDS and page[end - 2 : end] != "/>":
        closing = ENDS[name].search(page, end)
        return (_after(page, ">", closing.start()) if closing else len(page)), name
    return end, name


def _tag_end(page: str, at: int) -> int:
    end = page.find(">", at)
    if end < 0:
        return len(page)
    inside = page[at:end]
    for quote in "\"'":
        # An odd number of quotes: this `>` is inside of an attribute.
        if inside.count(quote) % 2 and (close := page.find(quote, end, end + MAX_QUOTED)) >= 0:
            return _after(page, ">", close)
    return end + 1


def _after(page: str, end: str, at: int) -> int:
    found = page.find(end, at)
    return len(page) if found < 0 else found + len(end)
