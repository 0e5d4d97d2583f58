"""Selected findings -> a SARIF 2.1.0 log, for code scanning services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from chargehand import __version__
from chargehand.apps.review.selection import Judged, Selection
from chargehand.values.outcome import Finding, Severity
from chargehand.values.report import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "chargehand/v1"
_LEVELS: dict[Severity, str] = {"critical": "error", "warning": "warning", "info": "note"}


def sarif(report: Report, selection: Selection, notes: Sequence[str] = (), *, all: bool) -> dict[str, Any]:
    """One run of one tool. Findings that were left out are included only with `all`, as suppressed. Findings in the
    baseline are always included, so that one log can be the baseline of the next. `notes` are about what was not
    analysed.
    """
    judged = [*selection.shown, *(selection.left_out if all else selection.known)]
    categories = list(dict.fromkeys(each.finding.category or "other" for each in judged))
    driver: dict[str, Any] = {
        "name": "chargehand",
        "semanticVersion": __version__,
        "rules": [_rule(category, [each.finding for each in judged]) for category in categories],
    }
    gaps = [_notification("error", f"{gap.reason} {gap.impact}".strip()) for gap in report.gaps]
    notifications = [*gaps, *(_notification("note", f"Not analysed: {note}") for note in notes)]
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The folder that was reviewed."}}},
        "results": [_result(each, categories) for each in judged],
        "invocations": [{"executionSuccessful": not gaps, "toolExecutionNotifications": notifications}],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _notification(level: str, words: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": words}}


def _rule(category: str, findings: Sequence[Finding]) -> dict[str, Any]:
    first = next(finding for finding in findings if (finding.category or "other") == category)
    words = category.replace("-", " ")
    return {
        "id": category,
        "name": "".join(word.capitalize() for word in words.split()),
        "shortDescription": {"text": words.capitalize()},
        "defaultConfiguration": {"level": _LEVELS[first.severity]},
    }


def _result(judged: Judged, categories: list[str]) -> dict[str, Any]:
    finding = judged.finding
    category = finding.category or "other"
    text = finding.message if not finding.suggestion else f"{finding.message}\n{finding.suggestion}"
    result: dict[str, Any] = {
        "ruleId": category,
        "ruleIndex": categories.index(category),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {FINGERPRINT: judged.fingerprint},
        "properties": {
            "confidence": finding.confidence,
            "severity": finding.severity,
            "sources": list(finding.sources),
            **({"reasons": judged.reasons.removeprefix(": ")} if judged.reasons else {}),
            **({"patch": finding.patch} if finding.patch else {}),
        },
    }
    if finding.path is not None:
        result["locations"] = [{"physicalLocation": _location(finding)}]
    if finding.confidence is not None:
        result["rank"] = float(finding.confidence)
    if judged.why is not None:
        result["suppressions"] = [{"kind": "external", "justification": judged.why}]
    return result


def _location(finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.path or ""), "uriBaseId": "SRCROOT"}}
    if finding.line is not None and finding.line >= 1:
        region = {"startLine": finding.line}
        if finding.end_line is not None and finding.end_line >= finding.line:
            region["endLine"] = finding.end_line
        if finding.column is not None:
            region["startColumn"] = finding.column
            if finding.end_column is not None and (
                finding.end_line != finding.line or finding.end_column > finding.column
            ):
                region["endColumn"] = finding.end_column
        location["region"] = region
    return location
