"""All findings of a review -> those worth showing, and for each of the others why it is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from chargehand.analyzers.categories import CATEGORIES, GENERIC
from chargehand.analyzers.confidence import adjusted
from chargehand.analyzers.sources import is_test
from chargehand.outcome import Finding, Severity
from chargehand.review.change import Change
from chargehand.review.readers import READERS
from chargehand.review.source import Source, fingerprints
from chargehand.synthesizer.dedupe import merge_findings

# Most severe first.
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with its final confidence; `why` says why it is left out, None when it is shown."""

    finding: Finding
    fingerprint: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    shown: tuple[Judged, ...]
    left_out: tuple[Judged, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(each.finding for each in self.shown)

    def at_least(self, severity: Severity) -> int:
        """How many shown findings are as severe as this, or more."""
        gate = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return sum(each.finding.severity in gate for each in self.shown)


def select(
    findings: Iterable[Finding], change: Change, source: Source, *, min_confidence: int, baseline: Collection[str] = ()
) -> Selection:
    """By place, confidence and baseline, in this order. Sorted by file and line, what is said twice as one."""
    placed = sorted(merge_findings([_tidy(finding) for finding in findings]), key=_place)
    judged: list[Judged] = []
    for finding, fingerprint in zip(placed, fingerprints(placed, source), strict=True):
        written = _is_written(finding, change)
        confidence = adjusted(finding, changed=written, test_code=is_test(finding.path or ""))
        final = finding.model_copy(update={"confidence": confidence})
        judged.append(Judged(final, fingerprint, _why_not(final, written, fingerprint, min_confidence, baseline)))
    return Selection(
        tuple(each for each in judged if each.why is None), tuple(each for each in judged if each.why is not None)
    )


def _why_not(
    finding: Finding, written: bool | None, fingerprint: str, least: int, baseline: Collection[str]
) -> str | None:
    if written is False:
        return "not on a line that changed"
    if (finding.confidence or 0) < least:
        return f"confidence {finding.confidence or 0} is below {least}"
    return "in the baseline" if fingerprint in baseline else None


def _is_written(finding: Finding, change: Change) -> bool | None:
    """Whether the change wrote the line; None when there is no change, or the finding is about all of it."""
    if change.changed is None or finding.path is None:
        return None
    ranges = change.changed.get(finding.path)
    if ranges is None:
        return False
    if finding.line is None:
        return None
    return any(first <= finding.line <= last for first, last in ranges)


def _tidy(finding: Finding) -> Finding:
    """With a path as the tree has it and a category of the vocabulary: models have words of their own."""
    path = None if finding.path is None else finding.path.replace("\\", "/").removeprefix("./")
    category = finding.category if finding.category in CATEGORIES else _generic(finding.sources)
    if (path, category) == (finding.path, finding.category):
        return finding
    return finding.model_copy(update={"path": path, "category": category})


def _generic(sources: Iterable[str]) -> str:
    """The category for whatever else a lens finds, by the reader's task."""
    for source in sources:
        if reader := READERS.get(source.rpartition("-")[0]):
            return GENERIC[reader[0]]
    return GENERIC["bugs"]


def _place(finding: Finding) -> tuple[str, int, int, str, str]:
    severity = SEVERITIES.index(finding.severity)
    return finding.path or "", finding.line or 0, severity, finding.category, finding.message
