"""An answer and the outcomes -> which tasks each paragraph cites, what is cited wrongly, which results are unused.

`[t3]` and `[t1, t2]` cite tasks. Of the other names in brackets, these are citations of tasks that do not exist:

- letters and digits (`[t9]`, `[t9x]`), if the letters are those of one of the plan's ids, or `t` or `task`;
- one word in lower case (`[finance]`), if the plan has ids that are words and none of them is longer than it; words
  that prose puts in brackets (`[sic]`, `[note]`) are not meant.

Code, links (`[text](url)`, `[name]: url`), checkboxes (`[x]`), numbers (`[1]`) and letters changed in a quotation
(`[t]he`) are never citations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from chargehand.outcome import Outcome
from chargehand.report import Provenance
from chargehand.synthesizer.plain import paragraphs

_NAME = r"[A-Za-z][A-Za-z0-9_.-]{0,79}"
# Not a letter changed in a quotation. A definition `[name]: url` is a link too; `[t1]: the first ...` is not.
_BRACKETS = re.compile(rf"\[(?![A-Za-z]\][a-z])({_NAME}(?:\s*[,;]\s*{_NAME})*)\](?!\(|:\s*(?:<|[/#]|\w+://))", re.ASCII)
_NUMBERED = re.compile(r"([A-Za-z]+)[_-]?\d{1,4}[A-Za-z]?")
_LETTERS = re.compile(r"[A-Za-z]+")
_WORD = re.compile(r"[a-z]+(?:[_-][a-z0-9]+)*\d{0,3}")
_USUAL_LETTERS = frozenset({"t", "task"})
_PROSE = frozenset({
    "x", "sic", "note", "notes", "emphasis", "citation", "source", "sources", "ref", "reference", "link", "image",
    "figure", "table", "todo", "tbd", "tba", "redacted", "omitted", "unclear", "inaudible", "optional", "required",
    "example", "draft", "edit", "edited", "update", "updated", "done", "see", "above", "below", "placeholder", "name",
    "date", "number", "unknown",
})  # fmt: skip
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"``[^\n]*?``|`[^`\n]*`")


def cited(text: str) -> list[tuple[str, ...]]:
    """The names in each pair of citation brackets, in order."""
    return [tuple(name.strip() for name in re.split(r"[,;]", names)) for names in _BRACKETS.findall(text)]


def provenance_of(answer: str, outcomes: Mapping[str, Outcome]) -> Provenance:
    """What a model's answer cites, and what is wrong with that."""
    known, unknown = _citations(_without_code(answer), outcomes)
    problems = [f"Paragraph {n} cites [{name}], which is not a task of this run." for name, n in unknown.items()]
    if not known and not unknown and sum(outcome.ok for outcome in outcomes.values()) > 1:
        example = next(iter(outcomes))
        problems.append(f"The answer cites no task: cite those each paragraph rests on, as [{example}].")
    return _provenance(known, outcomes, problems)


def provenance_of_listing(answer: str, outcomes: Mapping[str, Outcome]) -> Provenance:
    """What a text made by code cites. Results stand in it as they are: brackets in them are nobody's mistake."""
    return _provenance(_citations(answer, outcomes)[0], outcomes, ())


def _provenance(
    known: Mapping[int, tuple[str, ...]], outcomes: Mapping[str, Outcome], problems: Collection[str]
) -> Provenance:
    used = {name for names in known.values() for name in names}
    return Provenance(
        citations={str(number): names for number, names in known.items()},
        problems=tuple(problems),
        unused=tuple(id for id, outcome in outcomes.items() if outcome.ok and id not in used),
    )


def _citations(text: str, tasks: Collection[str]) -> tuple[dict[int, tuple[str, ...]], dict[str, int]]:
    """The tasks each paragraph cites, and each unknown one with the paragraph that cites it first."""
    letters = _USUAL_LETTERS | {found[0].lower() for id in tasks if (found := _LETTERS.match(id))}
    shortest = min((len(id) for id in tasks if not any(map(str.isdigit, id))), default=None)
    known: dict[int, tuple[str, ...]] = {}
    unknown: dict[str, int] = {}
    for number, paragraph in enumerate(paragraphs(text), 1):
        groups = cited(paragraph)
        if names := tuple(dict.fromkeys(name for group in groups for name in group if name in tasks)):
            known[number] = names
        for group in groups:
            # Several words are a phrase, unless a task is among them.
            words = shortest if len(group) == 1 or any(name in tasks for name in group) else None
            for name in group:
                if name not in tasks and _like_an_id(name, letters, words):
                    unknown.setdefault(name, number)
    return known, unknown


def _like_an_id(name: str, letters: Collection[str], shortest_word: int | None) -> bool:
    if (numbered := _NUMBERED.fullmatch(name)) and numbered[1].lower() in letters:
        return True
    if shortest_word is None or len(name) < shortest_word or name in _PROSE:
        return False
    return _WORD.fullmatch(name) is not None


def _without_code(text: str) -> str:
    """The text with every character of code made a dot, so that lines and paragraphs stay where they are."""
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
