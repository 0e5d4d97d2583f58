"""A statement -> what it is compared by: its words by meaning, its figures, its names, and whether it denies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.lexicon import affirmed_word, is_negation, is_stop, mark, question, stem

# A longer text is compared by its beginning, and is never the same as another one that is not equal to the last letter.
MOST_CHARACTERS: Final = 2_000
_SHORT: Final = 400
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_TOKEN: Final = re.compile(r"\$?\w+(?:['’./:+-]\w+|\(\))*")
_SPLIT: Final = re.compile(r"[-’']")
_NAME: Final = re.compile(r"\$\w+|\w*[_./:+]\w.*|.*\(\)|.*[a-zà-ÿ][A-Z].*|[A-Z]{2,}s?|(?=.*[0-9])(?=.*[A-Za-z]).*")
_QUOTED: Final = re.compile(r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”")
_ENDS: Final = frozenset(".!?:\n")
_YEAR: Final = re.compile(r"1[5-9][0-9]{2}|2[01][0-9]{2}")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
# 2024-03-05; 5 March 2024 and 5 March; March 5th, 2024 and March 5; March 2024.
_DATE: Final = re.compile(
    rf"""(?<![\w.-])(?:
      (?P<y1>[12][0-9]{{3}})-(?P<m1>0[1-9]|1[0-2])-(?P<d1>[0-3][0-9])(?![\w-])
    | (?P<d2>[0-3]?[0-9])(?:st|nd|rd|th)?\ (?P<m2>{_MONTH})(?:,?\ (?P<y2>[12][0-9]{{3}})(?![0-9]))?
    | (?P<m3>{_MONTH})\ (?P<d3>[0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9]|[.,:][0-9]|\ ?%)
        (?:,?\ (?P<y3>[12][0-9]{{3}})(?![0-9]))?
    | (?P<m4>{_MONTH}),?\ (?P<y4>[12][0-9]{{3}})(?![0-9])
    )""",
    re.VERBOSE,
)
_DATE_PARTS: Final = (("y1", "y2", "y3", "y4"), ("m1", "m2", "m3", "m4"), ("d1", "d2", "d3"))
# `ms`, `kg` and `%`, as they are written.
_UNIT: Final = re.compile(r"[ -]?([%°€$£]|[A-Za-zµ]{1,3})(?!\w)")
_BEFORE_YEAR: Final = re.compile(
    r"(?i:\b(?:in|since|until|till|by|from|to|of|during|for|before|after|between|and|through|year|fy|early|late|mid|end"
    r"|around|circa)[ -]|[(–,-] ?)\Z"
)
# Longer ones are keys, hashes and encoded data.
_LONGEST_WORD: Final = 64
# What may stand after `is on` and `is up` where they are no prepositions.
_CLOSED: Final = re.compile(
    r"[ \t]*(?:[.,;:!?)\n]|\Z|(?:and|or|but|since|until|again|at|for|during|when|while|because|if|after|before|so)\b)",
    re.IGNORECASE,
)
_FIGURE_NEXT: Final = re.compile(r"[ \t]*[~$€£]?[0-9]")
_SWITCHED: Final = frozenset(map(stem, ("turn", "switch", "power", "go", "went", "come", "came")))
_BE: Final = frozenset({"is", "are", "was", "were", "be", "been", "being"})
_PREPOSITIONS: Final = frozenset({"for", "with", "at", "in", "of", "from", "to", "into", "on"})
_COUNT: Final = "#"
_AMOUNT: Final = "="


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says, as far as code can tell."""

    words: tuple[str, ...]  # in the order of the text, by meaning; a bare number is `#`, another figure `=`
    bag: frozenset[str]  # the words, without figures
    topics: frozenset[str]  # as the bag, with a word and its opposite as one
    answers: tuple[tuple[str, bool], ...]  # the questions that words answer, and how; sorted
    days: frozenset[str]  # dates, and numbers that are years
    numbers: frozenset[tuple[str, str]]  # unit and value of the other figures
    amounts: tuple[tuple[str, str], ...]  # days and numbers: equal if they say the same
    names: frozenset[str]  # words that name one thing: people, places, products, identifiers, what is quoted
    first: str | None  # the word a sentence starts with, which may be a name
    than: frozenset[str]  # what something is compared with, or goes to or comes from
    marks: frozenset[str]  # small words that decide what is said: all, some, only, can, must, should, on, off
    voice: frozenset[str]  # `be`, `by` and other prepositions it has: they turn around who does what to whom
    negated: bool
    tail: str  # of a text too long to compare, what tells it from others


