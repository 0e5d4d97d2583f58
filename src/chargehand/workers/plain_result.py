"""A result in plain text -> its statements as claims with their valid sources, and a confidence computed by code.

A worker writes its sources into the text, `[notes.md:12]` or `[https://a.example]`. A statement without one gets the
line of the material that has its words, if only one line has most of them. A source that was never given or read is
taken out of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from re import Match

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Claim
from chargehand.workers.check_sources import Grounded, Grounds
from chargehand.workers.worker_answer import Answer, head

# How much of one text is searched for statements, and how many of them become claims.
MOST_CHARACTERS = 40_000
MOST_CLAIMS = 60
# The confidence that code gives a text, by how much of it a source confirms.
ALL_CONFIRMED = 90
MOST_CONFIRMED = 75
SOME_CONFIRMED = 60
NONE_CONFIRMED = 50

_MARK = lazy_regex(r" ?\[([^\[\]\n]{3,300})\](?!\()")
_SENTENCE = lazy_regex(r"(?<=[.!?])(?: ?\[[^\[\]\n]{3,300}\]){0,9}\s(?=\s{0,9}[^\W_])|\n")
_BETWEEN = lazy_regex(r"[,;]\s+")
_LIST_MARK = lazy_regex(r"^\s*(?:[-*+>#|]+|\d{1,3}[.)])\s+")
_WORDS = lazy_regex(r"\w{2,}")
# A statement says something of something: shorter lines are headings and single words.
_FEWEST_WORDS = 3


def hold_text(answer: Answer, grounds: Grounds) -> Grounded:
    """The answer with the sources in its text checked. `output` is text and there are no claims yet."""
    text = str(answer.output)
    read = text[:MOST_CHARACTERS]
    stated: list[Claim] = []
    # Of statements that are beyond the limit or too short for a claim, only the sources are checked.
    other: list[Claim] = []
    for sentence in _sentences(read):
        words, sources = _bare(sentence), tuple(_sources_in(sentence))
        if len(stated) < MOST_CLAIMS and len(_WORDS.findall(words)) >= _FEWEST_WORDS:
            stated.append(Claim(statement=words, sources=sources))
        elif sources:
            other.append(Claim(statement=words, sources=sources))
    held = grounds.hold(answer._replace(claims=(*stated, *other)))
    kept: list[Claim] = []
    for claim in held.answer.claims[: len(stated)]:
        if grounds.is_confirmed(claim.sources):
            kept.append(claim)
        elif found := grounds.find_source(claim.statement):
            kept.append(claim.model_copy(update={"sources": (*claim.sources, *found)}))
        elif claim.sources:
            kept.append(claim)
    output = _without(read, held.false) + text[MOST_CHARACTERS:]
    confidence = None
    if grounds.files:
        confirmed = sum(grounds.is_confirmed(claim.sources) for claim in kept)
        confidence = NONE_CONFIRMED if held.false else _confidence(confirmed, len(stated))
    shown = held.answer._replace(summary=head(output), output=output, claims=tuple(kept), confidence=confidence)
    return held._replace(answer=shown)


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
        elif not in_fence:
            yield piece


def _bare(sentence: str) -> str:
    return _LIST_MARK.sub("", _MARK.sub("", sentence)).strip().strip("*_ ")


def _sources_in(sentence: str) -> Iterator[str]:
    return (source for mark in _MARK.finditer(sentence) for source in _sources_of_mark(mark))


def _sources_of_mark(mark: Match[str]) -> list[str]:
    """The sources in a mark: one, or several with a comma between them; none where it is another remark."""
    parts = [part.strip() for part in _BETWEEN.split(mark[1])]
    if not all(map(_is_source, parts)):
        parts = [mark[1].strip()]
    return [part for part in parts if _is_source(part)]


def _is_source(mark: str) -> bool:
    return ":" in mark or "." in mark or "#" in mark


def _without(text: str, false: tuple[str, ...]) -> str:
    """The text without the sources that name what was neither given nor read."""
    wrong = set(false)

    def replace(mark: Match[str]) -> str:
        named = _sources_of_mark(mark)
        right = [source for source in named if source not in wrong]
        if len(right) == len(named):
            return mark[0]
        return f"{mark[0].partition('[')[0]}[{', '.join(right)}]" if right else ""

    return _MARK.sub(replace, text) if wrong else text
