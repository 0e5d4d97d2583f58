"""Findings and claims of many workers -> each listed once, with all its sources and the confidence of agreement.

Claims are the same if they have the same terms in the same order, apart from which of them comes first: "On Mondays the
museum is closed" and "The museum is closed on Mondays". Findings are the same if path and severity are equal, their
lines overlap, and either the category says what the defect is (`sql-injection`, not `bug`) or the terms are the same.
Code does not recognise a paraphrase: an item that is listed twice is better than one that hides another. A judge may
name claims and findings that say the same; code joins them unless their figures, dates or units differ, and findings
unless they are of different places or severities or name different things in code.

The rule for confidence: every worker counts once, with its highest confidence; these are combined as independent
chances of being right, 1 - (1-a)(1-b)..., and never above 99. Two workers with 70 and 60 give 88. If the same worker
says it twice, the confidence stays the same. A worker without a confidence does not raise it either. A confidence of
100 stays 100.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Final

from chargehand.synthesizer.figures import all_digits, figures
from chargehand.synthesizer.word_stems import MOST_CHARACTERS, terms
from chargehand.values.outcome import Claim, Finding

HIGHEST: Final = 99
# Categories of two words that do not say what the defect is. A category of one word never says it.
_BROAD: Final = frozenset({"code-quality", "best-practice", "best-practices", "likely-bug", "test-gap", "code-review"})
_DENIALS: Final = frozenset({"no", "not", "never"})
_SEPARATORS: Final = re.compile(r"[\W_]+")
# What names one thing in code: quoted, called, dotted, or with a capital or an underscore inside.
_NAMED: Final = re.compile(
    r"`[^`\n]{1,80}`|'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|\w+(?:[._]\w+)+|\w+\(\)|\$\w+|[a-z]+[A-Z]\w*|\b[A-Z][A-Z0-9]+\b"
)
# The largest distance in lines between findings that a judge calls the same, and with how many neighbours each is
# compared.
_NEAR: Final = 3
_MOST_NEAR: Final = 20
# A longer text is a rewording only if it begins in the same way.
_LONGEST_TURNED: Final = 40
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = re.compile(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?\b"
)
# What is directly after or before a number and may be its unit: `kg`, `EUR`.
_UNIT_AFTER: Final = re.compile(r"[\s-]?([^\W\d_]{1,3})\b")
_UNIT_BEFORE: Final = re.compile(r"\b([A-Z]{3})\s?\Z")


def merge_claims(
    claims: Sequence[Claim],
    workers: Mapping[str, str] | None = None,
    same: Iterable[Collection[str]] = (),
    apart: Iterable[tuple[str, str]] = (),
) -> tuple[Claim, ...]:
    """Claims that say the same as one, in the order of first appearance; `workers` names each task's worker.

    `same` are statements that a judge says are the same, `apart` pairs of statements that cannot both be true.
    """
    groups: dict[Hashable, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(_wording(claim.statement), []).append(claim)
    return tuple(_merge_claims(group, workers or {}) for group in _join_named(list(groups.values()), same, apart))


def merge_findings(findings: Sequence[Finding], workers: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Findings that say the same as one, in the order of first appearance; `workers` names each task's worker."""
    groups = _same_findings(findings, lambda finding: finding.severity)
    return tuple(_merge_findings([findings[place] for place in group], workers or {}) for group in groups)


def near_findings(findings: Sequence[Finding], tasks: Collection[str]) -> tuple[Finding, ...]:
    """The findings that may equal a finding of another task, in the given order: a judge is asked about them."""
    found: set[int] = set()
    by_place: dict[Hashable, list[int]] = {}
    for place, finding in enumerate(findings):
        by_place.setdefault((_path(finding), finding.severity, finding.line is None), []).append(place)
    for places in by_place.values():
        ordered = sorted(places, key=lambda place: findings[place].line or 0)
        for at, one in enumerate(ordered):
            for other in ordered[at + 1 : at + 1 + _MOST_NEAR]:
                first, second = findings[one], findings[other]
                if _may_be_same(first, second) and _tasks_of(first, tasks).isdisjoint(_tasks_of(second, tasks)):
                    found |= {one, other}
    return tuple(findings[place] for place in sorted(found))


