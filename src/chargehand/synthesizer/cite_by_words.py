"""An answer that cites no task -> the same answer with citations where it has the words of a result.

A paragraph cites the results that have most of its terms and every one of its figures. Other paragraphs stay without a
citation. An answer of which nothing can be found is still rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from chargehand.synthesizer.figures import figures
from chargehand.synthesizer.plain_report import text_of
from chargehand.synthesizer.word_stems import terms
from chargehand.text.citation import Citations
from chargehand.values.outcome import Outcome

# The share of a paragraph's terms that a result has.
_SHARED: Final = 0.7
_FEWEST_TERMS: Final = 2
# More results are not compared: this is for the small runs of small models.
_MOST_RESULTS: Final = 50
_BREAK: Final = re.compile(r"(\n\s*\n)")
_HEADING: Final = re.compile(r"\s*#[^\n]*\s*|\s*```.*", re.DOTALL)


def cite_by_words(answer: str, outcomes: Mapping[str, Outcome]) -> str:
    """The answer unchanged if it has a citation, or if there are more results than are compared."""
    done = {id: text_of(outcome) for id, outcome in outcomes.items() if outcome.ok}
    if len(done) > _MOST_RESULTS or any(cited.tasks for cited in Citations(outcomes).find(answer)):
        return answer
    known = {id: (frozenset(terms(text)), frozenset(_values(text))) for id, text in done.items()}
    return "".join(
        part if number % 2 or _HEADING.fullmatch(part) else _with_citation(part, known)
        for number, part in enumerate(_BREAK.split(answer))
    )


def _with_citation(paragraph: str, known: Mapping[str, tuple[frozenset[str], frozenset[str]]]) -> str:
    own, values = frozenset(terms(paragraph)), frozenset(_values(paragraph))
    if len(own) < _FEWEST_TERMS:
        return paragraph
    found = [
        id for id, (words, figures) in known.items() if values <= figures and len(own & words) >= _SHARED * len(own)
    ]
    if not found:
        return paragraph
    text = paragraph.rstrip()
    return f"{text} [{', '.join(found)}]{paragraph[len(text) :]}"


def _values(text: str) -> set[str]:
    return {figure.value for figure in figures(text)}
