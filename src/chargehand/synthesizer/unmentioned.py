"""An answer and the disagreements between its results -> those it does not mention, and a section that names them.

A disagreement is named where one paragraph cites all its sides and says that they differ; a mere "but" says so only in
a sentence that cites or states all of them. One that was resolved need not be named, as long as the answer does not
state what was rejected: its figures or, where the sides differ in none, the words that only the rejected side has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chargehand.synthesizer.figures import figures
from chargehand.synthesizer.group_contradictions import Disagreement
from chargehand.synthesizer.plain_report import inline, paragraphs
from chargehand.synthesizer.word_stems import terms
from chargehand.text.citation import Citations, without_code
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Outcome

HEADING = "## Where workers disagree"
MOST_LISTED = 20
# The share of a rejected statement's own words that a sentence must have to count as stating it.
_MOST_OF_IT = 0.5
_DIFFER = lazy_regex(
    r"\b(?:disagree|contradict|conflict|differ|discrepan|inconsisten|unresolved|dispute|at odds"
    r"|widerspr|uneinig|abweich|ungekl)",
    re.IGNORECASE,
)
_TURN = r"\b(?:whereas|versus|vs\b|while|although|though|however|but|instead|uncertain|unclear|hingegen|aber|jedoch)"
_TURNS = lazy_regex(_TURN, re.IGNORECASE)
_TURNS_FIRST = lazy_regex(rf"[\W_]*{_TURN}", re.IGNORECASE)
# Not before a citation, which belongs to the sentence it follows.
_BETWEEN = lazy_regex(r"(?<!\bvs\.)(?<=[.!?])\s+(?=[^\[\s])|\n+(?=\s*(?:[-*+|#>]|\d+[.)]))")


@dataclass(frozen=True, slots=True)
class _Part:
    """A paragraph or a sentence, without what it cites, and the tasks."""

    text: str
    tasks: frozenset[str]
    sentences: tuple[_Part, ...] = ()


def unmentioned_disagreements(
    answer: str, disagreements: Iterable[Disagreement], outcomes: Mapping[str, Outcome]
) -> tuple[Disagreement, ...]:
    disagreements = tuple(disagreements)
    if not disagreements:
        return ()
    citations = Citations(outcomes)
    parts = [_part(text, citations) for text in paragraphs(without_code(answer))]
    return tuple(each for each in disagreements if not _is_named(each, parts) and not _is_settled(each, parts))


def _part(text: str, citations: Citations) -> _Part:
    sentences = tuple(_read(sentence, citations) for sentence in _BETWEEN.split(text))
    return replace(_read(text, citations), sentences=sentences)


def _read(text: str, citations: Citations) -> _Part:
    return _Part(citations.blank_out(text), frozenset(citations.tasks(text)))


def problems(silent: Iterable[Disagreement]) -> tuple[str, ...]:
    """The message to the synthesizer."""
    return tuple(
        f"passed_over: The answer does not say that {_citations(each)} disagree about {inline(each.subject, 100)}: "
        + (f"it was resolved as {inline(each.verdict or '', 200)}" if each.resolved else "say that it is unresolved")
        for each in silent
    )


def section(silent: Sequence[Disagreement]) -> str:
    """Each disagreement with its sides and its verdict; every side is cited."""
    lines = [HEADING, ""]
    lines += [line(each) for each in silent[:MOST_LISTED]]
    if len(silent) > MOST_LISTED:
        lines.append(f"- {len(silent) - MOST_LISTED:,} more are listed in the report.")
    return "\n".join(lines)


def line(disagreement: Disagreement) -> str:
    sides = "; ".join(f"“{inline(each.text, 300)}” [{each.task}]" for each in disagreement.statements[:6])
    what = f"Resolved: {inline(disagreement.verdict or '')}" if disagreement.resolved else "Unresolved."
    return f"- {inline(disagreement.subject, 100)}: {sides}. {what} {inline(disagreement.reason)}".rstrip()


def _is_named(disagreement: Disagreement, parts: Sequence[_Part]) -> bool:
    sides = frozenset(disagreement.tasks)
    return any(
        sides <= part.tasks and (_DIFFER.search(part.text) or _turns(disagreement, sides, part.sentences))
        for part in parts
    )


def _turns(disagreement: Disagreement, sides: frozenset[str], sentences: Sequence[_Part]) -> bool:
    """Whether one sentence sets the sides against each other; one that begins with `however` continues the last."""
    for number, sentence in enumerate(sentences):
        if not _TURNS.search(sentence.text):
            continue
        said = [sentence]
        if number and _TURNS_FIRST.match(sentence.text):
            said.insert(0, sentences[number - 1])
        if sides <= frozenset[str]().union(*(each.tasks for each in said)):
            return True
        if _states_all(disagreement, _values(each.text for each in said)):
            return True
    return False


def _states_all(disagreement: Disagreement, stated: set[str]) -> bool:
    by_task: dict[str, set[str]] = {}
    for each in disagreement.statements:
        by_task.setdefault(each.task, set()).update(_values([each.text]))
    shared = set[str]().union(*by_task.values()).intersection(*by_task.values())
    return all(not stated.isdisjoint(values - shared) for values in by_task.values())


def _is_settled(disagreement: Disagreement, parts: Sequence[_Part]) -> bool:
    if not disagreement.resolved:
        return False
    rejected = _values(each.text for each in disagreement.rejected) - _values(each.text for each in disagreement.upheld)
    if not rejected:
        return not any(_is_rejected(disagreement, sentence.text) for part in parts for sentence in part.sentences)
    losers = {each.task for each in disagreement.rejected}
    return rejected.isdisjoint(_values(part.text for part in parts if losers.intersection(part.tasks)))


def _is_rejected(disagreement: Disagreement, sentence: str) -> bool:
    """Whether a sentence has the words that only a rejected statement has, and no upheld one."""
    said = frozenset(terms(sentence))
    upheld = frozenset(term for each in disagreement.upheld for term in terms(each.text))
    for each in disagreement.rejected:
        rejected = frozenset(terms(each.text))
        own = rejected - upheld
        if own and len(own & said) > _MOST_OF_IT * len(own) and 2 * len(rejected & said) > len(rejected):
            return True
    return False


def _values(texts: Iterable[str]) -> set[str]:
    return {figure.value for text in texts for figure in figures(text)}


def _citations(disagreement: Disagreement) -> str:
    return " and ".join(f"[{task}]" for task in disagreement.tasks)
