"""Wordings -> how alike they are, whether they speak of the same thing, and which of many are worth comparing.

Alike is measured by Dice's coefficient over the words by meaning (0 to 1). The index keeps, for each word, the first
entries that hold it and no more, and of what it finds only those that share the rarest words are compared: the cost of
an entry does not grow with their number, even where all of them share all their words. What is lost by that is a
near-duplicate whose every word is in more than `MOST_PER_WORD` earlier entries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from chargehand.synthesizer.lexicon import question
from chargehand.synthesizer.wording import Wording

MOST_PER_WORD: Final = 32
MOST_COMPARED: Final = 12
_WEIGHT: Final = 10_000
_ALIKE_LETTERS: Final = 5
# Small words weigh only where the rest is much the same.
_MUCH_ALIKE: Final = 0.6
_WAYS: Final = (("on", "off"), ("up", "down"))
_DEGREES: Final = (("all", "some"), ("must", "can"))
_MUST: Final = frozenset({"must"})
_MODALS: Final = frozenset({"can", "must", "should"})
# Words that may change places; a longer text is not one statement.
_LONGEST_SWAP: Final = 16
_PREFIXES: Final = ("un", "in", "im", "il", "ir", "non", "dis", "de")


def dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0


def same_names(one: Wording, other: Wording) -> bool:
    """Whether each text holds what the other one names, and compares or moves in the same direction."""
    return one.names <= other.bag and other.names <= one.bag and _same_way(one, other)


def compatible_names(one: Wording, other: Wording) -> bool:
    """Whether one text holds all that the other one names, so that they may speak of the same thing."""
    return (one.names <= other.bag or other.names <= one.bag) and _same_way(one, other)


def _same_way(one: Wording, other: Wording) -> bool:
    return not one.than or not other.than or one.than == other.than


def same_start(one: Wording, other: Wording) -> bool:
    """Whether the words the texts start with, which may be names, are not two that stand for each other."""
    if one.first is None or other.first is None:
        return True
    return one.first in other.bag or other.first in one.bag or _alike(one.first, other.first)


def rivals(one: Wording, other: Wording) -> bool:
    """Whether a word of one text stands next to the same word as another one of the other: `gross` and `net margin`."""
    extra, missing = one.bag - other.bag, other.bag - one.bag
    # Texts that share no word are not one sentence with a slot in it.
    if not extra or not missing or len(extra) == len(one.bag):
        return False
    extra, missing = _own(extra, other), _own(missing, one)
    places: dict[tuple[str, bool], list[str]] = {}
    for place, word in _places(other, missing):
        places.setdefault(place, []).append(word)
    return any(not _is_related(word, rival) for place, word in _places(one, extra) for rival in places.get(place, ()))


def replaces(one: Wording, other: Wording) -> bool:
    """Whether each text has a word, wherever it stands, that nothing in the other one is like."""
    extra, missing = one.bag - other.bag, other.bag - one.bag
    return _alone(extra, missing) and _alone(missing, extra)


def is_opposed(one: Wording, other: Wording) -> bool:
    """Whether the texts give opposite answers to a question, or one has a word that denies one of the other's."""
    if one.marks != other.marks and _marked_apart(one, other, _WAYS):
        return True
    if one.bag == other.bag:
        return False
    mine, theirs = _decided_questions(one.answers), _decided_questions(other.answers)
    if any(name in theirs and theirs[name] != affirms for name, affirms in mine.items()):
        return True
    extra, missing = one.bag - other.bag, other.bag - one.bag
    return any(_is_denied(word, missing) for word in extra) or any(_is_denied(word, extra) for word in missing)


def is_graded(one: Wording, other: Wording) -> bool:
    """Whether the texts say the same to another degree: of all and of some, that it must be and that it may."""
    return one.marks != other.marks and _marked_apart(one, other, _DEGREES)


def same_force(one: Wording, other: Wording, *, placed: bool = False) -> bool:
    """Whether what is said is meant of as many and as surely; of findings at one place, a bare `can` is no matter."""
    if one.marks == other.marks:
        return True
    if not (one.marks ^ other.marks).isdisjoint(("only", "some")):
        return False
    mine, theirs = one.marks & _MODALS, other.marks & _MODALS
    if mine == theirs or (placed and not (mine and theirs)):
        return True
    # What shall be done is often said to be done; what may be or should be, is not.
    return not (mine and theirs) and mine | theirs == _MUST


def same_order(one: Wording, other: Wording) -> bool:
    """Whether who does it and to whom it is done are not swapped: `Alice pays Bob`, `Bob pays Alice`, `is paid by Bob`.

    Between active and passive all may stand in reverse and say the same; there, the same order is the swap.
    """
    if one.bag != other.bag:
        return True
    if one.words == other.words:
        return len(one.words) < 3 or ("by" in one.voice) == ("by" in other.voice)
    passive = "be" in one.voice
    if passive != ("be" in other.voice) or ("by" in one.voice) != ("by" in other.voice):
        return True
    # `A is used for B` and `B is used with A`.
    return (passive and one.voice != other.voice) or not _is_swapped(one.words, other.words)


