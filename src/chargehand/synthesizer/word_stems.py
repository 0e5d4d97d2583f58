"""Text -> the terms by which texts are compared: stems of its words, and its figures in one normal form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from chargehand.synthesizer.figures import figures

# A longer text is compared by its beginning.
MOST_CHARACTERS: Final = 2_000
_SHORT: Final = 400
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\w+")
# Words that nearly every English sentence has: they say nothing about its subject.
_COMMON_WORDS: Final = """
a an the this that these those it its they them their he she his her we our you your i and or but of in on at by for to
from with into as than then so is are was were be been being am has have had do does did will would there which who when
"""
_FUNCTION_WORDS: Final = frozenset(_COMMON_WORDS.split())
_DOUBLED: Final = re.compile(r"([b-df-hj-km-np-rtv-z])\1$")
_ENDINGS: Final = ("ation", "ion", "ment", "ing", "ed", "ly", "er")


def terms(text: str) -> tuple[str, ...]:
    """The terms in their order, in linear time. Function words are left out; `not` and `all` are not such words."""
    return _short_terms(text) if len(text) <= _SHORT else _terms(text[:MOST_CHARACTERS])


# The same statements are merged, compared and grouped.
@lru_cache(maxsize=8_192)
def _short_terms(text: str) -> tuple[str, ...]:
    return _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    found: list[str] = []
    at = 0
    for figure in figures(text):
        found += _stems(text[at : figure.start])
        found.append(f"{figure.value}{figure.sign}")
        at = figure.end
    return (*found, *_stems(text[at:]))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the terms that two texts have in common, from 0 to 1 (Dice's coefficient)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0


def _stems(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if word not in _FUNCTION_WORDS:
            yield stem(word)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its English endings: closes, closed, closing and close have one stem."""
    word = word.partition("'")[0].partition("’")[0] if word.endswith(("'s", "’s")) else word
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending in ("ing", "ed")):
            word = word[: -len(ending)] + ("at" if ending == "ation" else "")
            word = _DOUBLED.sub(r"\1", word)
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
