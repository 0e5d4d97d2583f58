"""Outcomes -> the statements that are compared: claims, and the sentences and data entries that carry results.

A repetition is not a second statement: a sentence that repeats a claim of its task, or a summary next to claims or a
text. Markdown is not part of a statement. What analyzers state is in their findings.

An output that is data is read for its sentences; every other value is an entry, `where key: value`. Where is the keys
above it and what names the objects it is in. Values that only measure the result itself (`score`, `line`, `total`),
and values that nothing distinguishes from others of a list, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias, cast

from chargehand.synthesizer.strip_markdown import one_line, words_of
from chargehand.synthesizer.word_stems import overlap, terms
from chargehand.text.citation import without_code
from chargehand.values.base import JSON
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Outcome

# How much text of one outcome is read, and how many of its sentences and entries become statements.
MOST_CHARACTERS: Final = 40_000
MOST_PER_OUTCOME: Final = 60
# For how many tasks the same words are kept: a task may contradict itself, and then another task contradicts it.
_MOST_TASKS: Final = 2
_REPEATS: Final = 0.7
_MOST_NODES: Final = 5_000
_LONGEST_ENTRY: Final = 60
_LONGEST_PATH: Final = 4
_RESULT_KEYS: Final = """
id index number no n count total length size line lines end_line column row rows page pages rank position order score
scores rating confidence probability weight version timestamp time date duration elapsed seconds ms attempts tokens cost
severity category offset limit path file url source sources key type kind
"""
_NAME_KEYS: Final = "name title subject item topic id path file key label"
_VERDICT_KEYS: Final = "status state verdict result decision answer recommendation risk level severity unit type"
_CODE_KEYS: Final = "code source tests test patch diff sql query script command snippet"
_SENTENCE: Final = lazy_regex(r"[^\n.!?]{0,600}(?:[.!?](?!\s|\Z)[^\n.!?]{0,600}){0,20}[.!?]?")
_YES_OR_NO: Final = lazy_regex(r"(?i:yes|no)[.!]?")
_HUMP: Final = lazy_regex(r"(?<=[a-z])(?=[A-Z][a-z])")
_ABOUT_THE_RESULT: Final = frozenset(_RESULT_KEYS.split())
_NAMES: Final = frozenset(_NAME_KEYS.split())
_VERDICTS: Final = frozenset(_VERDICT_KEYS.split())
_CODE: Final = frozenset(_CODE_KEYS.split())


@dataclass(frozen=True, slots=True)
class Statement:
    """What a task says, in its own words."""

    task: str
    text: str
    confidence: int | None = None
    sources: tuple[str, ...] = ()
    # For an entry of data: whether the data itself names its subject.
    named: bool = False

    @property
    def with_task(self) -> str:
        return f"{self.task}: {self.text}"


def read_statements(outcomes: Iterable[Outcome]) -> tuple[Statement, ...]:
    """The statements of all outcomes that are done or partial, in their order."""
    kept: list[Statement] = []
    tasks: dict[str, list[str]] = {}
    for outcome in outcomes:
        if not (outcome.ok or outcome.partial) or is_record(outcome):
            continue
        for statement in _of_outcome(outcome):
            said_by = tasks.setdefault(statement.text.casefold(), [])
            if statement.task not in said_by and len(said_by) < _MOST_TASKS:
                said_by.append(statement.task)
                kept.append(statement)
    return tuple(kept)


def is_record(outcome: Outcome) -> bool:
    """Whether it describes how analyzers, not a model, examined their files: their statements are their findings."""
    output = cast(dict[str, JSON], outcome.output) if isinstance(outcome.output, dict) else {}
    return isinstance(output.get("analyzers"), list) and outcome.usage.calls == 0


def _of_outcome(outcome: Outcome) -> Iterator[Statement]:
    claims = [
        Statement(outcome.task, one_line(claim.statement), claim.confidence, claim.sources) for claim in outcome.claims
    ]
    yield from claims
    claimed = [frozenset(terms(claim.text)) for claim in claims]
    found = _results_of(outcome, with_summary=not claims)
    for each in islice((each for each in found if not _is_repeated(each.text, claimed)), MOST_PER_OUTCOME):
        named = each.key is not None and each.named
        yield Statement(outcome.task, each.text, outcome.confidence, (outcome.task,), named)


def _is_repeated(text: str, claimed: Sequence[frozenset[str]]) -> bool:
    """Whether a claim already says it: with nearly the same terms, or with some of them and no others."""
    own = frozenset(terms(text)) if claimed else frozenset[str]()
    return any(claim <= own or own <= claim or overlap(claim, own) >= _REPEATS for claim in claimed)


def _results_of(outcome: Outcome, *, with_summary: bool) -> Iterator[Entry]:
    """Sentences and entries of the output; where it is not a text, also the sentences of what is done in summary."""
    output = outcome.output
    texts: list[Entry] = [Entry(None, outcome.summary)] if with_summary and outcome.ok else []
    if isinstance(output, str):
        texts = [Entry(None, output)] if output.strip() else texts
    elif output is not None:
        texts += entries(output)
    for entry in texts:
        if entry.key is not None:
            yield entry
        else:
            yield from (Entry(None, sentence) for sentence in split_sentences(entry.text))


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text without its Markdown and code; a bare yes or no belongs to the question before it."""
    found: list[str] = []
    for match in _SENTENCE.finditer(words_of(without_code(text[:MOST_CHARACTERS]))):
        sentence = " ".join(match[0].split())
        if found and _YES_OR_NO.fullmatch(sentence):
            found[-1] = f"{found[-1]} {sentence}"
        elif not sentence.endswith(":") and len(terms(sentence)) > 1:
            found.append(sentence)
    return tuple(each for each in found if not each.endswith("?"))


