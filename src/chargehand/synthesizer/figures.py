"""Text -> the figures in it, each with its digits in one normal form, so that they can be looked up and compared.

    1,234.50   1 234.5   1.234,5   1234.5      1234.5
    $5m   5 million   USD 5,000,000            5000000
    12 %   12 percent   12                     12
    2024-03-05   5 March 2024                  2024 and 5: months are not read
    2.1.3   10.0.0.1                           as written

`1.234` is a decimal; `1.234,5` and `1.234.567` are not. A minus sign counts only if nothing is directly before it.
Units and number words are not read. What is not a figure: the number of a list item or a heading, a mark like `[1]`,
urls, and digits in a name (t3, sha256, 3a4f).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chargehand.values.lazy_regex import lazy_regex

# No-break, narrow no-break and thin space.
_GAPS: Final = "\u00a0\u202f\u2009"
_MONEY: Final = "$€£¥₹"
_SIGNS: Final = frozenset(_MONEY)
# Words after a number -> by how many digits they scale it; a single small letter scales only after a currency sign.
_SCALES: Final = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "K": 3, "M": 6, "bn": 9}
_MONEY_SCALES: Final = {**_SCALES, "m": 6, "b": 9, "B": 9}
# Every repetition ends at a character that cannot continue it: the time is linear.
_SCAN: Final = lazy_regex(
    rf"""
    (?P<other> (?i:https?://|\bwww\.)\S+
        | (?<=[12][0-9]{{3}})-(?:0[1-9]|1[0-2])(?=-[0-3][0-9](?![0-9]))
        | \[[0-9]{{1,2}}\](?!\()
        | (?m:^[ \t>]*(?:\#{{1,6}}[ ]+[0-9][0-9.]*|[*_]*[0-9]{{1,3}}[.)])(?=\s)) )
    | (?P<sign>(?<![\w)\]%])[-−](?=[{_MONEY}0-9.]))? (?P<money>[{_MONEY}][ {_GAPS}]?)?
      (?P<run> [0-9]{{1,3}}(?:[ {_GAPS}][0-9]{{3}})+(?![0-9])(?:[.,][0-9]{{1,2}}(?![0-9]))?
        | \.?[0-9][0-9.,'’_]*(?<=[0-9]) )
      (?:[eE](?P<exponent>[-+]?[0-9]{{1,2}})(?!\w))?
      (?P<scale> [ {_GAPS}-]?(?i:thousand|million|billion|trillion)s?\b | (?:[kKMmbB]|bn)\b )?
      (?: [ {_GAPS}]?(?:[%{_MONEY}](?![0-9])|per[ ]?cent\b) )?
    """,
    re.VERBOSE,
)
_COMMAS: Final = lazy_regex(r"[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?")
_POINTS: Final = lazy_regex(r"[0-9]{1,3}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})")
_COMMA_DECIMAL: Final = lazy_regex(r"[0-9]+,[0-9]{1,2}|0,[0-9]+")
_PART: Final = lazy_regex(r"\.?[0-9]+(?:\.[0-9]+)*")
# `5ms` and `3rd` are figures, `3a4f` is a name.
_SUFFIX: Final = lazy_regex(r"[^\W\d_]{1,3}(?!\w)")
_CLOCK: Final = lazy_regex(r"(?<![0-9:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![0-9:])")
_GROUPING: Final = lazy_regex(rf"[ {_GAPS}'’_]")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a text: two are the same if their `value` is. `text` is text[start:end], with its signs and scale.

    `unscaled` is 5.6 of 5.6 billion. `named` says that the digits are part of a name or of an address.
    """

    value: str
    unscaled: str
    start: int
    end: int
    text: str
    named: bool = False

    @property
    def sign(self) -> str:
        """The sign of a percentage or a currency, on whatever side of the number it is."""
        return "%" if self.text.endswith(("%", "cent")) else "".join(sorted(set(self.text) & _SIGNS))[:1]

    def counts_up_to(self, most: int) -> bool:
        """Whether it is a whole number without a sign, up to this limit: it may count or number parts of its text."""
        return len(self.text) <= 3 and self.text.isdigit() and int(self.text) <= most


def most_counted(parts: int) -> int:
    """The largest whole number that is not looked up in a text of so many list items, rows and headings.

    It may count or number them. 2 and 3 may do so in any text; numbers above 12 are always figures.
    """
    return min(max(parts, 3), 12)


def figures(text: str) -> tuple[Figure, ...]:
    """The figures that a text states, in its order, in linear time."""
    return tuple(figure for figure in all_digits(text) if not figure.named)


def clock_time_around(text: str, figure: Figure) -> str | None:
    """The time of day, such as 18:20:06, of which the figure is the hours, minutes or seconds."""
    places = range(max(figure.start - len("18:20:"), 0), figure.start + 1)
    found = (_CLOCK.match(text, place) for place in places)
    return next((match[0] for match in found if match and match.end() >= figure.end), None)


def all_digits(text: str) -> Iterator[Figure]:
    """The figures of a text and all other digits in it: everything that can be looked up."""
    for match in _SCAN.finditer(text):
        if match["other"] is None:
            yield from _read(text, match)
        else:
            for part in _PART.finditer(match["other"]):
                start = match.start() + part.start()
                yield Figure(plain(part[0]), plain(part[0]), start, start + len(part[0]), part[0], named=True)


def _read(text: str, match: re.Match[str]) -> Iterator[Figure]:
    """The numbers of a run of digits. Signs before it belong to the first, what follows it to the last."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    named = (not match["money"] and _in_name(before)) or (_in_name(after) and not _SUFFIX.match(text, match.end()))
    word = (match["scale"] or "").strip(f" -{_GAPS}")
    scales = _MONEY_SCALES if match["money"] else _SCALES
    shift = scales.get(word if len(word) <= 2 else word.lower().rstrip("s"), 0) + int(match["exponent"] or 0)
    for number, offset, to in _numbers(match["run"]):
        first, last = offset == 0, to == len(match["run"])
        start = match.start() if first else match.start("run") + offset
        end = match.end() if last else match.start("run") + to
        sign = "-" if first and match["sign"] else ""
        value = plain(number, shift) if last else number
        yield Figure(sign + value, sign + number, start, end, text[start:end], named)


def _in_name(character: str) -> bool:
    return character.isalpha() or character == "_"


def _numbers(run: str) -> Iterator[tuple[str, int, int]]:
    """The numbers in a run, each with its place: `1,234` is one, `1,2,3` are three, `2.1.3` stays as it is."""
    whole = _GROUPING.sub("", run)
    if _COMMAS.fullmatch(whole):
        yield plain(whole.replace(",", "")), 0, len(run)
    elif _POINTS.fullmatch(whole):
        yield plain(whole.replace(".", "").replace(",", ".")), 0, len(run)
    elif _COMMA_DECIMAL.fullmatch(whole):
        yield plain(whole.replace(",", ".")), 0, len(run)
    elif _PART.fullmatch(whole):
        yield plain(whole), 0, len(run)
    else:
        yield from ((plain(part[0]), *part.span()) for part in _PART.finditer(run))


def plain(digits: str, shift: int = 0) -> str:
    """A decimal without needless zeros, its point moved by so many places. What has two points stays as it is."""
    if digits.count(".") > 1:
        return digits
    whole, _, fraction = digits.partition(".")
    if shift > 0:
        fraction = fraction.ljust(shift, "0")
        whole, fraction = whole + fraction[:shift], fraction[shift:]
    elif shift < 0:
        whole = whole.rjust(-shift, "0")
        whole, fraction = whole[:shift], whole[shift:] + fraction
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