class WordIndex:
    """Finds earlier entries that share words with a new one, the most alike first."""

    def __init__(self, words: Callable[[Wording], frozenset[str]]) -> None:
        self._words = words
        self._entries: list[Wording] = []
        self._scopes: dict[Hashable, dict[str, list[int]]] = {}

    def add(self, entry: Wording, scope: Hashable = None) -> int:
        """The number of the new entry; entries of different scopes never meet."""
        number = len(self._entries)
        self._entries.append(entry)
        postings = self._scopes.setdefault(scope, {})
        for word in self._words(entry):
            held = postings.setdefault(word, [])
            if len(held) < MOST_PER_WORD:
                held.append(number)
        return number

    def alike(self, entry: Wording, least: float, scope: Hashable = None) -> list[tuple[float, int]]:
        """Likeness and number of earlier entries, the most alike first, then the earliest."""
        postings = self._scopes.get(scope)
        words = self._words(entry)
        if postings is None or not words:
            return []
        # Rare words count more. In whole numbers, since the order of a set must not show.
        weights: dict[int, int] = {}
        for word in words:
            if held := postings.get(word):
                weight = _WEIGHT // len(held)
                for number in held:
                    weights[number] = weights.get(number, 0) + weight
        # The heaviest first, then the earliest: one number for both sorts much faster than a pair.
        most = len(self._entries)
        ranked = sorted([number - weight * most for number, weight in weights.items()])
        numbers = [rank % most for rank in ranked[: 2 * MOST_COMPARED]]
        found = [(dice(words, self._words(self._entries[number])), number) for number in numbers]
        found = [(likeness, number) for likeness, number in found if likeness >= least]
        found.sort(key=lambda pair: (-pair[0], pair[1]))
        return found[:MOST_COMPARED]


def _marked_apart(one: Wording, other: Wording, pairs: tuple[tuple[str, str], ...]) -> bool:
    for pair in pairs:
        mine, theirs = one.marks.intersection(pair), other.marks.intersection(pair)
        if len(mine) == len(theirs) == 1 and mine != theirs:
            return dice(one.bag, other.bag) >= _MUCH_ALIKE
    return False


def _is_swapped(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two parts have changed places around one between them, and all else is where it was."""
    if len(one) != len(other):
        return False
    differ = [place for place, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
    one, other = one[differ[0] : differ[-1] + 1], other[differ[0] : differ[-1] + 1]
    if len(one) > _LONGEST_SWAP:
        return False
    for first in range(1, len(one) - 1):
        for last in range(1, len(one) - first):
            if one[:first] == other[-first:] and one[-last:] == other[:last] and one[first:-last] == other[last:-first]:
                return True
    return False


def _places(wording: Wording, words: frozenset[str]) -> Iterator[tuple[tuple[str, bool], str]]:
    """Each of the words with its neighbours: words, the ends of the text, and `#` before what is counted."""
    sequence = ("^", *wording.words, "$")
    for at, word in enumerate(sequence):
        if word in words:
            if sequence[at - 1] != "=":
                yield (sequence[at - 1], True), word
            if sequence[at + 1] not in ("=", "#"):
                yield (sequence[at + 1], False), word


def _own(words: frozenset[str], other: Wording) -> frozenset[str]:
    """The words that are not an answer to what the other text answers too."""
    return frozenset(word for word in words if (answer := question(word)) is None or answer[0] not in other.topics)


def _decided_questions(answers: tuple[tuple[str, bool], ...]) -> dict[str, bool]:
    """The questions a text answers in one way only: `opened but never closed` says nothing of that kind."""
    found = dict(answers)
    return found if len(found) == len(answers) else {n: a for n, a in answers if (n, not a) not in answers}


def _alone(words: frozenset[str], others: frozenset[str]) -> bool:
    return any(not any(_is_related(word, other) for other in others) for word in words)


def _is_related(one: str, other: str) -> bool:
    return _alike(one, other) or _opposite(one, other)


def _alike(one: str, other: str) -> bool:
    """Whether two words are spelled alike: `vulnerable` and `vulnerability`."""
    if one[:_ALIKE_LETTERS] != other[:_ALIKE_LETTERS] or min(len(one), len(other)) < _ALIKE_LETTERS - 1:
        return False
    return question(one) is None and question(other) is None


def _opposite(one: str, other: str) -> bool:
    """Whether two words are answers to the same question; then they differ in what they say, not in the subject."""
    mine, theirs = question(one), question(other)
    if mine is not None and theirs is not None:
        return mine[0] == theirs[0]
    return _denies(one, other) or _denies(other, one)


def _is_denied(word: str, words: frozenset[str]) -> bool:
    return word.startswith(_PREFIXES) and any(_denies(word, other) for other in words)


def _denies(word: str, other: str) -> bool:
    return len(other) >= 4 and word.endswith(other) and word[: -len(other)] in _PREFIXES
