"""Documents become passages with line references, and passages an index that ranks them for a query (BM25)."""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# The usual weights: how soon repeated words stop counting, how much a long passage loses.
K1 = 1.2
B = 0.75
# A passage ends with a blank line after so many characters, or without one after so many.
ENOUGH = 600
MOST = 1200
MOST_LINES = 40
MAX_WORD = 40
# Scripts written without blanks: each character counts as a word.
CLOSE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0eff"
WORD = re.compile(rf"[{CLOSE}]|[^\W_{CLOSE}]+")
# A part of a long line ends after a blank, else between words, else where it must.
PART = re.compile(rf".{{1,{MOST}}}(?:(?<=\s)|$)|.{{1,{MOST}}}\b|.{{1,{MOST}}}", re.DOTALL)


@dataclass(frozen=True)
class Passage:
    """Lines `first` to `last` of a document."""

    name: str
    first: int
    last: int
    text: str


class PassageIndex:
    """The passages of some documents and where each word is in them. Written only while it is made."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages: list[Passage] = []
        # Word -> numbers of passages, one for each time it is there: compact, and in order.
        self._found: dict[str, array[int]] = {}
        self._lengths = array("L")
        for number, passage in enumerate(passages):
            self.passages.append(passage)
            count = 0
            for word in words(passage.text):
                count += 1
                known = self._found.get(word)
                if known is None:
                    known = self._found[word] = array("L")
                known.append(number)
            self._lengths.append(count)
        self._mean = sum(self._lengths) / max(1, len(self._lengths)) or 1.0

    def rank(self, query: str, most: int) -> list[Passage]:
        """The best passages, best first; equally good ones in the order of the documents."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(query)):
            for number, score in self._scores(word):
                scores[number] = scores.get(number, 0.0) + score
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:most]
        return [self.passages[number] for number, _ in best]

    def _scores(self, word: str) -> Iterator[tuple[int, float]]:
        times: dict[int, int] = {}
        for number in self._found.get(word, ()):
            times[number] = times.get(number, 0) + 1
        rarity = math.log(1 + (len(self.passages) - len(times) + 0.5) / (len(times) + 0.5))
        for number, count in times.items():
            length = 1 - B + B * self._lengths[number] / self._mean
            yield number, rarity * count * (K1 + 1) / (count + K1 * length)


def words(text: str) -> Iterator[str]:
    """The words of a text, as they are compared: without case, accents and the s of a plural."""
    for word in WORD.findall(_plain(text)):
        yield word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word[:MAX_WORD]


def passages(name: str, lines: Sequence[str]) -> Iterator[Passage]:
    """A document in passages, at blank lines where there are some; one enormous line becomes several of one number."""
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


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    split = unicodedata.normalize("NFKD", text.casefold())
    # Put together again: NFKD takes Hangul and Kana apart, which count as whole characters.
    bare = "".join(c for c in split if not unicodedata.combining(c) or c in "\u3099\u309a")
    return unicodedata.normalize("NFC", bare)
