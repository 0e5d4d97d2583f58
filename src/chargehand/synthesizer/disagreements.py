"""Candidate contradictions and rulings on them -> disagreements, one for each subject, resolved or left open.

A pair that a judge calls compatible is no part of any: what it held together falls apart into the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from chargehand.synthesizer.contradictions import ContradictionCandidate, Statement
from chargehand.values.outcome import Contradiction

Verdict = Literal["first", "second", "both", "neither", "unclear"]
# A verdict its own judge is less sure of than this decides nothing.
LEAST_CONFIDENCE = 50
NOT_JUDGED = "No model has judged it."
AT_ODDS = "The verdicts on its pairs do not fit together."


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided on one pair, by whom it says itself."""

    verdict: Verdict
    reason: str
    cause: str | None = None
    confidence: int | None = None

    @property
    def decides(self) -> bool:
        return self.verdict != "unclear" and (self.confidence is None or self.confidence >= LEAST_CONFIDENCE)

    @property
    def compatible(self) -> bool:
        """Whether the pair is no contradiction after all."""
        return self.decides and self.verdict == "both"

    @property
    def told(self) -> str:
        return self.reason if self.confidence is None else f"{self.reason} (confidence {self.confidence})"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Statements about one subject that cannot all hold as they stand."""

    subject: str
    statements: tuple[Statement, ...]
    rejected: tuple[Statement, ...] = ()
    resolved: bool = False
    reason: str = ""
    cause: str | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(statement.task for statement in self.statements))

    @property
    def upheld(self) -> tuple[Statement, ...]:
        return tuple(statement for statement in self.statements if statement not in self.rejected)

    @property
    def verdict(self) -> str | None:
        """In words: what holds."""
        if not self.resolved:
            return None
        return "; ".join(each.told for each in self.upheld) or "None of it holds."

    def contradiction(self) -> Contradiction:
        return Contradiction(
            subject=self.subject,
            claims=tuple(each.told for each in self.statements),
            cause=self.cause,
            verdict=self.verdict,
            reason=self.reason or None,
            resolved=self.resolved,
        )


def disagreements(
    candidates: Sequence[ContradictionCandidate], rulings: Mapping[int, Ruling]
) -> tuple[Disagreement, ...]:
    """Those about the same subject are one. `rulings` are by the candidate's place; one without any stays open."""
    groups: dict[str, list[int]] = {}
    for place, candidate in enumerate(candidates):
        ruling = rulings.get(place)
        if ruling is None or not ruling.compatible:
            groups.setdefault(" ".join(candidate.subject.casefold().split()), []).append(place)
    return tuple(
        _disagreement([candidates[place] for place in places], [rulings.get(place) for place in places])
        for group in groups.values()
        for places in _connected_groups(group, candidates)
    )


def compatible(candidates: Sequence[ContradictionCandidate], rulings: Mapping[int, Ruling]) -> tuple[Disagreement, ...]:
    """The pairs that only seem to disagree: for who writes the answer, and no part of the report."""
    return tuple(
        _disagreement([candidates[place]], [ruling]) for place, ruling in sorted(rulings.items()) if ruling.compatible
    )


def _connected_groups(places: Sequence[int], candidates: Sequence[ContradictionCandidate]) -> list[list[int]]:
    """The places of candidates that hang together through a statement, in the order of their first."""
    roots: dict[Statement, Statement] = {}

    def root(statement: Statement) -> Statement:
        while (above := roots.setdefault(statement, statement)) is not statement:
            roots[statement] = roots[above]
            statement = above
        return statement

    for place in places:
        roots[root(candidates[place].second)] = root(candidates[place].first)
    parts: dict[Statement, list[int]] = {}
    for place in places:
        parts.setdefault(root(candidates[place].first), []).append(place)
    return list(parts.values())


def _disagreement(pairs: Sequence[ContradictionCandidate], rulings: Sequence[Ruling | None]) -> Disagreement:
    subject = pairs[0].subject
    statements = tuple(dict.fromkeys(statement for pair in pairs for statement in (pair.first, pair.second)))
    open_ = [ruling for ruling in rulings if ruling is None or not ruling.decides]
    if open_:
        reasons = _distinct(NOT_JUDGED if ruling is None else ruling.told for ruling in open_)
        causes = _distinct(ruling.cause for ruling in open_ if ruling is not None and ruling.cause)
        return Disagreement(subject, statements, reason=reasons, cause=causes or None)
    upheld: set[Statement] = set()
    rejected: set[Statement] = set()
    decided = [ruling for ruling in rulings if ruling is not None]
    for pair, ruling in zip(pairs, decided, strict=True):
        (upheld if ruling.verdict in ("first", "both") else rejected).add(pair.first)
        (upheld if ruling.verdict in ("second", "both") else rejected).add(pair.second)
    reasons = _distinct(ruling.told for ruling in decided)
    if upheld & rejected:
        return Disagreement(subject, statements, reason=f"{AT_ODDS} {reasons}")
    return Disagreement(
        subject,
        statements,
        rejected=tuple(statement for statement in statements if statement in rejected),
        resolved=True,
        reason=reasons,
        cause=_distinct(ruling.cause for ruling in decided if ruling.cause) or None,
    )


def _distinct(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(text.strip() for text in texts if text.strip()))