# -- data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of an output that is data: under which key, and both as one line. Prose has no key."""

    key: str | None
    text: str
    # Whether the data itself says what it is about.
    named: bool = True


# The keys above a value, and what names the objects it is in; None where nothing distinguishes it from others.
_Where: TypeAlias = tuple[str, ...] | None


def entries(data: JSON) -> Iterator[Entry]:
    """What data says, value by value in order, up to the limits. Without recursion: it may be of any depth."""
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
            items = cast(list[JSON], node)[:_MOST_NODES]
            inside = _inside(where, key, None)
            waiting.extend((_of_list(inside, item, len(items)), "", item) for item in reversed(items))
        elif (entry := _entry(where, key, node)) is not None:
            left -= len(entry.text)
            yield entry


def _inside(where: _Where, key: str, name: str | None) -> _Where:
    return None if where is None else (*where, *filter(None, (key, name)))


def _of_list(where: _Where, item: JSON, length: int) -> _Where:
    if length > 1 and isinstance(item, dict) and _name(cast(dict[str, JSON], item).items()) is None:
        return None
    return where


def _name(fields: Iterable[tuple[str, JSON]]) -> str | None:
    for key, value in fields:
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_ENTRY and _may_name(key.casefold(), value):
            return value
    return None


def _may_name(key: str, value: str) -> bool:
    return key in _NAMES or (value[0].isupper() and value[-1] not in ".!?" and key not in _VERDICTS)


def _entry(where: _Where, key: str, node: JSON) -> Entry | None:
    if key.casefold() in _CODE:
        return None
    if isinstance(node, str) and (len(node) > _LONGEST_ENTRY or node.rstrip().endswith((".", "!", "?"))):
        return Entry(None, node)
    if node is None or where is None or not key or key.casefold() in _ABOUT_THE_RESULT:
        return None
    # A number under a single word (`people: 700`) does not say what it is about.
    if not where and not isinstance(node, bool | str) and " " not in _words(key):
        return None
    value = ("yes" if node else "no") if isinstance(node, bool) else str(node)[:_LONGEST_ENTRY]
    path = " ".join(_words(part) for part in (*where[-_LONGEST_PATH:], key))
    return Entry(path.casefold(), f"{path}: {' '.join(value.split())}", named=bool(where))


def _words(key: str) -> str:
    return " ".join(_HUMP.sub(" ", key[:_LONGEST_ENTRY]).replace("_", " ").split())
