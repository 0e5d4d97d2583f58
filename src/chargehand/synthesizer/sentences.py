"""An outcome's summary and output -> the sentences and the entries they hold, short enough to be statements.

An output that is data is read for its sentences; every other leaf is an entry, `where key: value`. Where is the keys
above it and what names the objects it is in. What nothing tells from other entries of a list, what only measures the
result itself (`score`, `line`, `total`) and a number under one word alone (`people: 700`, of what?) speak of nothing
that could be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias, cast

from chargehand.synthesizer.strip_markdown import words_of
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome

# Of one outcome, so much text and so many sentences are read.
MOST_CHARACTERS: Final = 40_000
MOST_SENTENCES: Final = 300
_SHORT: Final = 1_000
_MOST_NODES: Final = 5_000
_LONGEST_LEAF: Final = 60
_LONGEST_PATH: Final = 4
_RESULT_KEYS: Final = """
id index number no n count total length size line lines end_line column row rows page pages rank position order score
scores rating confidence probability weight version timestamp time date duration elapsed seconds ms attempts tokens cost
severity category offset limit path file url source sources key type kind
"""
_NAME_KEYS: Final = "name title subject item topic id path file key label"
_VERDICT_KEYS: Final = "status state verdict result decision answer recommendation risk level severity unit type"
_CODE_KEYS: Final = "code source tests test patch diff sql query script command snippet"
_SENTENCE: Final = re.compile(r"[^\n.!?]{0,600}(?:[.!?](?!\s|\Z)[^\n.!?]{0,600}){0,20}[.!?]?")
_YES_OR_NO: Final = re.compile(r"(?i:yes|no)[.!]?")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_ABOUT_THE_RESULT: Final = frozenset(_RESULT_KEYS.split())
_NAMES: Final = frozenset(_NAME_KEYS.split())
_VERDICTS: Final = frozenset(_VERDICT_KEYS.split())
_CODE: Final = frozenset(_CODE_KEYS.split())


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of an output that is data: under which label, and both as one line. No label for prose."""

    label: str | None
    text: str
    # Whether the data itself says what it is about.
    named: bool = True


def is_record(outcome: Outcome) -> bool:
    """Whether it is how analyzers, and no model, went about their files: what they state is in their findings."""
    output = cast(dict[str, JSON], outcome.output) if isinstance(outcome.output, dict) else {}
    return isinstance(output.get("analyzers"), list) and outcome.usage.calls == 0


def entries(outcome: Outcome) -> list[Leaf]:
    """The leaves of an output that is data and no prose."""
    if outcome.output is None or isinstance(outcome.output, str):
        return []
    found = (leaf for leaf in _leaves(outcome.output) if leaf.label is not None)
    return list(islice(found, MOST_SENTENCES))


def sentences(outcome: Outcome) -> tuple[str, ...]:
    """The summary's of what is done, and the output's. The summary of what is not done says why, not what was found."""
    if outcome.output is None or isinstance(outcome.output, str):
        output = outcome.output or ""
    else:
        output = "\n".join(leaf.text for leaf in _leaves(outcome.output) if leaf.label is None)
    texts = [outcome.summary if outcome.ok else "", output]
    text = "\n".join(text[:MOST_CHARACTERS] for text in texts)
    return _split_cached(text) if len(text) <= _SHORT else _split(text)


# Workers with the same task in different places often answer in the same words.
@lru_cache(maxsize=256)
def _split_cached(text: str) -> tuple[str, ...]:
    return _split(text)


def _split(text: str) -> tuple[str, ...]:
    """The sentences of a text without its Markdown; a bare yes or no belongs to the question before it."""
    found: list[str] = []
    for match in _SENTENCE.finditer(words_of(text)):
        sentence = match[0].strip()
        if found and _YES_OR_NO.fullmatch(sentence):
            found[-1] = f"{found[-1]} {sentence}"
        elif len(sentence) > 3 and _LETTERS.search(sentence):
            if len(found) == MOST_SENTENCES:
                break
            found.append(sentence)
    return tuple(found)


# The keys above a value, and what names the objects it is in; None where nothing tells it from others of a list.
_Where: TypeAlias = tuple[str, ...] | None


def _leaves(data: JSON) -> Iterator[Leaf]:
    """What data says, leaf by leaf in order, up to the limits. Without recursion: it may be of any depth."""
    waiting: list[tuple[_Where, str, JSON]] = [((), "", data)]
    left = MOST_CHARACTERS
    for _ in range(_MOST_NODES):
        if not waiting or left <= 0:
            return
        where, key, node = waiting.pop()
        if isinstance(node, dict):
            fields = list(cast(dict[str, JSON], node).items())[:_MOST_NODES]
            inside = _inside(where, key, _name(fields))
            waiting.extend((inside, name, value) for name, value in reversed(fields))
        elif isinstance(node, list):
            entries = cast(list[JSON], node)[:_MOST_NODES]
            inside = _inside(where, key, None)
            waiting.extend((_of_list(inside, entry, len(entries)), "", entry) for entry in reversed(entries))
        elif (leaf := _leaf(where, key, node)) is not None:
            left -= len(leaf.text)
            yield leaf


def _inside(where: _Where, key: str, name: str | None) -> _Where:
    return None if where is None else (*where, *filter(None, (key, name)))


def _of_list(where: _Where, entry: JSON, length: int) -> _Where:
    if length > 1 and isinstance(entry, dict) and _name(cast(dict[str, JSON], entry).items()) is None:
        return None
    return where


def _name(fields: Iterable[tuple[str, JSON]]) -> str | None:
    for key, value in fields:
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_LEAF and _may_name(key.casefold(), value):
            return value
    return None


def _may_name(key: str, value: str) -> bool:
    return key in _NAMES or (value[0].isupper() and key not in _VERDICTS)


def _leaf(where: _Where, key: str, node: JSON) -> Leaf | None:
    if key.casefold() in _CODE:
        return None
    if isinstance(node, str) and (len(node) > _LONGEST_LEAF or node.rstrip().endswith((".", "!", "?"))):
        return Leaf(None, node)
    if node is None or where is None or not key or key.casefold() in _ABOUT_THE_RESULT:
        return None
    if not where and not isinstance(node, bool | str) and " " not in _words(key):
        return None
    value = ("yes" if node else "no") if isinstance(node, bool) else str(node)[:_LONGEST_LEAF]
    label = " ".join(_words(part) for part in (*where[-_LONGEST_PATH:], key))
    return Leaf(label.casefold(), f"{label}: {' '.join(value.split())}", named=bool(where))


def _words(key: str) -> str:
    return " ".join(_HUMP.sub(" ", key[:_LONGEST_LEAF]).replace("_", " ").split())
