"""A review -> text in one of its formats, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from chargehand.apps.review.change import Change
from chargehand.apps.review.choices import Form
from chargehand.apps.review.languages import unanalysed_sentences
from chargehand.apps.review.selection import Selection
from chargehand.apps.review.source_lines import SourceLines
from chargehand.apps.review.text_format import Paint, headline, text
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor
from chargehand.trace.number_text import several
from chargehand.values.outcome import Severity
from chargehand.values.report import Report


@dataclass(frozen=True, slots=True)
class Review:
    """What was reviewed, and the result. `all`: findings that were left out are shown too."""

    report: Report
    selection: Selection
    change: Change
    source: SourceLines
    all: bool = False
    # Language -> number of files without an analyzer; and whether models read them.
    unanalysed: Mapping[str, int] = field(default_factory=dict[str, int])
    models: bool = False
    # A sentence why no run was made; None if one was.
    nothing: str | None = None
    # The lowest severity at which a shown finding makes the review fail.
    fail_on: Severity | None = None

    @property
    def failed_gate(self) -> str | None:
        """A sentence about the findings that make the review fail; None if there are none."""
        count = 0 if self.fail_on is None else self.selection.at_least(self.fail_on)
        or_above = "" if self.fail_on == "critical" else " or above"
        return f"{several(count, 'finding')} of severity {self.fail_on}{or_above}." if count else None


def render_review(review: Review, form: Form, redactor: Redactor, paint: Paint, width: int | None = None) -> str:
    """Ends with a newline unless it is empty. `paint` and `width` are for text."""
    report, selection = review.report, review.selection
    gaps = tuple(f"{gap.reason} {gap.impact}".strip() for gap in report.gaps)
    notes = unanalysed_sentences(review.unanalysed, models=review.models)
    match form:
        case "json":
            return as_json(report, redactor)
        case "sarif":
            from chargehand.apps.review.sarif_format import sarif

            return _document(redactor.redact_delivered(sarif(report, selection, notes, all=review.all)))
        case "github":
            from chargehand.apps.review.github_format import github

            return redactor.redact_delivered(github(selection, gaps, notes))
        case "md":
            return redactor.redact_delivered(report.answer)
        case "text":
            unanalysed = sum(review.unanalysed.values())
            words = headline(selection, len(review.change.files), len(gaps), unanalysed, hint=not review.all)
            missing = {"Not reviewed": gaps, "Not analysed": notes}
            shown = text(selection, review.source, words, missing, all=review.all, paint=paint, width=width)
            return redactor.redact_delivered(shown)
        case _:
            assert_never(form)


def as_json(report: Report, redactor: Redactor) -> str:
    """The report. Only certain secrets are removed from answer, findings and data; elsewhere possible ones too."""
    whole = report.to_json()
    kept = {name: redactor.redact_delivered(whole[name]) for name in ("answer", "findings", "data") if name in whole}
    return _document(redactor.json({**whole, **dict.fromkeys(kept)}) | kept)


def _document(data: Any) -> str:
    return dump_json(data, indent=2, ascii_only=True) + "\n"
