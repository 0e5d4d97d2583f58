"""Outcomes -> the figures and urls in them, so the figures and urls of an answer can be looked up.

A figure is held where the same digits are, in whatever spelling (`figures.py`). Also:

- a minus may be said in words ("fell by 5 %" of -5 %), but a written one must be there;
- 12 % is held by a share of 0.12, and 5.6, as in a column of billions, by 5.6 billion;
- 3 is held by three, up to twelve;
- 4,800 is held by 4,812: a value rounded to two digits or more, but not to tens, since 2020 is not about 2021.

Sums, averages, lengths of lists and converted units are not held unless a result states them. The unit of a figure and
its subject are not checked: that is for a reviewer. docs/adr/0008 has the measurement behind these rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import cast

from chargehand.synthesizer.figures import Figure, all_digits, plain
from chargehand.text.urls import normal, urls
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome

# How many characters of one result are read: many times what a synthesizer is given of it.
MOST_CHARACTERS = 1_000_000
# More tasks, or more characters in their results, are read in a thread: the loop may be blocked for at most 100 ms.
MOST_TASKS_ON_LOOP, MOST_ON_LOOP = 50, 100_000
# The characters of a finding besides its message and what it suggests.
_A_PLACE = 150
# Larger values, and values that are not numbers, are not compared.
_LARGEST = 10**30
_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS = {name: str(number) for number, name in enumerate(_NAMES, 2)}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)


class ResultIndex:
    """The figures and urls in all results of a run. Results are read when a figure is first looked up."""

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self._outcomes = outcomes
        # The values of the tasks that were read so far.
        self._values: dict[str, frozenset[str]] = {}

    def has(self, figure: Figure, tasks: Collection[str]) -> bool:
        """Whether one of these tasks holds the figure, or what it is rounded from.

        Usually one of them has the exact figure: the other results of the run are read only if none has.
        """
        held = tuple(readings(figure))
        return any(not self._values_of(task).isdisjoint(held) for task in tasks) or self.has_any(
            self._rounding_to(figure), tasks
        )

    def has_any(self, values: Iterable[str], tasks: Collection[str]) -> bool:
        return any(task in tasks for value in values for task in self._holders.get(value, ()))

    @cached_property
    def urls(self) -> frozenset[str]:
        """All urls of all results in their normal form."""
        parts = chain.from_iterable(map(_texts, self._outcomes.values()))
        return frozenset(normal(url) for text in parts for url in urls(text))

    def _values_of(self, task: str) -> frozenset[str]:
        if task not in self._values:
            self._values[task] = values_in("\n".join(_texts(self._outcomes[task])))
        return self._values[task]

    @cached_property
    def _holders(self) -> dict[str, list[str]]:
        """Each value with the tasks that have it."""
        holders: dict[str, list[str]] = {}
        for task in self._outcomes:
            for value in self._values_of(task):
                holders.setdefault(value, []).append(task)
        return holders

    def _rounding_to(self, figure: Figure) -> Iterator[str]:
        low, high = _rounding_range(figure)
        at = bisect_left(self._by_size, (low, ""))
        while high and at < len(self._by_size) and self._by_size[at][0] <= high:
            yield self._by_size[at][1]
            at += 1

    @cached_property
    def _by_size(self) -> list[tuple[float, str]]:
        return sorted((abs(float(value)), value) for value in self._holders if value.count(".") < 2 and len(value) < 30)


def takes_long(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether reading these results would block the loop for too long."""
    left = MOST_ON_LOOP if len(outcomes) <= MOST_TASKS_ON_LOOP else -1
    # Findings are only estimated: a review has hundreds.
    found = (finding for outcome in outcomes.values() for finding in outcome.findings)
    left -= sum(len(each.message) + len(each.suggestion or "") + len(each.patch or "") + _A_PLACE for each in found)
    parts = chain.from_iterable(chain(_own_texts(each), _leaves(each.output)) for each in outcomes.values())
    while left >= 0 and (text := next(parts, None)) is not None:
        left -= len(text)
    return left < 0


def rounds_to(figure: Figure, other: Figure) -> bool:
    """Whether two figures are equal, or the first is the second one rounded."""
    if figure.value == other.value:
        return True
    low, high = _rounding_range(figure)
    return bool(high) and other.value.count(".") < 2 and low <= abs(float(other.value)) <= high


def _rounding_range(figure: Figure) -> tuple[float, float]:
    """The range of values that round to the figure; zeros for a figure that is not rounded."""
    whole, _, fraction = figure.value.lstrip("-").partition(".")
    place = -len(fraction) or len(whole) - len(whole.rstrip("0"))
    exact = place == 1 or len((whole + fraction).strip("0")) < 2 or (fraction and figure.text.rstrip("% ")[-1:] == "0")
    if exact or "." in fraction or len(whole) > 30:
        return 0, 0
    value, half = float(f"{whole}.{fraction}"), 10.0**place / 2
    return value - half, value + half


def values_in(text: str) -> frozenset[str]:
    """All values that can be looked up in a text."""
    found = all_digits(_WORD.sub(lambda word: _WORDS[word[0].lower()], text[:MOST_CHARACTERS]))
    return frozenset(value for figure in found for value in (figure.value, figure.unscaled))


def readings(figure: Figure) -> Iterator[str]:
    """The values that hold a figure: its own, the same below zero, and of a percentage the share of one."""
    yield figure.value
    yield f"-{figure.value}"
    if figure.sign == "%":
        yield plain(figure.value, -2)


def _texts(outcome: Outcome) -> Iterator[str]:
    """Every text and number of an outcome, and nothing about how it was made but its attempts."""
    yield from _own_texts(outcome)
    for finding in outcome.findings:
        yield from _leaves(finding.to_json())
    yield from _leaves(outcome.output)


def _own_texts(outcome: Outcome) -> Iterator[str]:
    """The same without findings and output."""
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


def _leaves(data: JSON) -> Iterator[str]:
    """Every text, key and number in the data. Without recursion: a worker's output may have any depth."""
    waiting: list[JSON] = [data]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += (each for field in cast(dict[str, JSON], node).items() for each in field)
        elif isinstance(node, list):
            waiting += cast(list[JSON], node)
        elif isinstance(node, str):
            yield node
        elif isinstance(node, int | float) and not isinstance(node, bool) and abs(node) < _LARGEST:
            # Not at the beginning of a line, where a number may be that of a list.
            yield f"= {format(Decimal(str(node)), 'f')}"