def wording(text: str) -> Wording:
    """The wording of a text; linear in its length up to the limit, and never an error."""
    return _wording_cached(text) if len(text) <= _SHORT else _wording(text)


# The same texts are compared when contradictions are looked for and when they are merged.
@lru_cache(maxsize=8_192)
def _wording_cached(text: str) -> Wording:
    return _wording(text)


def _wording(text: str) -> Wording:
    tail = ""
    if len(text) > MOST_CHARACTERS:
        tail = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        text = text[:MOST_CHARACTERS]
    if "<" in text:
        text = _TAG.sub(" ", text)
    reader = _Reader(_quotes(text))
    days: set[str] = set()
    numbers: list[tuple[str, str]] = []
    at = 0
    for start, end, day, number in _read_figures(text):
        reader.read(text, at, start)
        reader.words.append(_COUNT if number is not None and not number[0] else _AMOUNT)
        reader.start, reader.previous, reader.by = False, "", False
        at = end
        if number is not None:
            numbers.append(number)
        else:
            days.add(day)
    reader.read(text, at, len(text))
    bag = frozenset(reader.words) - {_COUNT, _AMOUNT}
    answers = tuple(sorted({answer for word in bag if (answer := question(word))}))
    topics = frozenset(answer[0] if (answer := question(word)) else word for word in bag)
    return Wording(
        words=tuple(reader.words),
        bag=bag,
        topics=topics,
        answers=answers,
        days=frozenset(days),
        numbers=frozenset(numbers),
        # Within one unit the order counts, since `3 of 5` is not `5 of 3`. Days have no order.
        amounts=(*(("day", day) for day in sorted(days)), *sorted(numbers, key=lambda number: number[0])),
        names=frozenset(reader.names()),
        first=reader.first,
        than=frozenset(reader.than),
        marks=frozenset(reader.marks),
        voice=frozenset(reader.voice),
        negated=reader.negated,
        tail=tail,
    )


def _read_figures(text: str) -> Iterator[tuple[int, int, str, tuple[str, str] | None]]:
    """The place of each figure and either the day it is, or the unit and value of the number."""
    dates = [(match.start(), match.end(), _iso(match)) for match in _DATE.finditer(text)]
    at = 0
    for figure in figures(text):
        while at < len(dates) and dates[at][0] <= figure.start:
            yield *dates[at], None
            at += 1
        if at and figure.start < dates[at - 1][1]:
            continue
        if _is_year(text, figure):
            yield figure.start, figure.end, figure.value, None
            continue
        unit = _UNIT.match(text, figure.end)
        name = unit[1] if unit and not is_stop(unit[1].lower()) else ""
        yield figure.start, unit.end() if unit and name else figure.end, "", (name or figure.sign, figure.value)
    yield from ((*date, None) for date in dates[at:])


def _iso(match: re.Match[str]) -> str:
    year, month, day = (next(filter(None, map(match.group, names)), "") for names in _DATE_PARTS)
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    return f"{year or '-'}-{number:02}" + (f"-{int(day):02}" if day else "")


def _is_year(text: str, figure: Figure) -> bool:
    """What looks like a year and is where one is: `in 2015`, not `took 2015 steps`."""
    if not _YEAR.fullmatch(figure.text):
        return False
    return _BEFORE_YEAR.search(text[max(0, figure.start - 12) : figure.start]) is not None


def _quotes(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _QUOTED.finditer(text)] if "`" in text or '"' in text or "“" in text else []


