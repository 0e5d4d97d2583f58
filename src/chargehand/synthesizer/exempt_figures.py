"""A text -> the figures it states, without those that only count or label; and whether it speaks of what is missing.

Only counting or labelling are: the numbers of lists, small counting words, and labels up to 20 ("step 3", "option 2").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.similarity import dice
from chargehand.synthesizer.units import is_money
from chargehand.synthesizer.wording import wording

SMALL_COUNT = 20
_LABEL = re.compile(
    r"\b(?:steps?|options?|phases?|parts?|sections?|tables?|figures?|figs?\.?|tiers?|items?|point|no\."
    r"|questions?|chapters?|day|week|rounds?|tasks?|stages?|appendix|schritt|phase|teil)\s+\Z",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(\d{1,2})(?:\.\d{1,2})*")
_IDIOMS = re.compile(r"\b24/7\b|\b50/50\b|^[ \t>*_#-]*\(?\d{1,3}[.)](?=\s)", re.MULTILINE)
# `(1) cost, (2) time` and `1) cost 2) time`: numbers that count what the sentence lists.
_FIRST_OF_A_LIST = re.compile(r"(?<![\w(])\(?1\)\s")
_IN_A_LIST = re.compile(r"(?<![\w(])\(?\d\)(?=\s)")
# How a missing result is spoken of, besides by a negation.
_MISSING = re.compile(
    r"\b(?:fail|unavailab|skip|time[ds]?[ -]?out|unknown|open\b|incomplete|pending|gap|error|unable|unread|unanswer"
    r"|undeterm|unclear|uncertain|unresolved|unfinished|abort|cancel|refus|denied|block|stopped|broke|outage|escalat|wait"
    r"|remains?\b|still\b|only partial|left (?:out|open)|fehl|unbekannt|offen|manqu|échou|falta|fall[óo])",
    re.IGNORECASE,
)
_OF_ITS_REASON = 0.4


def stated_figures(text: str) -> Iterator[Figure]:
    """The figures a text states, without small counts in words and without labels."""
    text = _IDIOMS.sub(_blank, text)
    if _FIRST_OF_A_LIST.search(text):
        text = _IN_A_LIST.sub(_blank, text)
    for figure in figures(text):
        if not _is_label(figure, text) and not _only_counts(figure):
            yield figure


def speaks_of_a_gap(text: str, reasons: Iterable[str]) -> bool:
    """Whether a text says that something is missing, or why: in words for it, by a denial, or in those of a reason.

    A single word, as in `Source:`, says nothing else.
    """
    if _MISSING.search(text):
        return True
    said = wording(text)
    if said.negated or len(said.bag) < 2:
        return True
    return any(dice(said.bag, wording(why).bag) >= _OF_ITS_REASON for why in reasons)


def _is_label(figure: Figure, text: str) -> bool:
    """`step 3` and `section 4.2`; what is larger, or a measure, is a figure like any other."""
    ordinal = _ORDINAL.fullmatch(figure.value) if figure.unit is None else None
    if ordinal is None or int(ordinal[1]) > SMALL_COUNT:
        return False
    return _LABEL.search(text, max(figure.start - 16, 0), figure.start) is not None


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _only_counts(figure: Figure) -> bool:
    """`two weeks` and `#1`, but not `two percent`."""
    value = figure.value
    if not value.isdigit() or len(value) > 3 or int(value) > SMALL_COUNT:
        return False
    in_words = not any(map(str.isdigit, figure.text))
    return figure.unit == "#" or (in_words and figure.unit != "%" and not is_money(figure.unit))
