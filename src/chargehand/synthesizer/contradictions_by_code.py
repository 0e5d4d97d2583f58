"""Statements of different tasks -> the pairs that code alone can prove to differ: one key, two values.

The key of a statement that ends in a value is everything before the value:

    Population of Oslo: 717,710          The office in Oslo employs 500 people.         The lease ends on 1 May 2027.

With equal keys, two values differ in the number (of one unit), in the unit (of one number) or in the date. A rounded
value does not differ from the exact one. A key that names nothing is compared only between tasks that were asked about
the same names: the salary in Oslo is not the salary in Bergen. Findings differ if they are equal except for severity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.group_contradictions import Pair
from chargehand.synthesizer.merge_duplicates import findings_at_odds
from chargehand.synthesizer.result_index import rounds_to
from chargehand.synthesizer.statements import Statement
from chargehand.synthesizer.strip_markdown import one_line
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Finding, Outcome

# How many values under one key are listed; more of them tell a reader nothing new.
_MOST_VALUES: Final = 8
_MONTH: Final = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE: Final = lazy_regex(
    rf"(?:\b(?P<iso>[12]\d{{3}}-[01]\d(?:-[0-3]\d)?)"
    rf"|\b(?:(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\ )?{_MONTH}(?:\ (?P<day_after>[0-3]?\d)(?:st|nd|rd|th)?)?,?"
    rf"(?:\ (?P<year>[12]\d{{3}}))?)\Z",
    re.IGNORECASE,
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Three words at most after the number; `kg`, `EUR` and `%` are units whose difference code can be sure of.
_UNIT: Final = lazy_regex(r"[\s-]?(?:[^\s\d]+(?:\s+[^\s\d]+){0,2})?")
_SYMBOL: Final = lazy_regex(r"[^\W\d_]{1,3}|[%°€$£]")
_YES_OR_NO: Final = lazy_regex(r": (yes|no)\Z")
_END: Final = " .!;,)\"'"
# A word in capitals that does not begin a sentence, or what is quoted.
_NAME: Final = lazy_regex(r"(?<=[^\s.!?:])\s+\"?([^\W\d_a-z]\w+)|\"([^\"\n]{1,60})\"|`([^`\n]{1,60})`")


@dataclass(frozen=True, slots=True)
class _Value:
    """The value at the end of a statement: a date, a number and its unit, or a yes or no."""

    key: str
    date: str = ""
    figure: Figure | None = None
    unit: str = ""
    # Of data that says yes or no.
    word: str = ""

    def differs_from(self, other: _Value) -> bool:
        if self.figure is None or other.figure is None:
            if self.date and other.date:
                return not _same_date(self.date, other.date)
            return bool(self.word and other.word) and self.word != other.word
        if self.unit == other.unit:
            return not (rounds_to(self.figure, other.figure) or rounds_to(other.figure, self.figure))
        symbols = _SYMBOL.fullmatch(self.unit) and _SYMBOL.fullmatch(other.unit)
        return bool(symbols) and self.figure.value == other.figure.value


def proven_pairs(
    statements: Sequence[Statement], outcomes: Iterable[Outcome], asked: Mapping[str, str]
) -> tuple[Pair, ...]:
    """The pairs in the order of their second statement; `asked` is what each task was asked."""
    names = {task: frozenset(_names(words)) for task, words in asked.items()}
    by_key: dict[str, list[tuple[Statement, _Value]]] = {}
    found: list[Pair] = []
    for statement in statements:
        value = _value(statement.text)
        if value is None:
            continue
        earlier = by_key.setdefault(value.key.casefold(), [])
        own = names.get(statement.task, frozenset[str]())
        named = statement.named or any(_names(value.key))
        for other, before in earlier:
            if other.task == statement.task or not value.differs_from(before):
                continue
            theirs = names.get(other.task, frozenset[str]())
            if named or own <= theirs or theirs <= own:
                found.append(Pair(other, statement))
                break
        if len(earlier) < _MOST_VALUES:
            earlier.append((statement, value))
    return (*found, *_severities(outcomes))


def _value(text: str) -> _Value | None:
    text = text.rstrip(_END)
    if said := _YES_OR_NO.search(text):
        return _Value(_key(text[: said.start()]), word=said[1])
    if date := _DATE.search(text):
        return _Value(_key(text[: date.start()]), date=_iso(date))
    all_ = figures(text)
    if not all_ or not _UNIT.fullmatch(text, all_[-1].end):
        return None
    last = all_[-1]
    unit = text[last.end :].strip(" -") or last.sign
    key = _key(text[: last.start])
    return _Value(key, figure=last, unit=unit.casefold() if len(unit) > 3 else unit) if key else None


def _key(text: str) -> str:
    return " ".join(text.split())


def _iso(match: re.Match[str]) -> str:
    if match["iso"]:
        return match["iso"]
    day = match["day"] or match["day_after"]
    month = _MONTHS.index(match["month"].lower()) + 1
    return f"{match['year'] or '-'}-{month:02}" + (f"-{int(day):02}" if day else "")


def _same_date(one: str, other: str) -> bool:
    """Whether the dates are equal, or equal except for a missing day or year."""
    mine, theirs = one.lstrip("-"), other.lstrip("-")
    return (
        mine.startswith(theirs) or theirs.startswith(mine) or mine.endswith(f"-{theirs}") or theirs.endswith(f"-{mine}")
    )


def _names(text: str) -> Iterator[str]:
    return (next(filter(None, match.groups())).casefold() for match in _NAME.finditer(text))


def _severities(outcomes: Iterable[Outcome]) -> Iterator[Pair]:
    """The same finding with two severities."""
    said = [(outcome.task, finding) for outcome in outcomes for finding in outcome.findings]
    for one, other in findings_at_odds([finding for _, finding in said]):
        if said[one][0] != said[other][0]:
            first, second = (_severity_statement(*said[place]) for place in (one, other))
            yield Pair(first, second, _place(said[one][1]))


def _severity_statement(task: str, finding: Finding) -> Statement:
    return Statement(task, f"{finding.severity}: {one_line(finding.message)}", finding.confidence, finding.sources)


def _place(finding: Finding) -> str:
    where = f"{finding.path}:{finding.line}" if finding.path and finding.line else finding.path or ""
    return f"{where} {finding.category}".strip()