@dataclass(frozen=True, slots=True)
class _Token:
    """What a token is, wherever it stands: a name, or its parts without those that only deny."""

    names: bool
    capital: bool
    denies: bool
    # Stop words as they are, others by their meaning; whether it is a stop word; what it marks
    parts: tuple[tuple[str, bool, str | None], ...]


@lru_cache(maxsize=20_000)
def _token(token: str) -> _Token:
    if _NAME.fullmatch(token):
        return _Token(True, False, False, ((stem(_strip_possessive(token.lower())), False, None),))
    denies = False
    parts: list[tuple[str, bool, str | None]] = []
    for part in (token,) if token[-2:] in ("'t", "’t") else _SPLIT.split(token):
        lower = part.lower()
        if is_negation(lower) or (lower == "n" and part != token):  # n'est pas
            denies = True
            continue
        if denied := affirmed_word(lower):
            denies, lower = True, denied
        stop = is_stop(lower) or len(lower) == 1
        parts.append((lower if stop else stem(lower), stop, mark(lower)))
    return _Token(False, token[0].isupper(), denies, tuple(parts))


def _strip_possessive(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s")


class _Reader:
    """Reads stretches of one text between its figures, one after the other."""

    def __init__(self, quotes: list[tuple[int, int]]) -> None:
        self.words: list[str] = []
        self.than: list[str] = []
        self.marks: set[str] = set()
        self.voice: set[str] = set()
        self.negated = False
        self.first: str | None = None
        self.start = True  # the next word starts a sentence
        self.previous = ""  # the stop word before
        self.by = False  # it comes after `by`
        self._quotes = quotes
        self._sure: list[str] = []
        self._capital: list[str] = []
        self._plain = 0

    def names(self) -> list[str]:
        # A headline in capitals names nothing by them.
        title = len(self._capital) > 2 and len(self._capital) > 2 * self._plain
        return self._sure if title else self._sure + self._capital

    def read(self, text: str, at: int, end: int) -> None:
        for match in _TOKEN.finditer(text, at, end):
            raw = match[0]
            if len(raw) > _LONGEST_WORD:
                self._add(raw, named=True, sure=True)
            elif self._quotes and self._in_quotes(match.start()):
                self._add(stem(_strip_possessive(raw.lower())), named=True, sure=True)
            elif (token := _token(raw)).names:
                self._add(token.parts[0][0], named=True, sure=True)
            else:
                self._plain_token(token, text, match.end())
            stop = match.end()
            self.start = stop < len(text) and text[stop] in _ENDS

    def _plain_token(self, token: _Token, text: str, end: int) -> None:
        self.negated = self.negated or token.denies
        capital, first = token.capital and not self.start, token.capital and self.start
        for word, stop, marked in token.parts:
            if marked is not None and not capital and self._marks(marked, text, end):
                self.marks.add(marked)
            if stop:
                self.previous = word
                self.by = self.by or word == "by"
                if word in _BE:
                    self.voice.add("be")
                elif word in _PREPOSITIONS:
                    self.voice.add(word)
                continue
            if first:
                self.first = self.first or word
            elif capital:
                self._capital.append(word)
            else:
                self._plain += 1
            self._add(word, named=capital)

    def _marks(self, mark: str, text: str, end: int) -> bool:
        """Whether the word is a mark here: `some 500` is about, and `on Monday` is a preposition."""
        if mark == "some":
            return _FIGURE_NEXT.match(text, end) is None
        if mark not in ("on", "off", "up", "down"):
            return True
        if _CLOSED.match(text, end) or (self.words and self.words[-1] in _SWITCHED):
            return True
        return mark in ("up", "down") and _FIGURE_NEXT.match(text, end) is not None

    def _add(self, word: str, *, named: bool, sure: bool = False) -> None:
        self.words.append(word)
        if sure:
            self._sure.append(word)
        if self.previous == "than" or (named and self.previous in ("from", "to")):
            self.than.append(f"{self.previous} {word}")
        if self.by:
            self.voice.add("by")
            self.by = False
        self.previous = ""

    def _in_quotes(self, at: int) -> bool:
        while self._quotes and self._quotes[0][1] <= at:
            self._quotes.pop(0)
        return bool(self._quotes) and self._quotes[0][0] <= at
