"""Documents become passages with line references, and passages an index that ranks them for a query."""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chargehand.errors import ToolError

TOKENS = "unicode61 remove_diacritics 2"
# A passage ends at a blank line after the first number of characters, or without one after the second.
ENOUGH = 600
MOST = 1200
MOST_LINES = 40
# Scripts written without blanks: each character counts as a word.
CLOSE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0eff"
WORD = re.compile(rf"[{CLOSE}]|[^\W_{CLOSE}]+")
PLURAL = re.compile(r"(?<=..[^sS])[sS]$")
# A part of a long line ends after a blank, else between words, else at the maximum length.
PART = re.compile(rf".{{1,{MOST}}}(?:(?<=\s)|$)|.{{1,{MOST}}}\b|.{{1,{MOST}}}", re.DOTALL)


@dataclass(frozen=True)
class Passage:
    """Lines `first` to `last` of a document."""

    name: str
    first: int
    last: int
    text: str


class PassageIndex:
    """The passages of some documents, and a full-text table of SQLite that ranks them. Written only at construction."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages = list(passages)
        # Workers search from several threads, one at a time.
        self._lock = threading.Lock()
        self._table = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._table.close)
        try:
            self._table.execute(f"CREATE VIRTUAL TABLE passage USING fts5 (words, content='', tokenize='{TOKENS}')")
        except sqlite3.OperationalError as error:
            raise ToolError(
                f"search_documents needs SQLite with FTS5, which the sqlite3 of this Python is without ({error}). "
                "Use search_files, or a Python whose SQLite has FTS5.",
                "unavailable",
            ) from error
        rows = ((number, " ".join(words(passage.text))) for number, passage in enumerate(self.passages))
        self._table.executemany("INSERT INTO passage (rowid, words) VALUES (?, ?)", rows)

    def rank(self, query: str, most: int) -> list[Passage]:
        """The best passages, best first; equally good ones in the order of the documents."""
        # Each word is quoted, and no word contains quotes: nothing in a query is syntax.
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(query)))
        if not wanted:
            return []
        ranked = "SELECT rowid FROM passage WHERE passage MATCH ? ORDER BY bm25(passage), rowid LIMIT ?"
        with self._lock:
            found: list[tuple[int]] = self._table.execute(ranked, (wanted, most)).fetchall()
        return [self.passages[number] for (number,) in found]


def words(text: str) -> list[str]:
    """The words of a text without the s of a plural. SQLite removes case and accents."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return [PLURAL.sub("", word) for word in WORD.findall(plain)]


def passages(name: str, lines: Sequence[str]) -> Iterator[Passage]:
    """A document in passages, split at blank lines if possible; a very long line becomes several passages."""
    first, size = 0, 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        blank = not line.strip()
        if size > MOST or (size > ENOUGH and blank) or at - first + 1 >= MOST_LINES:
            yield from _cut(name, first, lines[first : at + 1])
            first, size = at + 1, 0
    yield from _cut(name, first, lines[first:])


def _cut(name: str, first: int, lines: Sequence[str]) -> Iterator[Passage]:
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None:
        return
    end = next(at for at in range(len(lines), 0, -1) if lines[at - 1].strip())
    text = "\n".join(lines[start:end])
    if len(text) <= 2 * MOST:
        yield Passage(name, first + start + 1, first + end, text)
        return
    for at in range(start, end):
        for part in PART.findall(lines[at]):
            if part.strip():
                yield Passage(name, first + at + 1, first + at + 1, part)
