"""Selected findings -> Markdown for a pull request or a file: most severe first, then by file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chargehand.apps.review.analyzers.fix_patch import changed_text
from chargehand.apps.review.choices import SEVERITIES
from chargehand.apps.review.selection import Judged, Selection
from chargehand.apps.review.source_lines import SourceLines
from chargehand.text.escaping import show_controls
from chargehand.values.report import Gap

_TITLES = {"critical": "Critical", "warning": "Warnings", "info": "Notes"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def markdown(
    selection: Selection,
    source: SourceLines,
    headline: str,
    *,
    gaps: Sequence[Gap],
    notes: Sequence[str] = (),
    all: bool,
    summary: str = "",
    brief: bool = False,
) -> str:
    """`notes` are about what was not analysed. `brief`: nothing is listed."""
    words = [headline, *_paragraphs(summary)]
    if brief:
        return "\n\n".join(words) + "\n"
    parts = ["# Review", *words]
    for severity in SEVERITIES:
        group = [each for each in selection.shown if each.finding.severity == severity]
        if group:
            parts += [f"## {_TITLES[severity]}", *_entries(group, source)]
    if all and selection.left_out:
        parts += ["## Left out", *_entries(selection.left_out, source)]
    if gaps:
        parts += [
            "## Not reviewed",
            "\n".join(f"- {_escape_markdown(f'{gap.reason} {gap.impact}'.strip())}" for gap in gaps),
        ]
    if notes:
        parts += ["## Not analysed", "\n".join(f"- {_escape_markdown(note)}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def _paragraphs(summary: str) -> list[str]:
    """The text of a model with its line breaks."""
    lines = show_controls(summary.strip())
    return [lines] if lines else []


def _entries(group: Iterable[Judged], source: SourceLines) -> Iterable[str]:
    for each in group:
        finding = each.finding
        place = _code(f"{finding.path}:{finding.line}" if finding.line else finding.path or "the change as a whole")
        tail = _escape_markdown(f"({finding.category or 'other'}, confidence {finding.confidence}{each.reasons})")
        lines = [f"- **{place}** {_escape_markdown(finding.message)} {tail}"]
        if code := source.line_of(finding).strip():
            lines.append(f"  {_code(code[:160])}")
        if finding.suggestion:
            lines.append(f"  {_escape_markdown(finding.suggestion)}")
        if each.why is not None:
            lines.append(f"  *Left out: {_escape_markdown(each.why)}.*")
        entry = "  \n".join(lines)
        yield f"{entry}\n\n{_diff(finding.patch)}" if finding.patch else entry


def _diff(patch: str) -> str:
    """A fenced block inside a list. No line of the patch can end it."""
    lines = [show_controls(line) for line in changed_text(patch)]
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall(r"`+", line)), 3)
    return "\n".join(f"  {line}" for line in (f"{fence}diff", *lines, fence))


def _code(text: str) -> str:
    """A code span. Nothing in the text can end it."""
    flat = show_controls(" ".join(text.split()))
    fence = "`" * (max(map(len, re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _escape_markdown(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", show_controls(" ".join(text.split())))
