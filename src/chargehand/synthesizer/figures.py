"""Text -> the figures in it: numbers, amounts and dates, each in one normal form, so that they can be compared.

    1,234.50   1 234.5   1.234,5   1234.5         number   1234.5
    $5m   5 million dollars   USD 5,000,000       number   5000000, unit USD
    12 %   12 percent   twelve per cent           number   12, unit %
    10-20 ms   from 10 to 20 ms                   number   10 and 20, unit ms each
    5 March 2024   Mar 5th, 2024   2024-03-05     date     2024-03-05; without a year --03-05, without a day 2024-03
    Q3 2024   14:30   2:30 pm                     date     2024-Q3, T14:30, T14:30
    v2.10   2.1.3   Python 3.10                   number   as written, since 3.10 is not 3.1

`03/05/2024` is read month first, unless only the other way is a date. `1.234` is a decimal; `1.234,5` and `1.234.567`
are not. Units keep their own scale: 1500 ms and 1.5 s are two figures.

Not figures: list and heading numbers, citations (`[t3]`, `see [1]`), urls, `file.py:12`, and digits that belong to a
name (t3, sha256, COVID-19). Code counts as text. Number words count, alone up to ninety-nine and with hundred to
trillion, except where "one" is a pronoun; their `text` has no digit, for those who leave small counts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from chargehand.synthesizer.numerals import GAPS, ONES, TENS, number_in_words, numerals, plain
from chargehand.synthesizer.units import PHRASES, SCALE_WORDS, is_money, scale_named, unit_named
from chargehand.values.lazy_regex import lazy_regex

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_YEAR: Final = r"[12][0-9]{3}(?![0-9])"
_DAY: Final = r"(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?(?![0-9])"
_CODES: Final = "EUR|USD|GBP|JPY|CHF|INR|CAD|AUD|SEK|NOK|DKK|PLN|CNY"
_SCALE: Final = "|".join([*SCALE_WORDS, "dozen"])
_RUN: Final = (
    rf"[0-9]{{1,3}}(?:[ {GAPS}][0-9]{{3}})+(?![0-9])(?:[.,][0-9]{{1,2}}(?![0-9]))?|\.?[0-9][0-9.,'’_]*(?<=[0-9])"
)

# Alternatives in the order of trust: what is no figure, dates, numbers, words; those that start with a letter apart, so
# that most of a prose costs one look a character. No repetition can match a text in two ways: the time is linear.
_SCAN: Final = lazy_regex(
    rf"""
    (?=[-−0-9$€£¥₹#&.\[])(?:
      (?P<mark> (?:(?<=[\w.!?)\]"”’])|(?<=[\w.!?)\]"”’]\ )|(?<=\],\ ))
        \[[0-9]{{1,2}}(?:[,;–-]\ ?[0-9]{{1,2}}){{0,9}}\](?!\()
        | &\#[0-9]+; )
    | (?<![\w.])(?P<ymd> (?P<y1>[12][0-9]{{3}})(?P<s1>[-/.])(?P<m1>0?[1-9]|1[0-2])(?P=s1)
        (?P<d1>0?[1-9]|[12][0-9]|3[01])(?![0-9]) )
    | (?<![\w.-])(?P<ym> (?P<y2>[12][0-9]{{3}})-(?P<m2>0[1-9]|1[0-2])(?![\w-]) )
    | (?<![\w./])(?P<dmy> (?P<a3>[0-9]{{1,2}})(?P<s3>[-/.])(?P<b3>[0-9]{{1,2}})(?P=s3)(?P<y3>{_YEAR}) )
    | (?<![\w.])(?P<dm> (?P<d4>{_DAY})(?:\ of)?[ -](?P<m4>{_MONTH})(?:(?:,?\ |-)(?P<y4>{_YEAR}))? )
    | (?<![\w.])(?P<yq> (?P<y8>[12][0-9]{{3}})[ -]?(?P<q8>Q[1-4])\b )
    | (?:(?<![\w.:])|(?<=[0-9]T))(?P<time> (?P<h9>[01]?[0-9]|2[0-3]):(?P<s9>[0-5][0-9])(?::[0-5][0-9])?(?![0-9:])
        (?:\ ?(?P<p9>[aApP])\.?[mM]\b)? | (?P<h10>1[0-2]|0?[1-9])\ ?(?P<p10>[aApP])\.?[mM]\b )
    | (?P<number> (?P<sign>(?<![\w)\]%])[-−](?=[$€£¥₹0-9.]))?
        (?: (?P<before>\#|[$€£¥₹])(?:(?<!\#)[ {GAPS}])? )? (?P<run>{_RUN}) )
    )
    | \b(?=[A-Za-z])(?:
      (?P<url> https?://\S+ )
    | (?P<md> (?P<m5>{_MONTH})\ (?P<d5>{_DAY})(?![.,:][0-9]|\ ?%)(?:,?\ (?P<y5>{_YEAR}))? )
    | (?P<my> (?P<m6>{_MONTH}),?\ (?P<y6>{_YEAR}) )
    | (?P<quarter> (?P<q7>Q[1-4]|H[12](?=[ -][12][0-9]))(?:[ -]?(?:of\ |FY\ ?)?(?P<y7>{_YEAR}))?\b )
    | (?P<amount> (?P<code>{_CODES}|(?:US|[CA])\$)[ {GAPS}]?(?P<coded>{_RUN}) )
    | (?P<word> (?i: (?: (?:{"|".join(TENS)})(?:[ -](?:{"|".join(ONES[1:10])})\b)? | {"|".join(reversed(ONES))}
        | dozen | a(?=\ (?:{_SCALE})\b) ) (?:\ (?:{_SCALE})\b)*) (?!\w) )
    )
    """,
    re.VERBOSE,
)
_PHRASE: Final = "|".join(phrase.replace(" ", r"\ ") for phrase in sorted(PHRASES, key=len, reverse=True))
_AFTER: Final = lazy_regex(
    rf"""(?:[eE](?P<exponent>[-+]?[0-9]{{1,2}})(?![\w.]))? (?:(?:st|nd|rd|th)\b)?
    (?:(?P<gap>[ {GAPS}-]?)(?P<scale>(?i:{"|".join(SCALE_WORDS)})|[kKMmbB]|mn|mln|[bB]n|tn)(?![A-Za-z0-9_]))?""",
    re.VERBOSE,
)
_UNIT: Final = lazy_regex(
    rf"""[ {GAPS}-]?
    (?P<unit>(?i:{_PHRASE})\b|°\ ?[CF]?|%|[€£¥₹×](?![0-9])|(?:US|[CA])?\$(?![0-9])|[A-Za-zµμ]{{1,12}}(?!\w))
    (?:(?<=[A-Za-z€$£])/(?P<per>[A-Za-z]{{1,12}})(?!\w))?""",
    re.VERBOSE,
)
_IN_A_NAME: Final = lazy_regex(
    r"(?:[^\W\d]|\.[A-Za-z]\w{0,5}(?::|#L)(?:[0-9]{1,7}[-:]L?)?|[A-Za-z_]/|[A-Za-z]-|\w\.)\Z"
)
_PREFIX: Final = lazy_regex(r"(?i:\b(?:pre|post|mid|sub|non|over|under|top|early|late|to|or|and|than|of)-)\Z")
_VERSION_OF: Final = lazy_regex(
    r"(?i:\b(?:v|version|release|python|node|java|go|ruby|php|django|rails|postgres|postgresql|mysql|redis|kubernetes"
    r"|ubuntu|debian|tls|http|ssl|openssl|macos|ios|android|section|table|figure|chapter|clause|article)[ .]?|§ ?)\Z"
)
_LINE_START: Final = lazy_regex(r"^(?:[ \t>]*|(?P<heading>#{1,6}[ \t]+))\Z", re.MULTILINE)
_NUMBERING: Final = lazy_regex(r"(?P<mark>[.)])?\s")
_PRONOUN_BEFORE: Final = lazy_regex(r"(?i:\b(?:no|any|every|some|this|that|which|the|each|another|other|last|new) )\Z")
_PRONOUN_AFTER: Final = lazy_regex(
    r"(?i: (?:of|another|or|can|could|who|that|is|was|must|should|may|might|would|has)\b|[.,;:!?)]|\Z)"
)
_TO: Final = lazy_regex(r" ?[-–—] ?| to ")
_REACH: Final = 24
# Before most numbers stands one of these: then it is no part of a name.
_APART: Final = frozenset(["", *" ,(\"'$€£¥\n\t=<>~+*|"])


@dataclass(frozen=True, slots=True)
class Figure:
    """A number or a date of a text: two are the same if `value`, `unit` and `kind` are; `text` is text[start:end]."""

    value: str
    unit: str | None
    kind: Literal["number", "date"]
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Read:
    """A figure and by how many digits a word after it scaled it."""

    figure: Figure
    scale: int = 0


def figures(text: str) -> tuple[Figure, ...]:
    """All figures of a text in its order, in linear time."""
    found: list[_Read] = []
    for match in _SCAN.finditer(text):
        # The unit of a figure may hold what looks like the next one.
        if found and match.start() < found[-1].figure.end:
            continue
        match match.lastgroup:
            case "mark" | "url":
                pass
            case "number":
                found.extend(_numbers(text, match, match["before"], "run"))
            case "amount":
                found.extend(_numbers(text, match, match["code"], "coded"))
            case "word":
                found.extend(_word(text, match))
            case _:
                found.append(_Read(Figure(_date(match), None, "date", match.start(), match.end(), match[0])))
    for at, (first, second) in enumerate(pairwise(found)):
        if _is_range(text, first.figure, second.figure):
            found[at], found[at + 1] = _range(first, second)
    return tuple(read.figure for read in found)


def _date(match: re.Match[str]) -> str:
    part = match.groupdict()
    match match.lastgroup:
        case "ymd":
            return _iso(part["y1"], part["m1"], part["d1"])
        case "ym":
            return _iso(part["y2"], part["m2"], None)
        case "dmy":
            first, second = part["a3"], part["b3"]
            if part["s3"] == "." or int(first) > 12:
                first, second = second, first
            return _iso(part["y3"], first, second)
        case "dm":
            return _iso(part["y4"], part["m4"], part["d4"])
        case "md":
            return _iso(part["y5"], part["m5"], part["d5"])
        case "my":
            return _iso(part["y6"], part["m6"], None)
        case "yq":
            return f"{part['y8']}-{part['q8']}"
        case "quarter":
            return f"{part['y7']}-{part['q7']}" if part["y7"] else part["q7"]
        case _:
            hour, half = int(part["h9"] or part["h10"]), part["p9"] or part["p10"]
            if half is not None:
                hour = hour % 12 + (12 if half in "pP" else 0)
            return f"T{hour:02}:{part['s9'] or '00'}"


def _iso(year: str | None, month: str, day: str | None) -> str:
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    start = f"{year or '-'}-{number:02}"
    return start if day is None else f"{start}-{int(day.rstrip('stndrh')):02}"


def _numbers(text: str, match: re.Match[str], sign: str | None, run: str) -> Iterator[_Read]:
    """The numbers of a run of digits; `sign` is the currency, or #, before it."""
    before = text[max(0, match.start() - _REACH) : match.start()]
    digits, apart = match[run], before[-1:] in _APART
    version = (not apart or "." in digits) and _VERSION_OF.search(before) is not None
    if not (sign or version or apart) and _IN_A_NAME.search(before) and not _PREFIX.search(before):
        return
    if (len(before) < _REACH or "\n" in before) and _numbers_a_line(text, before, match.end()):
        return
    money = unit_named(sign) if sign else None
    for at, to, value in numerals(digits, verbatim=version):
        start = match.start() if at == 0 else match.start(run) + at
        end, unit, scale = match.start(run) + to, money, 0
        if to == len(digits):
            end, unit, scale = _suffix(text, end, money)
            if end < len(text) and (text[end].isalpha() or text[end] == "_"):
                return  # 3a4f, 2FA: a name
        signed = ("-" if match["sign"] and at == 0 else "") + (plain(value, scale) if scale else value)
        yield _Read(Figure(signed, unit, "number", start, end, text[start:end]), scale)


def _numbers_a_line(text: str, before: str, end: int) -> bool:
    """Whether what ends here numbers its line: `1. `, `2) `, and in a heading `2.1 `."""
    line, after = _LINE_START.search(before), _NUMBERING.match(text, end)
    return line is not None and after is not None and (line["heading"] is not None or after["mark"] is not None)


def _word(text: str, match: re.Match[str]) -> Iterator[_Read]:
    start, end = match.span("word")
    before = text[max(0, start - _REACH) : start]
    if match["word"].lower() == "one" and (_PRONOUN_BEFORE.search(before) or _PRONOUN_AFTER.match(text, end)):
        return
    end, unit, _ = _suffix(text, end, None)
    yield _Read(Figure(number_in_words(match["word"]), unit, "number", start, end, text[start:end]))


def _suffix(text: str, at: int, money: str | None) -> tuple[int, str | None, int]:
    """Where a number ends with what belongs to it, its unit, and by how many digits it is scaled."""
    scale = 0
    if after := _AFTER.match(text, at):
        unit = _UNIT.match(text, after.end())
        named = unit_named(unit["unit"]) if unit else None
        digits = scale_named(after["scale"] or "", touching=not after["gap"], money=is_money(money or named))
        scale = digits + int(after["exponent"] or 0)
        at = after.end() if digits or not after["scale"] else after.start("gap")
    if (unit := _UNIT.match(text, at)) and (named := unit_named(unit["unit"])):
        return unit.end(), money or (f"{named}/{unit['per']}" if unit["per"] else named), scale
    return at, money, scale


def _is_range(text: str, first: Figure, second: Figure) -> bool:
    if second.start - first.end > 5:
        return False
    if text[first.end : second.start] == " and ":
        return text.endswith(("between ", "Between "), 0, first.start)
    return _TO.fullmatch(text, first.end, second.start) is not None


def _range(first: _Read, second: _Read) -> tuple[_Read, _Read]:
    """In `$5-10 million` and `10 to 20 ms` the unit and the scale stand once and hold for both."""
    one, other = first.figure, second.figure
    if one.kind != "number" or other.kind != "number":
        return first, second
    if one.unit is None and first.scale == 0 and (other.unit is not None or second.scale):
        one = replace(one, unit=other.unit, value=_scale(one.value, second.scale))
    elif one.unit is not None and first.scale == 0 and other.unit in (None, one.unit):
        one, other = replace(one, value=_scale(one.value, second.scale)), replace(other, unit=one.unit)
    return _Read(one, second.scale), _Read(other, second.scale)


def _scale(value: str, scale: int) -> str:
    return f"-{plain(value[1:], scale)}" if value.startswith("-") else plain(value, scale)
