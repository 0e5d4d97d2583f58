"""`[t3]` in an answer -> the tasks it names: ids, lists (`[t1, t2]`), ranges (`[t1-t3]`) and links (`[t3](...)`).

These names in brackets, if no task has them, count as citations of tasks that do not exist:

- letters and digits (`[t9]`, `[t9x]`, `[x1.t9]`), if the letters are those of one of the plan's ids, or `t` or `task`;
- one word in lower case (`[finance]`), if the plan has ids that are words and the shortest of them is not longer;
  words that prose puts in brackets (`[sic]`, `[note]`) are excluded.

Code, links and their definitions (`[text](url)`, `[name]: url`), checkboxes (`[x]`), numbers (`[1]`) and letters
changed in a quotation (`[t]he`) are never citations, except for the link of a task that exists. Every pattern stops at
the character it starts with, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from chargehand.values.lazy_regex import lazy_regex

# Not a letter changed in a quotation. A definition `[name]: url` is a link too; `[t1]: the first ...` is not.
_BRACKETS = lazy_regex(r"\[(?![A-Za-z]\][a-z])([^\[\]]+)\](\([^()\s]*\))?(?!:[ \t]*(?:<|[/#]|\w{1,20}://))", re.ASCII)
_BETWEEN = lazy_regex(r"\s*(?:[,;&+]|\band\b)\s*")
# Words that people put before ids: `[task t1]`, `[Sources: t1, t2]`.
_BEFORE = lazy_regex(r"\s*(?:tasks?|see|sources?|from|results?)\b\s*:?\s+", re.IGNORECASE)
_NAME = lazy_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,79}", re.ASCII)
_RANGE = lazy_regex(
    r"([A-Za-z][A-Za-z0-9_.-]{0,70}?)(\d{1,6})\s*(?:-|\u2010|\u2011|\u2013|\u2014|\.\.\.?|\u2026|\bto\b)\s*"
    r"([A-Za-z][A-Za-z0-9_.-]{0,70}?)?(\d{1,6})",
    re.ASCII,
)
_LONGEST_NAME = 200
_LAST_NUMBER = lazy_regex(r"(.*?)(\d{1,6})", re.DOTALL | re.ASCII)
_NUMBERED = lazy_regex(r"([A-Za-z]+)[_-]?\d{1,4}[A-Za-z]?", re.ASCII)
_STEP = lazy_regex(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_LETTERS = lazy_regex(r"[A-Za-z]+")
_WORD = lazy_regex(r"[a-z]+(?:[_-][a-z0-9]+)*\d{0,3}", re.ASCII)
_USUAL_LETTERS = frozenset({"t", "task"})
_PROSE = frozenset({
    "x", "sic", "note", "notes", "emphasis", "citation", "source", "sources", "ref", "reference", "link", "image",
    "figure", "table", "todo", "tbd", "tba", "redacted", "omitted", "unclear", "inaudible", "optional", "required",
    "example", "draft", "edit", "edited", "update", "updated", "done", "see", "above", "below", "placeholder", "name",
    "date", "number", "unknown",
})  # fmt: skip
_FENCE = lazy_regex(r"\s*(`{3,}|~{3,})")
_INLINE_CODE = lazy_regex(r"``[^\n]*?``|`[^`\n]*`")


class Named(NamedTuple):
    """One entry in brackets: a task or a range of them; with neither field, it is only words next to a task."""

    text: str
    tasks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Citation(NamedTuple):
    """A pair of brackets that names tasks; `start` and `end` are its bounds, including the address of a link."""

    start: int
    end: int
    names: tuple[Named, ...]
    address: str | None

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task for name in self.names for task in name.tasks))

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task for name in self.names for task in name.unknown))


class Citations:
    """Finds what a text cites, given the ids of all tasks."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        self._letters = _USUAL_LETTERS | {found[0].lower() for id in self._ids if (found := _LETTERS.match(id))}
        self._shortest_word = min((len(id) for id in self._ids if not any(map(str.isdigit, id))), default=None)
        self._folded: dict[str, list[str]] = {}
        self._numbered: dict[str, list[tuple[int, str]]] = {}
        for id in self._ids:
            self._folded.setdefault(id.lower(), []).append(id)
            if numbered := _LAST_NUMBER.fullmatch(id):
                self._numbered.setdefault(numbered[1], []).append((int(numbered[2]), id))
        for of_prefix in self._numbered.values():
            of_prefix.sort()
        # The same brackets occur often; a range is spelled out only once.
        self._named: dict[str, tuple[Named, ...]] = {}

    def find(self, text: str) -> Iterator[Citation]:
        """The citations in order. The caller blanks out code first."""
        for found in _BRACKETS.finditer(text):
            address = found[2]
            if (names := self._named.get(found[1])) is None:
                names = self._named[found[1]] = self._names(found[1])
            if address is not None and not (names and all(name.tasks for name in names)):
                continue
            if names:
                yield Citation(found.start(), found.end(), names, address and address[1:-1])

    def tasks(self, text: str) -> tuple[str, ...]:
        """The tasks that a text cites, each once."""
        return tuple(dict.fromkeys(task for cited in self.find(text) for task in cited.tasks))

    def replace(self, text: str, new: Callable[[Citation], str]) -> str:
        """The text with each citation replaced by the result of `new`."""
        pieces: list[str] = []
        end = 0
        for citation in self.find(text):
            pieces += [text[end : citation.start], new(citation)]
            end = citation.end
        return "".join([*pieces, text[end:]])

    def blank_out(self, text: str) -> str:
        """The text with each citation replaced by a blank."""
        return self.replace(text, lambda _: " ")

    def _names(self, inside: str) -> tuple[Named, ...]:
        """What the brackets name; nothing when they are not a citation."""
        before = _BEFORE.match(inside)
        parts = [part.strip() for part in _BETWEEN.split(inside[before.end() :] if before else inside)]
        known = [self._known_task(part) for part in parts]
        cites = any(known)
        if not cites and not all(_NAME.fullmatch(part) or _RANGE.fullmatch(part) for part in parts):
            return ()
        # Several words are a phrase, unless a task is among them.
        words = cites or len(parts) == 1
        names = [found or self._unknown(part, words=words) for part, found in zip(parts, known, strict=True)]
        return tuple(names) if any(name.tasks or name.unknown for name in names) else ()

    def _known_task(self, part: str) -> Named | None:
        if len(part) > _LONGEST_NAME:
            return None
        if part in self._ids:
            return Named(part, (part,))
        if len(same := self._folded.get(part.lower(), ())) == 1:
            return Named(part, (same[0],))
        return self._range(part)

    def _range(self, part: str) -> Named | None:
        """`t1-t3` and `t1-3`: all tasks in the range, and the ends of the range that are not tasks."""
        ends = _RANGE.fullmatch(part)
        if ends is None or ends[3] not in (None, ends[1]) or (of_prefix := self._numbered.get(ends[1])) is None:
            return None
        first, last = sorted((int(ends[2]), int(ends[4])))
        numbers = [number for number, _ in of_prefix]
        between = of_prefix[bisect_left(numbers, first) : bisect_right(numbers, last)]
        there = {number for number, _ in between}
        unknown = tuple(f"{ends[1]}{number}" for number in (first, last) if number not in there)
        return Named(part, tuple(id for _, id in between), unknown)

    def _unknown(self, part: str, *, words: bool) -> Named:
        return Named(part, unknown=(part,) if len(part) <= _LONGEST_NAME and self._like_an_id(part, words) else ())

    def _like_an_id(self, name: str, words: bool) -> bool:
        steps = name.split(".")
        last = _NUMBERED.fullmatch(steps[-1])
        if last and last[1].lower() in self._letters and all(map(_STEP.fullmatch, steps)):
            return True
        if not words or self._shortest_word is None or len(name) < self._shortest_word or name in _PROSE:
            return False
        return _WORD.fullmatch(name) is not None


def without_code(text: str) -> str:
    """The text with every character of code replaced by a dot, so that lines and paragraphs keep their places."""
    lines: list[str] = []
    fence: str | None = None
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence is None and mark is None:
            lines.append(_INLINE_CODE.sub(lambda code: "." * len(code[0]), line))
            continue
        lines.append(re.sub(r"\S", ".", line))
        if fence is None:
            fence = mark[1] if mark else None
        elif mark is not None and mark[1].startswith(fence):
            fence = None
    return "\n".join(lines)
