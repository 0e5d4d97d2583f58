"""The confidence of a finding, adjusted by its place: on a changed line or not, in test code or not.

A rule's own figure is its precision on the labelled corpus, rounded to what a reader can remember (`rules.py`). Then:

- in test code, findings of security, performance and style lose 25: tests hold made-up passwords, run one query after
  the other and repeat themselves on purpose; a known key, a syntax error or an undefined name is just as wrong there;
- outside the changed lines of a diff, a finding loses 30: it existed before the change;
- on a changed line, reminders (`todo`, `debug-leftover`) gain 20: they are part of this change.

Agreement of independent tools is added by the synthesizer, which sees all findings of a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chargehand.values.outcome import Finding

TEST_CODE = 25
UNCHANGED = 30
NOTED = 20

# Just as true in a test as in other code.
ANYWHERE = frozenset(
    {
        "syntax-error",
        "undefined-name",
        "conflict-marker",
        "bidi-control",
        "focused-test",
        "redefinition",
        "duplicate-key",
    }
    | {"format-mismatch", "exception-mistake", "mutable-default", "no-effect", "control-flow", "unreachable-code"}
    | {"assert-misuse", "comparison-mistake", "wrong-signature", "debug-leftover", "unused-import", "unused-variable"}
    | {"stale-docstring", "todo", "mixed-line-endings", "lost-task", "likely-bug", "large-change"}
    | {"reintroduced", "review-comment", "fixed-before", "commit-instruction", "hot-spot", "out-of-sync"}
)
NOTES = frozenset({"todo", "debug-leftover"})


def adjusted_confidence(finding: Finding, *, changed: bool | None, test_code: bool) -> int:
    """The confidence to filter by; `changed` is None when there is no diff."""
    confidence = 50 if finding.confidence is None else finding.confidence
    if test_code and finding.category not in ANYWHERE and "secrets:known" not in finding.sources:
        confidence -= TEST_CODE
    if changed is False:
        confidence -= UNCHANGED
    elif changed and finding.category in NOTES:
        confidence += NOTED
    return max(0, min(100, confidence))