def join_findings(
    findings: Sequence[Finding], same: Iterable[Collection[Finding]], workers: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """Merge the findings that a judge calls the same, unless their places, things in code or values differ."""
    place_of = {_name_of(finding): place for place, finding in enumerate(findings)}
    joined = [[place] for place in range(len(findings))]
    for named in same:
        places = sorted({place_of[_name_of(each)] for each in named if _name_of(each) in place_of})
        for one, other in combinations(places, 2):
            mine, theirs = joined[one], joined[other]
            if mine is not theirs and all(_may_be_same(findings[a], findings[b]) for a, b in product(mine, theirs)):
                mine += theirs
                for place in theirs:
                    joined[place] = mine
    return tuple(
        _merge_findings([findings[each] for each in sorted(places)], workers or {})
        for place, places in enumerate(joined)
        if place == min(places)
    )


def findings_at_odds(findings: Sequence[Finding]) -> Iterator[tuple[int, int]]:
    """The places of findings that are equal except for severity: the first of each severity, in pairs."""
    for group in _same_findings(findings, lambda _: ""):
        first: dict[str, int] = {}
        for place in group:
            first.setdefault(findings[place].severity, place)
        one, *others = first.values()
        yield from ((one, other) for other in others)


# -- what is the same --------------------------------------------------------------------------------------------------


def _wording(text: str) -> Hashable:
    """Equal for texts with the same terms in the same order, whichever term comes first."""
    found = terms(text)
    if not found or len(text) > MOST_CHARACTERS:
        return text
    if not 2 < len(found) <= _LONGEST_TURNED:
        return found
    return min((*found[at:], *found[:at]) for at in range(len(found)))


def _join_named(
    groups: Sequence[list[Claim]], same: Iterable[Collection[str]], apart: Iterable[tuple[str, str]]
) -> list[list[Claim]]:
    """Join the groups that a judge calls the same, unless values differ or the judge also says that they disagree.

    Every statement of one group is compared with every one of the other: a statement without a figure does not join
    two with different ones. The order in which groups are named does not matter.
    """
    place_of = {_wording(group[0].statement): place for place, group in enumerate(groups)}
    named = [sorted({place_of[each] for each in map(_wording, texts) if each in place_of}) for texts in same]
    excluded = {frozenset(place_of.get(_wording(text)) for text in pair) for pair in apart}
    joined = [[place] for place in range(len(groups))]

    def may_join(one: int, other: int) -> bool:
        first, second = groups[one][0].statement, groups[other][0].statement
        return frozenset((one, other)) not in excluded and _values_agree(first, second)

    for one, other in sorted({pair for places in named for pair in combinations(places, 2)}):
        mine, theirs = joined[one], joined[other]
        if mine is not theirs and all(may_join(*places) for places in product(mine, theirs)):
            mine += theirs
            for place in theirs:
                joined[place] = mine
    return [
        [claim for each in sorted(places) for claim in groups[each]]
        for place, places in enumerate(joined)
        if place == min(places)
    ]


def _values_agree(one: str, other: str) -> bool:
    """Whether figures and dates, signs such as `%`, and units are each equal, or only one of the texts has any."""
    return all(
        mine == theirs or not mine or not theirs
        for mine, theirs in zip(_stated_values(one), _stated_values(other), strict=True)
    )


def _stated_values(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The digits of a text with the numbers of its months, the signs of its figures, and their units in letters."""
    values = {str(_MONTHS.index(month.casefold()) + 1) for month in _MONTH.findall(text)}
    signs: set[str] = set()
    units: set[str] = set()
    for figure in all_digits(text):
        values.add(figure.value)
        signs.add(figure.sign)
        near = (_UNIT_AFTER.match(text, figure.end), _UNIT_BEFORE.search(text, max(0, figure.start - 5), figure.start))
        units.update(match[1] for match in near if match and terms(match[1]) and not _MONTH.match(match[1]))
    return frozenset(values), frozenset(signs - {""}), frozenset(units)


def _defect(finding: Finding) -> Hashable:
    """What a finding is about, without its place: its category if that names the defect, else its wording.

    At one place the order of the words does not matter. Two unused imports on one line are two findings.
    """
    category, message = _SEPARATORS.sub("-", finding.category.casefold()).strip("-"), finding.message
    if not finding.path or finding.line is None or len(message) > MOST_CHARACTERS:
        return _wording(message)
    own = frozenset(terms(message))
    if "-" not in category or category in _BROAD or category.endswith("-issue"):
        return own or message
    return category, frozenset(_NAMED.findall(message)), frozenset(_values(message)), own.isdisjoint(_DENIALS)


def _values(text: str) -> Iterator[str]:
    return (figure.value for figure in figures(text[:MOST_CHARACTERS]))


def _may_be_same(one: Finding, other: Finding) -> bool:
    """Whether nothing that code can compare differs: place, severity, what is named in code, and values."""
    if (_path(one), one.severity, one.line is None) != (_path(other), other.severity, other.line is None):
        return False
    first, second = sorted((one, other), key=lambda finding: finding.line or 0)
    if (second.line or 0) > max(first.line or 0, first.end_line or 0) + _NEAR:
        return False
    mine, theirs = (frozenset(_NAMED.findall(each.message)) for each in (one, other))
    return (mine == theirs or not mine or not theirs) and _values_agree(one.message, other.message)


def _tasks_of(finding: Finding, tasks: Collection[str]) -> frozenset[str]:
    return frozenset(source for source in finding.sources if source in tasks)


def _name_of(finding: Finding) -> Hashable:
    """The identity of a finding, which does not depend on its confidence."""
    return _path(finding), finding.line, finding.severity, finding.message


def _same_findings(findings: Sequence[Finding], apart: Callable[[Finding], str]) -> list[list[int]]:
    """The places of findings of one path and defect whose lines overlap, in the order of their first.

    Findings for which `apart` differs are not the same.
    """
    alike: dict[Hashable, list[int]] = {}
    for place, finding in enumerate(findings):
        key = (_path(finding), apart(finding), finding.line is None, _defect(finding))
        alike.setdefault(key, []).append(place)
    groups = [group for places in alike.values() for group in _overlapping(places, findings)]
    return sorted(groups, key=lambda group: group[0])


def _overlapping(places: Sequence[int], findings: Sequence[Finding]) -> Iterator[list[int]]:
    """The places in groups whose lines overlap; those without a line are one group."""
    group: list[int] = []
    end = 0
    for place in sorted(places, key=lambda place: findings[place].line or 0):
        line = findings[place].line or 0
        if group and line > end:
            yield sorted(group)
            group, end = [], 0
        group.append(place)
        end = max(end, line, findings[place].end_line or 0)
    yield sorted(group)


def _path(finding: Finding) -> str | None:
    return finding.path.removeprefix("./") if finding.path else None


# -- what becomes of it ------------------------------------------------------------------------------------------------


def _merge_claims(group: Sequence[Claim], workers: Mapping[str, str]) -> Claim:
    """The first of the statements that has a figure, else the first."""
    if len(group) == 1:
        return group[0]
    kept = next((claim for claim in group if any(_values(claim.statement))), group[0])
    confidence = _confidence([(claim.confidence, claim.sources) for claim in group], workers)
    return kept.model_copy(update={"confidence": confidence, "sources": _sources(c.sources for c in group)})


def _merge_findings(group: Sequence[Finding], workers: Mapping[str, str]) -> Finding:
    """The longest of the messages, with the first suggestion there is."""
    if len(group) == 1:
        return group[0]
    kept = min(group, key=lambda finding: (-len(finding.message), finding.message, finding.line or 0))
    suggestions = (finding.suggestion for finding in (kept, *group) if finding.suggestion)
    patches = (finding.patch for finding in (kept, *group) if finding.patch)
    return kept.model_copy(
        update={
            "suggestion": next(suggestions, None),
            "patch": next(patches, None),
            "confidence": _confidence([(finding.confidence, finding.sources) for finding in group], workers),
            "sources": _sources(finding.sources for finding in group),
        }
    )


def _sources(items: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All sources, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(source for item in items for source in item))


def _confidence(items: Sequence[tuple[int | None, Sequence[str]]], workers: Mapping[str, str]) -> int | None:
    """The confidence of items with their sources, by the rule above; `workers` names the worker of a task."""
    stated = sorted(
        ((sure, _workers_of(sources, workers)) for sure, sources in items if sure is not None),
        key=lambda item: -item[0],
    )
    if not stated:
        return None
    counted: set[str] = set()
    doubt = 1.0
    for sure, own in stated:
        if counted.isdisjoint(own):
            doubt *= 1 - sure / 100
            counted |= own
    return max(stated[0][0], min(HIGHEST, round(100 * (1 - doubt))))


def _workers_of(sources: Sequence[str], workers: Mapping[str, str]) -> frozenset[str]:
    """The workers behind an item. A task whose worker is not known counts as one: the first source is a task."""
    tasks = [source for source in sources if source in workers] or list(sources[:1])
    return frozenset(f"worker {workers[task]}" if task in workers else f"task {task}" for task in tasks)
