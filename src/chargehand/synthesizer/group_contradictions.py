"""Pairs of statements and rulings on them -> contradictions, one for each subject, resolved or left open.

A pair that a judge calls compatible is not a contradiction. Pairs that share a statement are one contradiction. Pairs
of the same tasks about the same subject are one too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from chargehand.synthesizer.statements import Statement
from chargehand.values.outcome import Contradiction, Finding

Verdict: TypeAlias = Literal["first", "second", "both", "neither", "unclear"]
# A verdict its own judge is less sure of than this decides nothing.
LEAST_CONFIDENCE = 50
NOT_JUDGED = "No model has judged it."
AT_ODDS = "The verdicts on its pairs do not fit together."


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements of different tasks that cannot both be true, or seem so; the subject is what they are about."""

    first: Statement
    second: Statement
    subject: str = field(default="", compare=False)

    @property
    def about(self) -> str:
        return self.subject or " ".join(self.first.text.split())[:120].rstrip(" .")

    @property
    def reverse(self) -> Pair:
        return Pair(self.second, self.first, self.subject)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided on a pair, and why."""

    verdict: Verdict
    reason: str
    cause: str | None = None
    confidence: int | None = None

    @property
    def decides(self) -> bool:
        return self.verdict != "unclear" and (self.confidence is None or self.confidence >= LEAST_CONFIDENCE)

    @property
    def is_compatible(self) -> bool:
        """Whether the pair is not a contradiction after all."""
        return self.decides and self.verdict == "both"

    @property
    def text(self) -> str:
        return self.reason if self.confidence is None else f"{self.reason.rstrip('.')} (confidence {self.confidence})"


# Pairs in the order in which they were found; None for one that no judge has ruled on.
Rulings: TypeAlias = dict[Pair, Ruling | None]


@dataclass(slots=True)
class Same:
    """Texts of statements, and findings, that the judge calls equivalent. Grows as the answers arrive."""

    statements: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    findings: list[tuple[Finding, ...]] = field(default_factory=list[tuple[Finding, ...]])


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Statements about one subject that cannot all be true."""

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
        """The verdict in words: what is true."""
        if not self.resolved:
            return None
        return "; ".join(each.with_task for each in self.upheld) or "None of it holds."

    def contradiction(self) -> Contradiction:
        return Contradiction(
            subject=self.subject,
            claims=tuple(each.with_task for each in self.statements),
            cause=self.cause,
            verdict=self.verdict,
            reason=self.reason or None,
            resolved=self.resolved,
        )


def disagreements(rulings: Mapping[Pair, Ruling | None]) -> tuple[Disagreement, ...]:
    """The contradictions in the order in which they were found; a pair without a ruling is open."""
    pairs = [pair for pair, ruling in rulings.items() if ruling is None or not ruling.is_compatible]
    return tuple(_disagreement(group, [rulings[pair] for pair in group]) for group in _connect_pairs(pairs))


def compatible(rulings: Mapping[Pair, Ruling | None]) -> tuple[Disagreement, ...]:
    """The pairs that only seem to disagree: for the writer of the answer, and not part of the report."""
    return tuple(
        _disagreement([pair], [ruling])
        for pair, ruling in rulings.items()
        if ruling is not None and ruling.is_compatible
    )


def _connect_pairs(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """The pairs that share a statement, or tasks and subject, in the order of their first."""
    roots: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        while (above := roots.setdefault(node, node)) is not node:
            roots[node] = roots[above]
            node = above
        return node

    pairs = list(pairs)
    for pair in pairs:
        same = (frozenset((pair.first.task, pair.second.task)), " ".join(pair.about.casefold().split()))
        for node in (pair.second, same):
            roots[root(node)] = root(pair.first)
    groups: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(root(pair.first), []).append(pair)
    return list(groups.values())


def _disagreement(pairs: Sequence[Pair], rulings: Sequence[Ruling | None]) -> Disagreement:
    subject = pairs[0].about
    statements = tuple(dict.fromkeys(statement for pair in pairs for statement in (pair.first, pair.second)))
    open_ = [ruling for ruling in rulings if ruling is None or not ruling.decides]
    if open_:
        reasons = _distinct(NOT_JUDGED if ruling is None else ruling.text for ruling in open_)
        causes = _distinct(ruling.cause for ruling in open_ if ruling is not None and ruling.cause)
        return Disagreement(subject, statements, reason=reasons, cause=causes or None)
    upheld: set[Statement] = set()
    rejected: set[Statement] = set()
    decided = [ruling for ruling in rulings if ruling is not None]
    for pair, ruling in zip(pairs, decided, strict=True):
        (upheld if ruling.verdict in ("first", "both") else rejected).add(pair.first)
        (upheld if ruling.verdict in ("second", "both") else rejected).add(pair.second)
    reasons = _distinct(ruling.text for ruling in decided)
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
