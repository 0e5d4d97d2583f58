"""All findings of a review -> the findings worth showing, and the reason against each of the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from chargehand.apps.review.analyzers.categories import CATEGORIES, GENERIC, SECURITY
from chargehand.apps.review.analyzers.confidence import adjusted_confidence
from chargehand.apps.review.analyzers.source_files import is_test
from chargehand.apps.review.analyzers.suppression import EVERYTHING, silenced_categories
from chargehand.apps.review.change import Change
from chargehand.apps.review.choices import SEVERITIES
from chargehand.apps.review.declared_names import declared_builtins
from chargehand.apps.review.model_readers import READERS
from chargehand.apps.review.source_lines import SourceLines, fingerprints
from chargehand.apps.review.statement_spans import Extents
from chargehand.synthesizer.merge_duplicates import merge_findings
from chargehand.trace.number_text import several
from chargehand.values.outcome import Finding, Severity

# About removed code: no line of the new version can be the changed one.
_ABSENT = frozenset({"removed-check"})
_KNOWN = "in the baseline"
# The most findings of one category to show in a file; critical findings are all shown.
MOST_ALIKE = 5
_ALIKE = f"like {MOST_ALIKE} shown of the same file"
# For a change, findings of severity `info` are only counted: any linter reports them, or everybody sees them. These
# categories are listed: a person made the remark about this place.
_LISTED = frozenset({"review-comment"})
_SMALL = "small"
# Security is not called small. The note names the places, up to this number.
_SECURITY = "security of severity info"
_MOST_PLACES = 5
_UNKNOWN = re.compile(r"Undefined name `(\w{3,})`")
_FILES_ALIKE = 3
# About removed lines: the given line is only the place where they were.
_OF_THE_CHANGE = frozenset({"fixed-before", "commit-instruction"})


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with its final confidence; `why` is the reason to leave it out, None if it is shown."""

    finding: Finding
    fingerprint: str
    why: str | None = None
    # The reasons for the confidence, in one line: `: bandit B608, -25 in test code`.
    reasons: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    shown: tuple[Judged, ...]
    left_out: tuple[Judged, ...]
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(each.finding for each in self.shown)

    @property
    def known(self) -> tuple[Judged, ...]:
        """Findings in the baseline and findings that are only counted. They stay in saved reviews.

        So one review can be the baseline of the next, and findings that are only counted now are not reported later.
        """
        return tuple(each for each in self.left_out if each.why in (_KNOWN, _ALIKE, _SMALL, _SECURITY))

    def at_least(self, severity: Severity) -> int:
        """How many shown findings are as severe as this, or more."""
        gate = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return sum(each.finding.severity in gate for each in self.shown)


def select(
    findings: Iterable[Finding],
    change: Change,
    source: SourceLines,
    *,
    min_confidence: int,
    baseline: Collection[str] = (),
    later: bool = False,
    small: bool = False,
    all: bool = False,
) -> Selection:
    """Select by place, confidence, baseline and comments, in this order.

    Findings are sorted by file and line. Duplicates are merged, and of many similar ones in a file the first are shown.

    A finding in a file that is not reviewed, or on a line that does not exist, was invented: it is only counted. A
    finding of a model without a place is only counted too. `later`: the files may have changed since, so lines are not
    checked. `small`: small findings are listed too; in a review of whole files they always are. `all`: what is left out
    is listed too, so no note says how to list it.
    """
    tidy = [_tidy(finding, change.files) for finding in findings]
    real = [finding for finding in tidy if _is_there(finding, change, None if later else source)]
    extents = Extents(source)
    placed = sorted(merge_findings(extents.join_findings(real)), key=_place)
    judged: list[Judged] = []
    alike: Counter[tuple[str | None, str]] = Counter()
    unknown = [each for each in placed if each.category == "undefined-name"]
    builtins = declared_builtins(change.home) | _put_in(unknown) if unknown else ()
    for finding, fingerprint in zip(placed, fingerprints(placed, source), strict=True):
        written = _is_written(finding, change, extents)
        confidence = adjusted_confidence(finding, changed=written, test_code=is_test(finding.path or ""))
        reasons = _reasons(finding, confidence, written=written)
        final = finding.model_copy(update={"confidence": confidence, "patch": _usable_patch(finding, source)})
        why = _why_not(final, written, fingerprint, min_confidence, baseline)
        if why is None:
            why = _why_silent(final, source, builtins)
        if why is None and not small and change.changed is not None and is_small(final):
            why = _SECURITY if final.category in SECURITY else _SMALL
        if why is None and final.severity != "critical":
            alike[final.path, final.category] += 1
            why = _ALIKE if alike[final.path, final.category] > MOST_ALIKE else None
        judged.append(Judged(final, fingerprint, why, reasons))
    notes: list[str] = []
    if made_up := len(tidy) - len(real):
        words = several(made_up, "finding")
        notes.append(f"{words} left out: a file or a line is named that is not part of the review.")
    notes += () if all else _describe_unlisted(judged)
    shown, left_out = [each for each in judged if each.why is None], [each for each in judged if each.why is not None]
    return Selection(tuple(shown), tuple(left_out), tuple(notes))


