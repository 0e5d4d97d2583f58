"""Findings and claims of many workers -> each said once, with all its sources and what agreement makes of confidence.

Two items are the same if they have the same place (path, overlapping lines) and category, or if at least `LEAST_ALIKE`
of their words are. A category that says nothing of the defect (bug, security) needs `LEAST_IN_PLACE` of the words too:
one line may have two bugs, but hardly two SQL injections. Never the same are items that differ in a figure, its unit, a
date, a negation, a severity, a path or a name; nor those with opposite words, nor those where one slot of the sentence
is filled by two different words (patients with asthma, patients with diabetes), nor those that say it of others, to
another degree or the other way round (all and some, may and must, Alice pays Bob and Bob pays Alice).

Measured on tests/synthesizer/labelled/duplicates.jsonl, over all pairs of items: precision 1.00 and recall 0.91 on the
part the rules were made with, 1.00 and 0.88 on the part they had not seen. Between 0.4 and 0.7 the threshold changes
next to nothing, since what must not be merged is told by what differs and not by how much.

Items are compared in an order of their own, the wordiest first, and join the first centre they are the same as: how
they are grouped does not depend on the order they come in, and merging what is merged changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from chargehand.synthesizer import merge_equals as agreement
from chargehand.synthesizer.lexicon import stem
from chargehand.synthesizer.similarity import (
    WordIndex,
    dice,
    is_opposed,
    replaces,
    rivals,
    same_force,
    same_names,
    same_order,
    same_start,
)
from chargehand.synthesizer.wording import Wording, wording
from chargehand.values.outcome import Claim, Finding

LEAST_ALIKE: Final = 0.6
LEAST_IN_PLACE: Final = 0.2
_BROAD_CATEGORIES: Final = """
bug bugs defect error errors fault issue issues problem problems correctness logic functional functionality security
vulnerability safety performance efficiency style quality code-quality maintainability readability reliability
robustness stability design architecture general other misc miscellaneous code review warning warnings best-practice
best-practices likely-bug implementation behavior behaviour runtime lint
"""
_BROAD: Final = frozenset(_BROAD_CATEGORIES.split())
# A price a year is not a price, and most tests are not the tests.
_QUALIFIERS: Final = """
second minute hour day night week month quarter year most many several few half partly partially almost nearly sometimes
often usually rarely seldom occasionally always
"""
_NEVER_EXTRA: Final = frozenset(map(stem, _QUALIFIERS.split()))
_MOST_LINES: Final = 200
_MOST_IN_PLACE: Final = 32
_SEPARATORS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An item as it is compared. Only entries of equal scope can be the same."""

    text: str
    wording: Wording
    scope: Hashable
    category: str = ""
    lines: range | None = None


def merge_claims(claims: Sequence[Claim], workers: Mapping[str, str] | None = None) -> tuple[Claim, ...]:
    """Claims that say the same as one, in the order of first appearance; `workers` names each task's worker."""
    merged: list[Claim] = []
    # Claims in the same words are the same whatever else there is: only one of each is compared.
    alike: dict[str, list[int]] = {}
    for number, claim in enumerate(claims):
        alike.setdefault(claim.statement, []).append(number)
    each = list(alike.values())
    for group, middle in _group_entries([_of_claim(statement) for statement in alike]):
        said = [claims[number] for number in sorted(chain.from_iterable(each[place] for place in group))]
        centre = each[middle][0]
        merged.append(
            claims[centre]
            if len(said) == 1
            else claims[centre].model_copy(
                update={
                    "confidence": agreement.confidence([(c.confidence, c.sources) for c in said], workers or {}),
                    "sources": agreement.sources(c.sources for c in said),
                }
            )
        )
    return tuple(merged)


