"""Digits and separators, or number words -> a plain decimal: no separators, no leading or trailing zeros."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from chargehand.synthesizer.units import SCALE_WORDS

ONES: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# No-break, narrow no-break and thin space.
GAPS: Final = "\u00a0\u202f\u2009"

_WORTH: Final = {word: n for n, word in enumerate(ONES)} | {word: 10 * n for n, word in enumerate(TENS, 2)}
_ENGLISH: Final = re.compile(r"[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?")
_CONTINENTAL: Final = re.compile(r"[0-9]{1,3}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})")
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:['’][0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:_[0-9]+)+")
_COMMA_DECIMAL: Final = re.compile(r"[0-9]+,[0-9]{1,2}|0,[0-9]+")
_SPACED: Final = re.compile(rf"[ {GAPS}]")
_PART: Final = re.compile(r"\.?[0-9]+(?:\.[0-9]+)*")


def numerals(run: str, *, verbatim: bool) -> Iterator[tuple[int, int, str]]:
    """The numbers in a run as (start, end, value): `1,234` is one, `1,2,3` are three, `2.1.3` stays as it is."""
    whole = _SPACED.sub("", run)
    if verbatim and _PART.fullmatch(whole):
        yield 0, len(run), whole
    elif _CONTINENTAL.fullmatch(whole):
        yield 0, len(run), plain(whole.replace(".", "").replace(",", "."))
    elif _ENGLISH.fullmatch(whole) or _GROUPED.fullmatch(whole):
        yield 0, len(run), plain(re.sub("[,'’_]", "", whole))
    elif _COMMA_DECIMAL.fullmatch(whole):
        yield 0, len(run), plain(whole.replace(",", "."))
    elif _PART.fullmatch(whole):
        yield 0, len(run), plain(whole) if whole.count(".") < 2 else whole
    else:
        for part in _PART.finditer(run):
            yield part.start(), part.end(), plain(part[0]) if part[0].count(".") < 2 else part[0]


def plain(digits: str, shift: int = 0) -> str:
    """A decimal without needless zeros, its point moved by so many places."""
    whole, _, fraction = digits.partition(".")
    if shift > 0:
        fraction = fraction.ljust(shift, "0")
        whole, fraction = whole + fraction[:shift], fraction[shift:]
    elif shift < 0:
        whole = whole.rjust(-shift, "0")
        whole, fraction = whole[:shift], whole[shift:] + fraction
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def number_in_words(words: str) -> str:
    """The value of number words: `twenty-five`, `two hundred`, `a dozen`."""
    total, shift, dozen = 0, 0, 1
    for word in re.split(r"[ -]", words.lower()):
        total += _WORTH.get(word, 0)
        shift += SCALE_WORDS.get(word, 0)
        dozen = 12 if word == "dozen" else dozen
    # "a million" and "a dozen" name no number of their own.
    counted = total if total or words.lower().startswith("zero") else 1
    return plain(str(counted * dozen), shift)
