"""An answer and the disagreements between its results -> those it passes over, and the section that names them.

A disagreement is named where one paragraph cites all its sides and says that they differ. One that was resolved need
not be named, as long as the answer does not state the figures of the side that was rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chargehand.citation import Citations, without_code
from chargehand.outcome import Outcome
from chargehand.synthesizer.disagreement import Disagreement
from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.plain import inline, paragraphs

HEADING = "## Where workers disagree"
MOST_LISTED = 20
_DIFFER = re.compile(
    r"\b(?:disagree|contradict|conflict|differ|discrepan|inconsisten|unresolved|dispute|at odds|whereas|versus|vs\.?\s"
    r"|while|although|however|but|instead|uncertain|unclear|widerspr|uneinig|abweich|ungekl)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A paragraph and the tasks it cites."""

    text: str
    tasks: frozenset[str]


def passed_over(
    answer: str, disagreements: Iterable[Disagreement], outcomes: Mapping[str, Outcome]
) -> tuple[Disagreement, ...]:
    citations = Citations(outcomes)
    parts = [
        _Part(text, frozenset(task for citation in citations.find(text) for task in citation.tasks))
        for text in paragraphs(without_code(answer))
    ]
    return tuple(each for each in disagreements if not _named(each, parts) and not _settled_well(each, parts))


def problems(silent: Iterable[Disagreement]) -> tuple[str, ...]:
    """What to tell the synthesizer."""
    return tuple(
        f"passed_over: The answer does not say that {_cited(each)} disagree about {inline(each.subject, 100)}: "
        + (f"it was resolved as {inline(each.verdict or '', 200)}" if each.resolved else "say that it is unresolved")
        for each in silent
    )


def section(silent: Sequence[Disagreement]) -> str:
    """Each disagreement with its sides and what came of it, every side cited."""
    lines = [HEADING, ""]
    lines += [line(each) for each in silent[:MOST_LISTED]]
    if len(silent) > MOST_LISTED:
        lines.append(f"- {len(silent) - MOST_LISTED:,} more are listed in the report.")
    return "\n".join(lines)


def line(disagreement: Disagreement) -> str:
    sides = "; ".join(f"“{inline(each.text, 300)}” [{each.task}]" for each in disagreement.statements[:6])
    what = f"Resolved: {inline(disagreement.verdict or '')}" if disagreement.resolved else "Unresolved."
    return f"- {inline(disagreement.subject, 100)}: {sides}. {what} {inline(disagreement.reason)}".rstrip()


def _named(disagreement: Disagreement, parts: Sequence[_Part]) -> bool:
    sides = disagreement.tasks
    return any(all(task in part.tasks for task in sides) and _DIFFER.search(part.text) for part in parts)


def _settled_well(disagreement: Disagreement, parts: Sequence[_Part]) -> bool:
    if not disagreement.resolved:
        return False
    upheld = {_value(figure) for each in disagreement.upheld for figure in figures(each.text)}
    rejected = {_value(figure) for each in disagreement.rejected for figure in figures(each.text)} - upheld
    losers = {each.task for each in disagreement.rejected}
    return not any(
        _value(figure) in rejected for part in parts if losers.intersection(part.tasks) for figure in figures(part.text)
    )


def _value(figure: Figure) -> tuple[str, str | None]:
    return figure.value, figure.unit


def _cited(disagreement: Disagreement) -> str:
    return " and ".join(f"[{task}]" for task in disagreement.tasks)
