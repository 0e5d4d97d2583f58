"""A statement -> what it is compared by: its words by meaning, its figures, its names, and whether it denies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.lexicon import affirmed, is_negation, is_stop, question, stem

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
_BEFORE_YEAR: Final = re.compile(
    r"(?i:\b(?:in|since|until|till|by|from|to|of|during|for|before|after|between|and|through|year|fy|early|late|mid|end"
    r"|around|circa)[ -]|[(–,-] ?)\Z"
)
# Longer ones are keys, hashes and encoded data.
_LONGEST_WORD: Final = 64
_COUNT: Final = "#"
_AMOUNT: Final = "="


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says, as far as code can tell."""

    words: tuple[str, ...]  # in the order of the text, by meaning; a bare number is `#`, another figure `=`
    bag: frozenset[str]  # the words, without figures
    topics: frozenset[str]  # as the bag, with a word and its opposite as one
    answers: tuple[tuple[str, bool], ...]  # the questions that words answer, and how; sorted
    days: tuple[Figure, ...]  # dates, and numbers that are years
    numbers: tuple[Figure, ...]  # the other figures
    amounts: tuple[tuple[str, str, str], ...]  # kind, unit and value of the figures: equal if they say the same
    names: frozenset[str]  # words that name one thing: people, places, products, identifiers, what is quoted
    first: str | None  # the word a sentence starts with, which may be a name
    than: frozenset[str]  # what something is compared with, or goes to or comes from
    negated: bool
    tail: str  # of a text too long to compare, what tells it from others


def wording(text: str) -> Wording:
    """The wording of a text; linear in its length up to the limit, and never an error."""
    return _remembered(text) if len(text) <= _SHORT else _wording(text)


# The same texts are compared when contradictions are looked for and when they are merged.
@lru_cache(maxsize=8_192)
def _remembered(text: str) -> Wording:
    return _wording(text)


def _wording(text: str) -> Wording:
    tail = ""
    if len(text) > MOST_CHARACTERS:
        tail = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        text = text[:MOST_CHARACTERS]
    if "<" in text:
        text = _TAG.sub(" ", text)
    found = figures(text)
    reader = _Reader(_quotes(text))
    at = 0
    for figure in found:
        reader.read(text, at, figure.start)
        reader.words.append(_COUNT if figure.unit is None and not _is_day(text, figure) else _AMOUNT)
        reader.start, reader.previous = False, ""
        at = figure.end
    reader.read(text, at, len(text))
    days = tuple(figure for figure in found if _is_day(text, figure))
    numbers = tuple(figure for figure in found if figure not in days) if days else found
    bag = frozenset(reader.words) - {_COUNT, _AMOUNT}
    answers = tuple(sorted({answer for word in bag if (answer := question(word))}))
    topics = frozenset(answer[0] if (answer := question(word)) else word for word in bag)
    return Wording(
        words=tuple(reader.words),
        bag=bag,
        topics=topics,
        answers=answers,
        days=days,
        numbers=numbers,
        amounts=_amounts(days, numbers),
        names=frozenset(reader.names()),
        first=reader.first,
        than=frozenset(reader.than),
        negated=reader.negated,
        tail=tail,
    )


def _amounts(days: tuple[Figure, ...], numbers: tuple[Figure, ...]) -> tuple[tuple[str, str, str], ...]:
    """Numbers by unit; within one unit the order counts, since `3 of 5` is not `5 of 3`. Days have no order."""
    return (
        *sorted(("date", "", figure.value) for figure in days),
        *sorted((("number", figure.unit or "", figure.value) for figure in numbers), key=lambda amount: amount[1]),
    )


def _is_day(text: str, figure: Figure) -> bool:
    """A date, or what looks like a year and stands where one does: `in 2015`, not `took 2015 steps`."""
    if figure.kind == "date":
        return True
    if figure.unit is not None or not _YEAR.fullmatch(figure.text):
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
    parts: tuple[tuple[str, bool], ...]  # stop words as they are, others by their meaning; whether it is a stop word


@lru_cache(maxsize=20_000)
def _token(token: str) -> _Token:
    if _NAME.fullmatch(token):
        return _Token(True, False, False, ((stem(_unowned(token.lower())), False),))
    denies = False
    parts: list[tuple[str, bool]] = []
    for part in (token,) if token[-2:] in ("'t", "’t") else _SPLIT.split(token):
        lower = part.lower()
        if is_negation(lower):
            denies = True
            continue
        if denied := affirmed(lower):
            denies, lower = True, denied
        stop = is_stop(lower) or len(lower) == 1
        parts.append((lower if stop else stem(lower), stop))
    return _Token(False, token[0].isupper(), denies, tuple(parts))


def _unowned(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s")


class _Reader:
    """Reads stretches of one text between its figures, one after the other."""

    def __init__(self, quotes: list[tuple[int, int]]) -> None:
        self.words: list[str] = []
        self.than: list[str] = []
        self.negated = False
        self.first: str | None = None
        self.start = True  # the next word starts a sentence
        self.previous = ""  # the stop word before
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
                self._add(stem(_unowned(raw.lower())), named=True, sure=True)
            elif (token := _token(raw)).names:
                self._add(token.parts[0][0], named=True, sure=True)
            else:
                self._plain_token(token)
            stop = match.end()
            self.start = stop < len(text) and text[stop] in _ENDS

    def _plain_token(self, token: _Token) -> None:
        self.negated = self.negated or token.denies
        capital, first = token.capital and not self.start, token.capital and self.start
        for word, stop in token.parts:
            if stop:
                self.previous = word
                continue
            if first:
                self.first = self.first or word
            elif capital:
                self._capital.append(word)
            else:
                self._plain += 1
            self._add(word, named=capital)

    def _add(self, word: str, *, named: bool, sure: bool = False) -> None:
        self.words.append(word)
        if sure:
            self._sure.append(word)
        if self.previous == "than" or (named and self.previous in ("from", "to")):
            self.than.append(f"{self.previous} {word}")
        self.previous = ""

    def _in_quotes(self, at: int) -> bool:
        while self._quotes and self._quotes[0][1] <= at:
            self._quotes.pop(0)
        return bool(self._quotes) and self._quotes[0][0] <= at
