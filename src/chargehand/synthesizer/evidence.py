"""Outcomes -> the figures and urls they hold, so that those of an answer can be looked up.

A figure of an answer is held where the same value stands, in whatever spelling (1,234 and 1234; 12 % and 12 percent)
and with the same unit; a value that stands without a unit on either side has any unit, except where a result gives a
value of three digits or more a unit of its own. Besides:

- a minus may be said in words ("fell by 5 %" of -5 %), but a written one must be there;
- 12 % is held by a share of 0.12, and 5.6, as in a column of billions, by 5.6 billion;
- a date is held by a more precise one: March 2024, Q1 2024 and 2024 by 2024-03-05;
- the length of a list in a result is held, and so is the number of its findings of each severity;
- a rounded value is held only if the answer says so and rounds correctly: "about", "~" and the like to the nearest,
  "over" and "at least" down, "nearly", "under" and "up to" up, at the last digit that is not zero.

Sums, averages and converted units are not held unless a result states them. What a figure is about is not looked at:
that is for a reviewer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import chain
from typing import cast

from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.urls import normal, urls
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome

# Characters of one result that are read: many times what a synthesizer is given of it.
MOST_CHARACTERS = 1_000_000
# Beyond it, and for what is not a number at all, nothing is compared.
_LARGEST = 10**30
# Up to so many tasks, each is asked; of more, only those that can have it.
_FEW = 8
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*", re.ASCII)
_ABOUT = re.compile(
    r"(?:[~\u2248]|\b(?:about|around|approx(?:imately|\.)?|roughly|circa|ca?\.|some|etwa|rund|environ)\s)\s*\Z",
    re.IGNORECASE,
)
_OVER = re.compile(r"(?:>|\b(?:over|above|more than|at least|upwards of)\s)\s*\Z", re.IGNORECASE)
_UNDER = re.compile(
    r"(?:<|\b(?:under|below|less than|fewer than|up to|at most|nearly|almost|close to|just short of)\s)\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Held:
    """The figures of one text, and the lengths of its lists."""

    numbers: Mapping[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    dates: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()

    def has(self, figure: Figure, before: str) -> bool:
        """Whether the figure is held, given the words that stand before it."""
        return self.has_exactly(figure) or self.has_within(_rounded_from(figure, before), figure.unit)

    def has_exactly(self, figure: Figure) -> bool:
        if figure.kind == "date":
            return figure.value in self.dates
        if self._has_value(figure.value, figure.unit) or self._has_value(f"-{figure.value}", figure.unit):
            return True
        if figure.unit is None:
            return figure.value in self.counts or figure.value in self.dates
        share = _share(figure)
        return share is not None and None in self.numbers.get(share, ())

    def has_within(self, bounds: tuple[Decimal, Decimal] | None, unit: str | None) -> bool:
        if bounds is None:
            return False
        for of_unit in self._ordered if unit is None else (unit, None):
            held = self._ordered.get(of_unit, ())
            at = bisect_left(held, bounds[0])
            if at < len(held) and held[at] <= bounds[1]:
                return True
        return False

    def _has_value(self, value: str, unit: str | None) -> bool:
        there = self.numbers.get(value)
        if there is None or unit is None or unit in there:
            return there is not None
        # Of few digits, the same value may well be two facts; of many, it is one, and has the unit it is given.
        return None in there and (len(there) == 1 or len(value.strip("-0").replace(".", "")) < 3)

    @cached_property
    def _ordered(self) -> dict[str | None, list[Decimal]]:
        """The values of each unit in order, without their signs."""
        values: dict[str | None, list[Decimal]] = {}
        for text, units in self.numbers.items():
            if (value := _decimal(text)) is not None:
                for unit in units:
                    values.setdefault(unit, []).append(abs(value))
        for of_unit in values.values():
            of_unit.sort()
        return values


class Evidence:
    """What the results of a run hold between them. Each is read once, when it is first asked for."""

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self._outcomes = outcomes
        self._held: dict[str, Held] = {}

    def has(self, figure: Figure, before: str, tasks: Collection[str]) -> bool:
        """Whether one of these tasks holds the figure. Of many tasks, only those that have its value are looked at."""
        if len(tasks) <= _FEW:
            return any(self._of(task).has(figure, before) for task in tasks)
        values = (figure.value, f"-{figure.value}", _share(figure) or figure.value)
        holders = dict.fromkeys(chain.from_iterable(self._holders.get(value, ()) for value in values))
        if any(task in tasks and self._of(task).has_exactly(figure) for task in holders):
            return True
        bounds = _rounded_from(figure, before)
        return bounds is not None and any(self._of(task).has_within(bounds, figure.unit) for task in tasks)

    @cached_property
    def urls(self) -> frozenset[str]:
        """All urls of all results in their normal form."""
        parts = chain.from_iterable(map(_texts, self._outcomes.values()))
        return frozenset(normal(url) for text in parts for url in urls(text))

    def _of(self, task: str) -> Held:
        if task not in self._held:
            self._held[task] = held_by(self._outcomes[task])
        return self._held[task]

    @cached_property
    def _holders(self) -> dict[str, list[str]]:
        """Each value with the tasks that have it, in whatever sense."""
        holders: dict[str, list[str]] = {}
        for task in self._outcomes:
            held = self._of(task)
            for value in dict.fromkeys((*held.numbers, *sorted(held.dates), *sorted(held.counts))):
                holders.setdefault(value, []).append(task)
        return holders


def held_in_text(text: str) -> Held:
    text = text[:MOST_CHARACTERS]
    numbers: dict[str, set[str | None]] = {}
    dates: set[str] = set()
    # Digits that are part of no figure, as in `app.py:12`, hold a plain number.
    left: list[str] = []
    end = 0
    for figure in figures(text):
        if figure.kind == "date":
            dates.update(_less_precise(figure.value))
        else:
            for value in (figure.value, *_unscaled_values(figure)):
                numbers.setdefault(value, set()).add(figure.unit)
        left.append(text[end : figure.start])
        end = max(end, figure.end)
    left.append(text[end:])
    for token in _DIGITS.findall("\n".join(left)):
        numbers.setdefault(token.replace(",", ""), set()).add(None)
    return Held(numbers, frozenset(dates))


def held_by(outcome: Outcome) -> Held:
    """What a result holds; one that is none holds why."""
    held = held_in_text("\n".join(_texts(outcome)))
    return Held(held.numbers, held.dates, frozenset(map(str, _counts(outcome))))


def _texts(outcome: Outcome) -> Iterator[str]:
    """Every text and number of an outcome, and nothing about how it was made but its attempts."""
    yield outcome.summary
    if outcome.error is not None:
        yield outcome.error.message
    if outcome.escalation is not None:
        yield outcome.escalation.message
    yield f"= {outcome.attempts}"
    if outcome.confidence is not None:
        yield f"= {outcome.confidence}"
    for claim in outcome.claims:
        yield claim.statement
        yield from claim.sources
        if claim.confidence is not None:
            yield f"= {claim.confidence}"
    for finding in outcome.findings:
        yield from _leaves(finding.to_json())
    yield from _leaves(outcome.output)


def _nodes(data: JSON) -> Iterator[JSON]:
    """Every value in the data, in order. Without recursion: a worker's output may be as deep as it likes."""
    waiting: list[JSON] = [data]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            fields = cast(dict[str, JSON], node)
            for name in reversed(fields):
                waiting += [fields[name], name]
        elif isinstance(node, list):
            waiting.extend(reversed(cast(list[JSON], node)))


