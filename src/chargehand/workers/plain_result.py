"""A result in plain text -> its statements with the sources that hold, as claims, and a confidence that code can give.

A worker writes its sources into the text, `[notes.md:12]` or `[https://a.example]`. A statement without one gets the
line of the material whose words it has, where one line stands out. What is cited and was never given or read is taken
out of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Claim
from chargehand.workers.check_sources import Grounded, Grounds
from chargehand.workers.worker_answer import Answer

# Of one text so much is read for statements, and so many of them become claims.
MOST_CHARACTERS = 40_000
MOST_CLAIMS = 60
# How sure code is of a text, by how much of it a source confirms.
ALL_CONFIRMED = 90
MOST_CONFIRMED = 75
SOME_CONFIRMED = 60
NONE_CONFIRMED = 50

_MARK = lazy_regex(r" ?\[([^\[\]\n]{3,300})\](?!\()")
_SENTENCE = lazy_regex(r"(?<=[.!?])(?: ?\[[^\[\]\n]{3,300}\]){0,9}\s(?=\s{0,9}[^\W_])|\n")
_LIST_MARK = lazy_regex(r"^\s*(?:[-*+>#|]+|\d{1,3}[.)])\s+")
_WORDS = lazy_regex(r"\w{2,}")
# A statement says something of something: shorter lines are headings and single words.
_FEWEST_WORDS = 3


def hold_text(answer: Answer, grounds: Grounds) -> Grounded:
    """The answer with the sources in its text checked. `output` is text and there are no claims yet."""
    text = str(answer.output)
    read = text[:MOST_CHARACTERS]
    stated: list[tuple[str, tuple[str, ...]]] = []
    for sentence in _sentences(read):
        marks = tuple(source for mark in _MARK.findall(sentence) if (source := mark.strip()) and _is_source(source))
        stated.append((_bare(sentence), marks))
    claims = [Claim(statement=words, sources=sources) for words, sources in stated[:MOST_CLAIMS]]
    held = grounds.hold(answer._replace(claims=tuple(claims)))
    kept: list[Claim] = []
    for claim in held.answer.claims:
        found = claim.sources or grounds.find_source(claim.statement)
        if found:
            kept.append(claim if claim.sources else claim.model_copy(update={"sources": found}))
    output = _without(read, held.false) + text[MOST_CHARACTERS:]
    confidence = None
    if grounds.files:
        confidence = NONE_CONFIRMED if held.false else _confidence(len(kept), len(claims))
    return held._replace(answer=held.answer._replace(output=output, claims=tuple(kept), confidence=confidence))


def _confidence(confirmed: int, stated: int) -> int:
    if not confirmed:
        return NONE_CONFIRMED
    if confirmed == stated:
        return ALL_CONFIRMED
    return MOST_CONFIRMED if 2 * confirmed >= stated else SOME_CONFIRMED


def _sentences(text: str) -> Iterator[str]:
    """Each sentence and each line of a list, with the marks that follow it."""
    begin, in_fence = 0, False
    pieces: list[str] = []
    for end in _SENTENCE.finditer(text):
        # Marks after the full stop belong to the sentence before it.
        pieces.append(text[begin : end.end()])
        begin = end.end()
    pieces.append(text[begin:])
    for piece in pieces:
        if piece.lstrip().startswith("```"):
            in_fence = not in_fence
        elif not in_fence and len(_WORDS.findall(_bare(piece))) >= _FEWEST_WORDS:
            yield piece


def _bare(sentence: str) -> str:
    return _LIST_MARK.sub("", _MARK.sub("", sentence)).strip().strip("*_ ")


def _is_source(mark: str) -> bool:
    return ":" in mark or "." in mark or "#" in mark


def _without(text: str, false: tuple[str, ...]) -> str:
    """The text without the marks that name what is not there."""
    wrong = set(false)
    return _MARK.sub(lambda mark: "" if mark[1].strip() in wrong else mark[0], text)
