"""A small open model's answer from material -> the figures and names in it that were not given, and how long it is.

Small models take the nearest figure for an answer that the material does not have: "A cake costs 30 kronor" from a line
about bread. Neither code nor the model itself can tell such an answer from a right one (bench/JUDGEMENT.md).
"""

from __future__ import annotations

from typing import Final

from chargehand.values.lazy_regex import lazy_regex

# Figures and names are looked up in a shorter answer (in sentences) to a shorter question (in characters) only.
MOST_SENTENCES: Final = 3
LONGEST_QUESTION: Final = 600

_BREAK: Final = lazy_regex(r"(?<=[.!?])\s+(?=[^\W_])|\n")
_FIGURE: Final = lazy_regex(r"\d[\d.,:]*")
_SEPARATORS: Final = lazy_regex(r"[.,:]")
# A source in brackets.
_MARK: Final = lazy_regex(r"\[[^\[\]\n]{1,300}\]")
_WORD: Final = lazy_regex(r"[^\W\d_][\w'’-]*")
_SENTENCE_END: Final = lazy_regex(r"[.!?:]\s|\n|[\"“*#|>-]\s*$")


def find_foreign(answer: str, given: str) -> list[str]:
    """The figures and names of an answer that are not in what was given: a small model invented or computed them."""
    answer = _MARK.sub("", answer)
    known = {_SEPARATORS.sub("", figure) for figure in _FIGURE.findall(given)}
    foreign = [each for each in _FIGURE.findall(answer) if _SEPARATORS.sub("", each) not in known]
    words = {word.casefold() for word in _WORD.findall(given)}
    for found in _WORD.finditer(answer):
        before = answer[max(found.start() - 2, 0) : found.start()]
        begins = not answer[: found.start()].strip() or _SENTENCE_END.search(before) is not None
        name = found[0].removesuffix("'s").removesuffix("’s")
        if name[0].isupper() and not begins and len(name) > 1 and name.casefold() not in words:
            foreign.append(name)
    return list(dict.fromkeys(foreign))


def count_sentences(text: str) -> int:
    return sum(1 for part in _BREAK.split(text) if part.strip())
