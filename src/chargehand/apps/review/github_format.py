"""Selected findings -> GitHub's workflow commands: an annotation at each line."""

from __future__ import annotations

from collections.abc import Sequence

from chargehand.apps.review.selection import Selection
from chargehand.text.escaping import show_controls
from chargehand.values.outcome import Finding, Severity

_COMMANDS: dict[Severity, str] = {"critical": "error", "warning": "warning", "info": "notice"}


def github(selection: Selection, gaps: Sequence[str], notes: Sequence[str] = ()) -> str:
    """One command per line. Code that could not be checked or was not analysed is an annotation without a place."""
    lines = [_annotation(each.finding) for each in selection.shown]
    lines += [f"::warning title={_property('chargehand: not reviewed')}::{_text(gap)}" for gap in gaps]
    lines += [f"::notice title={_property('chargehand: not analysed')}::{_text(note)}" for note in notes]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding) -> str:
    places: dict[str, object] = {}
    if finding.path is not None:
        places["file"] = finding.path
        if finding.line is not None:
            places |= {"line": finding.line, "endLine": max(finding.end_line or finding.line, finding.line)}
    places["title"] = f"{finding.severity}: {finding.category or 'finding'}"
    given = ",".join(f"{name}={_property(str(value))}" for name, value in places.items())
    words = finding.message if not finding.suggestion else f"{finding.message}\n{finding.suggestion}"
    return f"::{_COMMANDS[finding.severity]} {given}::{_text(words)}"


def _text(words: str) -> str:
    return show_controls(words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(words: str) -> str:
    r"""A tab, which text may hold, is spelled `\t`: GitHub has no escape for it here."""
    return _text(words).replace("\t", "\\t").replace(":", "%3A").replace(",", "%2C")