def merge_findings(findings: Sequence[Finding], workers: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Findings that say the same as one, in the order of first appearance; `workers` names each task's worker."""
    merged: list[Finding] = []
    for group, centre in _group_entries([_of_finding(finding) for finding in findings]):
        said = [findings[number] for number in group]
        suggestions = (f.suggestion for f in (findings[centre], *said) if f.suggestion)
        merged.append(
            findings[centre]
            if len(said) == 1
            else findings[centre].model_copy(
                update={
                    "suggestion": next(suggestions, None),
                    "confidence": agreement.confidence([(f.confidence, f.sources) for f in said], workers or {}),
                    "sources": agreement.sources(f.sources for f in said),
                }
            )
        )
    return tuple(merged)


def same_place(one: Finding, other: Finding) -> bool:
    """Whether both are about the same file, or both about none, and have a line in common if they name lines."""
    if _path(one) != _path(other):
        return False
    mine, theirs = lines_of(one), lines_of(other)
    return mine is None or theirs is None or _overlap(mine, theirs)


def differ_in_severity_alone(one: Finding, other: Finding) -> bool:
    """Whether they would be one finding if they were equally severe."""
    if one.severity == other.severity:
        return False
    mine, theirs = _of_finding(one), _of_finding(other.model_copy(update={"severity": one.severity}))
    return mine.scope == theirs.scope and _same(mine, theirs)


def _of_claim(statement: str) -> _Entry:
    said = wording(statement)
    return _Entry(statement, said, (said.amounts, said.negated, said.tail))


def _of_finding(finding: Finding) -> _Entry:
    said = wording(finding.message)
    path = _path(finding)
    return _Entry(
        finding.message,
        said,
        (said.amounts, said.negated, said.tail, finding.severity, path),
        _SEPARATORS.sub("-", finding.category.casefold()).strip("-") if path else "",
        lines_of(finding) if path else None,
    )


def lines_of(finding: Finding) -> range | None:
    if finding.line is None:
        return None
    return range(finding.line, max(finding.line, finding.end_line or finding.line) + 1)


def _path(finding: Finding) -> str | None:
    return finding.path.removeprefix("./") if finding.path else None


def _group_entries(entries: Sequence[_Entry]) -> Iterator[tuple[list[int], int]]:
    """The numbers of the entries that are the same, with that of their centre, in the order of first appearance."""
    centres = _Centres()
    groups: dict[int, list[int]] = {}
    for number in sorted(range(len(entries)), key=lambda number: _rank(entries[number])):
        groups.setdefault(centres.place(number, entries[number]), []).append(number)
    for group in groups.values():
        group.sort()
    yield from sorted(((group, centre) for centre, group in groups.items()), key=lambda pair: pair[0][0])


def _rank(entry: _Entry) -> tuple[int, str, int, int, str]:
    lines = entry.lines or range(0)
    return -len(entry.wording.bag), entry.text, -len(lines), lines.start, entry.category


class _Centres:
    """The entries that others join, found by equal words, by place and by shared words."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, _Entry]] = []
        self._index = WordIndex(lambda wording: wording.bag)
        self._equal: dict[Hashable, list[int]] = {}
        self._at: dict[Hashable, list[int]] = {}

    def place(self, number: int, entry: _Entry) -> int:
        """The number of the centre the entry joins: its own if it is the same as none."""
        for centre in self._near(entry):
            theirs, other = self._entries[centre]
            if _same(other, entry):
                return theirs
        self._add(number, entry)
        return number

    def _near(self, entry: _Entry) -> Iterator[int]:
        yield from self._equal.get((entry.scope, entry.wording.bag), ())
        seen: set[int] = set()
        for place in _places(entry):
            for centre in self._at.get(place, ()):
                if centre not in seen:
                    seen.add(centre)
                    yield centre
            if len(seen) >= _MOST_IN_PLACE:
                break
        for _, centre in self._index.alike(entry.wording, LEAST_ALIKE, entry.scope):
            yield centre

    def _add(self, number: int, entry: _Entry) -> None:
        centre = self._index.add(entry.wording, entry.scope)
        self._entries.append((number, entry))
        for key, held in [
            *(((entry.scope, entry.wording.bag), self._equal),),
            *((place, self._at) for place in _places(entry)),
        ]:
            centres = held.setdefault(key, [])
            if len(centres) < _MOST_IN_PLACE:
                centres.append(centre)


def _places(entry: _Entry) -> Iterator[Hashable]:
    if entry.category and entry.lines is not None:
        for line in entry.lines[:_MOST_LINES]:
            yield entry.scope, entry.category, line


def _same(one: _Entry, other: _Entry) -> bool:
    if one.lines is not None and other.lines is not None and not _overlap(one.lines, other.lines):
        return False
    mine, theirs = one.wording, other.wording
    if not same_names(mine, theirs) or (mine.bag ^ theirs.bag) & _NEVER_EXTRA:
        return False
    placed = bool(one.category) and one.category == other.category and one.lines is not None and other.lines is not None
    if not placed and (
        dice(mine.bag, theirs.bag) < LEAST_ALIKE or replaces(mine, theirs) or not same_start(mine, theirs)
    ):
        return False
    if placed and _is_broad(one.category) and dice(mine.bag, theirs.bag) < LEAST_IN_PLACE:
        return False
    if is_opposed(mine, theirs) or not same_force(mine, theirs, placed=placed) or not same_order(mine, theirs):
        return False
    return not rivals(mine, theirs)


def _is_broad(category: str) -> bool:
    return category in _BROAD or category.endswith("-issue")


def _overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop
