"""An answer and the outcomes -> which tasks each paragraph cites, what is cited wrongly, which results are unused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chargehand.outcome import Outcome
from chargehand.report import Provenance
from chargehand.synthesizer.plain import paragraphs

# `[t3]` or `[t1, t2]`; a markdown link `[text](url)` is not a citation.
_BRACKETS = re.compile(r"\[([A-Za-z][A-Za-z0-9_-]{0,39}(?:\s*[,;]\s*[A-Za-z][A-Za-z0-9_-]{0,39})*)\](?!\()")
# What an id that a model invents looks like. Other words in brackets are prose.
_LIKE_AN_ID = re.compile(r"[A-Za-z]{1,8}[_-]?\d{1,4}")


def cited(text: str) -> list[str]:
    """Every name in citation brackets, in order."""
    return [name.strip() for match in _BRACKETS.findall(text) for name in re.split(r"[,;]", match)]


def provenance_of(answer: str, outcomes: Mapping[str, Outcome]) -> Provenance:
    citations: dict[str, tuple[str, ...]] = {}
    unknown: dict[str, str] = {}
    used: set[str] = set()
    for number, paragraph in enumerate(paragraphs(answer), 1):
        names = list(dict.fromkeys(cited(paragraph)))
        known = tuple(name for name in names if name in outcomes)
        used.update(known)
        if known:
            citations[str(number)] = known
        for name in names:
            if name not in outcomes and _LIKE_AN_ID.fullmatch(name):
                unknown.setdefault(name, f"Paragraph {number} cites [{name}], which is not a task of this run.")
    return Provenance(
        citations=citations,
        problems=tuple(unknown.values()),
        unused=tuple(id for id, outcome in outcomes.items() if outcome.ok and id not in used),
    )
