"""A passage of an answer -> whether it speaks of what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chargehand.synthesizer.words import overlap, terms

# How a missing result is spoken of; a denial is one way.
_MISSING = re.compile(
    r"n['’]t\b|\b(?:not?\b|never\b|none\b|nothing\b|without\b|cannot\b|lack|missing|absent"
    r"|nicht|kein|ohne\b|pas\b|aucun|sans\b|nada\b|sin\b|non\b|senza\b|niet\b|geen\b|ikke\b|inte\b"
    r"|fail|unavailab|skip|time[ds]?[ -]?out|unknown|open\b|incomplete|pending|gap|error|unable|unread|unanswer"
    r"|undeterm|unclear|uncertain|unresolved|unfinished|abort|cancel|refus|denied|block|stopped|broke|outage|escalat|wait"
    r"|remains?\b|still\b|only partial|left (?:out|open)|fehl|unbekannt|offen|manqu|échou|falta|fall[óo])",
    re.IGNORECASE,
)
_OF_ITS_REASON = 0.4


def speaks_of_a_gap(text: str, reasons: Iterable[str]) -> bool:
    """Whether a text says that something is missing, or why: in words for it, by a denial, or in those of a reason.

    A single word, as in `Source:`, says nothing else.
    """
    if _MISSING.search(text):
        return True
    said = frozenset(terms(text))
    return len(said) < 2 or any(overlap(said, frozenset(terms(why))) >= _OF_ITS_REASON for why in reasons)
