"""A text -> whether it is only a placeholder for an answer: marks to be filled in, or words copied from a prompt.

    <markdown>    {answer}    [your answer]    ...    [t1] and nothing else    sentences of the prompt

Judged by form alone. A word that means nothing, such as `markdown` with a citation behind it, is not recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from chargehand.text.citation import Citations
from chargehand.values.base import JSON
from chargehand.values.lazy_regex import lazy_regex

# Not an address (`<https://...>`), and in the other brackets words only: `[1, 2]` and `{"a": 1}` may be answers.
_MARKS = lazy_regex(
    r"<(?![^<>]*(?:://|@))[^<>]*+>"
    # Each run of brackets is begun once, so the time is linear for every text.
    r"|(?<!\{)\{++\s*+[^\W\d][^\d{}\":]*+\}+|(?<!\[)\[++\s*+[^\W\d][^\d\[\]\":]*+\]+"
)
_WORDS = lazy_regex(r"\w+")
_END = lazy_regex(r"[.!?\n]")
# Fewer words may be in a prompt by chance.
_COPIED = 5


def is_placeholder(text: str, tasks: Iterable[str] = (), prompt: str = "") -> bool:
    """Whether it has only marks and citations of tasks, or each of its sentences is in the prompt."""
    citations = Citations(tasks)
    sentences = [words for each in _END.split(_MARKS.sub(" ", citations.blank_out(text))) if (words := _words(each))]
    if sum(map(len, sentences)) < _COPIED:
        return not sentences
    given = f" {' '.join(_words(citations.blank_out(prompt)))} "
    return all(f" {' '.join(words)} " in given for words in sentences)


def is_unfilled(data: JSON) -> bool:
    """Whether there are texts in the data and each of them is a placeholder."""
    texts = list(_texts(data))
    return bool(texts) and all(map(is_placeholder, texts))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(text) if word.strip("_")]


def _texts(data: JSON) -> Iterator[str]:
    """Every text in the data that is not blank; without recursion, because data may be as deep as its schema allows."""
    waiting: list[JSON] = [data]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            if node.strip():
                yield node
        elif isinstance(node, dict):
            waiting += cast("dict[str, JSON]", node).values()
        elif isinstance(node, list):
            waiting += cast("list[JSON]", node)