def _describe_unlisted(judged: Iterable[Judged]) -> Iterator[str]:
    """Sentences about findings that are only counted."""
    left_out = [each for each in judged if each.why is not None]
    places = [_place_words(each.finding) for each in left_out if each.why == _SECURITY]
    if places:
        more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
        yield f"Security of severity info, not listed: {', '.join(places[:_MOST_PLACES])}{more}."
    if counts := Counter(each.finding.category for each in left_out if each.why == _SMALL):
        named = ", ".join(f"{count:,} {category}" for category, count in counts.most_common())
        yield f"Small, and not listed: {named}."
    alike = Counter((each.finding.path, each.finding.category) for each in left_out if each.why == _ALIKE)
    for (path, category), count in alike.items():
        yield f"{path}: {count:,} more of {category}."


def _place_words(finding: Finding) -> str:
    line = "" if finding.line is None else f":{finding.line}"
    return f"{finding.category} in {finding.path}{line}"


def _put_in(findings: Iterable[Finding]) -> frozenset[str]:
    """Names that several files use and none defines: a loader adds them. Short names may be equal by chance."""
    paths: dict[str, set[str | None]] = {}
    for finding in findings:
        for name in _UNKNOWN.findall(finding.message):
            paths.setdefault(name, set()).add(finding.path)
    return frozenset(name for name, files in paths.items() if len(files) >= _FILES_ALIKE)


def is_small(finding: Finding) -> bool:
    """Whether a finding of a change is only counted. Findings of a model are not: they were rated."""
    return (
        finding.severity == "info"
        and finding.category not in _LISTED
        and not any(_reader_of(source) for source in finding.sources)
    )


def _why_not(
    finding: Finding, written: bool | None, fingerprint: str, least: int, baseline: Collection[str]
) -> str | None:
    if written is False:
        return "not on a line that changed"
    if (finding.confidence or 0) < least:
        return f"confidence {finding.confidence or 0} is below {least}"
    return _KNOWN if fingerprint in baseline else None


def _usable_patch(finding: Finding, source: SourceLines) -> str | None:
    """The patch, unless a part of it would be hidden: it would then write the mark of the hidden part into the file."""
    return None if finding.patch is None or source.has_secret(finding.patch) else finding.patch


def _reasons(finding: Finding, confidence: int, *, written: bool | None) -> str:
    """The rules or readers that report it, and what its place adds or subtracts."""
    rules = [source.replace(":", " ", 1) for source in finding.sources if ":" in source]
    readers = [source for source in finding.sources if _reader_of(source)]
    said = [", ".join((*rules, *readers))] if rules or readers else []
    if moved := confidence - (50 if finding.confidence is None else finding.confidence):
        where = "off the change" if written is False else "in test code" if moved < 0 else "part of this change"
        said.append(f"{moved:+} {where}")
    return f": {', '.join(said)}" if said else ""


def _why_silent(finding: Finding, source: SourceLines, builtins: Collection[str]) -> str | None:
    """Why a comment in the code, or a list of names in the project's settings, silences it; None if nothing does."""
    for number in {finding.line, finding.end_line}:
        silenced = silenced_categories(source.line(finding.path, number))
        if EVERYTHING in silenced or finding.category in silenced:
            return "silenced by a comment"
    if finding.category == "undefined-name" and any(f"`{name}`" in finding.message for name in builtins):
        return "a name that the project's settings declare, or that several files use"
    return None


def _is_there(finding: Finding, change: Change, source: SourceLines | None) -> bool:
    if finding.path is None:
        # Only a tool, named as `tool:rule`, can report the change as a whole. A model must name a place.
        return not finding.sources or any(":" in source for source in finding.sources)
    if finding.path not in change.files:
        return False
    if finding.line is None:
        return True
    return finding.line >= 1 and (source is None or finding.line <= max(1, source.count(finding.path)))


def _is_written(finding: Finding, change: Change, extents: Extents) -> bool | None:
    """Whether the change wrote the line; None when there is no change, or the finding is about no line of it."""
    if change.changed is None or finding.path is None or finding.category in _ABSENT:
        return None
    ranges = change.changed.get(finding.path)
    if ranges is None:
        return False
    if finding.line is None:
        return None
    if finding.category in _OF_THE_CHANGE:
        return True
    if any(_reader_of(source) for source in finding.sources):
        # A reader also sees removed lines, and can only name a line next to them.
        ranges = (*ranges, *change.beside_removed.get(finding.path, ()))
    start, end = extents.of(finding)
    return any(first <= end and start <= last for first, last in ranges)


def _tidy(finding: Finding, files: Collection[str]) -> Finding:
    """The finding with a path of the tree and a category of the vocabulary: models use their own words."""
    path = finding.path
    if path is not None and path not in files:
        path = path.replace("\\", "/").removeprefix("./")
    category = finding.category if finding.category in CATEGORIES else _generic(finding.sources)
    if (path, category) == (finding.path, finding.category):
        return finding
    return finding.model_copy(update={"path": path, "category": category})


def _generic(sources: Iterable[str]) -> str:
    """The category for other findings of a lens, by the reader's task."""
    for source in sources:
        if reader := _reader_of(source):
            return GENERIC[READERS[reader][0]]
    return GENERIC["bugs"]


def _reader_of(source: str) -> str | None:
    """The reader that has this task."""
    name = source.rpartition("-")[0]
    return name if name in READERS else None


def _place(finding: Finding) -> tuple[str, int, int, str, str]:
    severity = SEVERITIES.index(finding.severity)
    return finding.path or "", finding.line or 0, severity, finding.category, finding.message