def _leaves(data: JSON) -> Iterator[str]:
    for node in _nodes(data):
        if isinstance(node, str):
            yield node
        elif isinstance(node, int | float) and not isinstance(node, bool) and abs(node) < _LARGEST:
            # Not at the beginning of a line, where a number may be that of a list.
            yield f"= {format(Decimal(str(node)), 'f')}"


def _counts(outcome: Outcome) -> Iterator[int]:
    if outcome.claims:
        yield len(outcome.claims)
    if outcome.ok:
        yield len(outcome.findings)
    yield from Counter(finding.severity for finding in outcome.findings).values()
    yield from (len(cast(Sized, node)) for node in _nodes(outcome.output) if isinstance(node, dict | list))


def _less_precise(date: str) -> Iterator[str]:
    """The date and all it implies: its year, month and quarter, and the day of any year."""
    yield date
    year, _, rest = date.partition("-")
    if not year.isdigit():
        return
    yield year
    month, _, day = rest.partition("-")
    if not month.isdigit():
        yield month
        return
    yield from (f"{year}-{month}", f"{year}-Q{(int(month) + 2) // 3}", f"--{month}")
    if day:
        yield f"--{month}-{day}"


def _unscaled_values(figure: Figure) -> Iterator[str]:
    """5.6 of "5.6 billion": what stands in a column of billions, or before a word for it in another language."""
    digits = _DIGITS.search(figure.text)
    value = _decimal(digits[0].replace(",", ".")) if digits else None
    if value is not None and value and value != _decimal(figure.value):
        yield format(value.normalize(), "f")


def _decimal(value: str) -> Decimal | None:
    """None for what only looks like a number: a version."""
    try:
        return Decimal(value)
    except InvalidOperation:
        return None


def _share(figure: Figure) -> str | None:
    """0.12 of 12 %."""
    value = _decimal(figure.value) if figure.unit == "%" else None
    share = "" if value is None else format((value / 100).normalize(), "f")
    return share if "." in share else None


def _rounded_from(figure: Figure, before: str) -> tuple[Decimal, Decimal] | None:
    """Between what the rounded figure may be rounded from; None where the words before it do not say it is."""
    value = _decimal(figure.value) if figure.kind == "number" else None
    if value is None:
        return None
    step = Decimal(1).scaleb(_last_place(value))
    if _ABOUT.search(before):
        return value - step / 2, value + step / 2
    if _OVER.search(before):
        return value, value + step
    return (value - step, value) if _UNDER.search(before) else None


def _last_place(value: Decimal) -> int:
    """The power of ten of the last digit that is not zero."""
    exponent = value.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
