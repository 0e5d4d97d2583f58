"""A worker's answer -> the same answer with its valid sources, and why other sources are not valid.

A source is valid when it names something that the worker was given or had read in this attempt:

    notes.md:12         a file of which a tool showed it something, or that its context or an input carried, and a line
                        that the file has; where it has no such line, the one that has the words of the statement
    https://a.example   an address in its task, in an input, or in what a tool was asked for or returned
    t1                  a task it depends on; its own id and all others are put there by code only

Other words ("the annual report") are left as they are: nobody can look them up. A false source is taken out, and the
confidence of what rested on it is at most 50. A worker without material and without tools has only its own knowledge:
its addresses are kept and marked, and its confidence is at most 70. Only the record is read here, so a resumed run gets
the same result.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

from chargehand.values.base import JSON
from chargehand.values.effect import ToolResult
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Claim, Evidence, Finding, Gap, Outcome
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task
from chargehand.workers.worker_answer import Answer

MOST_WITH_FALSE_SOURCE = 50
MOST_BY_OWN_KNOWLEDGE = 70
# The confidence that code gives a doubtful answer. Below 40, tasks would be added for it.
DOUBTED = 45
UNCONFIRMED = " (unconfirmed)"
# How many characters of an input's output are read: as many as the worker is shown.
MOST_CHARACTERS = 24_000
# Statements of one answer whose line is looked for by their words, and lines with the same word that are compared.
MOST_LOOKED_FOR = 100
_MOST_LINES = 200
# A line is the one that is meant when it has this share of the statement's words, and no other has as many.
_LEAST_SHARED = 0.5
_LONGEST_LITTLE_WORD = 3
_LONGEST_SOURCE = 2_000
# How many false sources are reported to a model.
_MOST_SHOWN = 5
_LONGEST_SHOWN = 100

_URL = lazy_regex(r"(?:https?://|\bwww\.)[^\s<>\"'`()\[\]{}|\\^]+", re.IGNORECASE)
# `a.md:12`, `a.md:12-14`, `a.py:12:5`, `a.md#L12`, `a.md, line 12`, `a.md (lines 12-14)`; words may follow.
_PLACE = lazy_regex(
    r"(?P<name>[^\n]{1,400}?)(?::|\#L?|,?\s+\(?(?:at\s+)?lines?\s+)(?P<first>\d{1,9})"
    r"(?:\s*[-\u2013]\s*L?(?P<last>\d{1,9}))?(?![\w.])",
    re.IGNORECASE,
)
_FILE = lazy_regex(r"[^\s:]*(?:/[^\s:]+|[^\s:/]\.[A-Za-z]\w{0,9})")
# In running text: only what cannot be anything else.
_MENTION = lazy_regex(r"[\w./-]+\.[A-Za-z]\w{0,9}:\d{1,9}", re.ASCII)
_TASK = lazy_regex(r"(?:(?:result|output) of\s+)?(?:task\s+)?([A-Za-z][A-Za-z0-9_.-]{0,79})", re.IGNORECASE | re.ASCII)
# The form of task ids in plans that models make; an id of this form is false when no task has it.
_LIKE_A_TASK = lazy_regex(r"(?:[A-Za-z]\d*\.)*(?:t|task)[_-]?\d{1,4}", re.IGNORECASE | re.ASCII)
# The placeholder for a source in prompts: models copy it.
_FORM = lazy_regex(r"urls?|(?:urls? or )?\w+:lines?", re.IGNORECASE)
_NUMBERED = lazy_regex(r"(\d{1,9}): ?(.*)")
_HEADER = lazy_regex(r"(.+?)(?: \(lines (\d+)-\d+ of \d+\b.*\)|:(\d+)-\d+)")
_HIT = lazy_regex(r"(.{1,400}?):(\d{1,9}): ")
_WORD = lazy_regex(r"\w+")
_AROUND = " \t\n`'\"[]()<>"

_Part = TypeVar("_Part", Claim, Finding)


class Grounded(NamedTuple):
    """An answer with its valid sources; `false` are the removed sources, `gap` is why the answer may be wrong."""

    answer: Answer
    evidence: Evidence | None = None
    false: tuple[str, ...] = ()
    gap: Gap | None = None

    def doubt(self, why: str, task: str) -> Grounded:
        """The same answer with low confidence, and with the reason as a gap."""
        named = (source for claim in self.answer.claims for source in claim.sources)
        lines = list(dict.fromkeys(source for source in named if source.rpartition(":")[2].isdigit()))[:_MOST_SHOWN]
        where = ", ".join(lines) if lines else "the material"
        gap = Gap(task=task, reason=why, impact=f"The answer may be wrong: compare it with {where}.")
        return self._replace(answer=self.answer._replace(confidence=DOUBTED), gap=gap)


@plain_class()
class Grounds:
    """What a worker was given and what its tools returned in one attempt. Made when it has answered."""

    task: Task
    inputs: Mapping[str, Outcome]
    # Calls of tools that succeeded: the arguments and the result.
    results: Sequence[tuple[Mapping[str, Any], ToolResult]] = ()
    # Whether there is material to read, or a tool to find something out with.
    has_means: bool = False
    # The ids of all tasks that are known in the run.
    tasks: Collection[str] = ()
    looked_for: int = field(default=0, init=False)

    def hold(self, answer: Answer) -> Grounded:
        """The answer with its valid sources. Claims and findings keep their order."""
        false: list[str] = []
        claims = [self._claim(claim, false) for claim in answer.claims]
        findings = [self._finding(finding, false) for finding in answer.findings]
        # A result without claims and findings is one statement.
        own = max(len(claims) + len(findings), 1) if self.is_own_knowledge else 0
        confidence = answer.confidence
        if confidence is not None:
            confidence = _least(confidence, self._most(has_false=bool(false)))
        held = answer._replace(claims=tuple(claims), findings=tuple(findings), confidence=confidence)
        evidence = Evidence(removed=len(false), own_knowledge=own) if false or own else None
        return Grounded(held, evidence, tuple(false))

    def doubts(self, held: Grounded) -> tuple[str, ...]:
        """Why the answer is refused where everything must be confirmed, in words for the model and the record."""
        found: list[str] = []
        if held.false:
            shown = ", ".join(source[:_LONGEST_SHOWN] for source in held.false[:_MOST_SHOWN])
            found.append(f"sources name nothing that was given or read: {shown}")
        if count := self._count_unconfirmed(held.answer):
            found.append(
                f"{count:,} of its statements have no source that confirms them: a file:line that a tool read, an "
                "address that a tool returned, or a task this one depends on"
            )
        return tuple(found)

    def _count_unconfirmed(self, answer: Answer) -> int:
        """How many statements of an answer are confirmed by no source."""
        if self.is_own_knowledge:
            return max(len(answer.claims) + len(answer.findings), 1)
        stated = [(claim.sources, None) for claim in answer.claims]
        stated += [(finding.sources, finding.path) for finding in answer.findings]
        return sum(not self.is_confirmed(sources, path) for sources, path in stated)

    @cached_property
    def is_own_knowledge(self) -> bool:
        """Whether nothing was given and nothing could be read: neither material, nor tools, nor sources of others."""
        return not (self.has_means or self._in_context or any(map(_has_source, self.inputs.values())))

    def is_confirmed(self, sources: Sequence[str], path: str | None = None) -> bool:
        """Whether one of the sources names something that was given or read."""
        return (path is not None and self._find_named_file(path) is not None) or any(
            source in self.inputs
            or (self._find_named_file(source.partition(":")[0]) is not None)
            or (bool(_URL.search(source)) and not source.endswith(UNCONFIRMED))
            for source in sources
        )

    # -- one statement -----------------------------------------------------------------------------------------------

    def _claim(self, claim: Claim, false: list[str]) -> Claim:
        before = len(false)
        sources = self._sources(claim.sources, claim.statement, false)
        changed: dict[str, Any] = {} if sources == claim.sources else {"sources": sources}
        return self._with(claim, changed, has_false=len(false) > before)

    def _finding(self, finding: Finding, false: list[str]) -> Finding:
        before = len(false)
        sources = self._sources(finding.sources, finding.message, false)
        changed: dict[str, Any] = {} if sources == finding.sources else {"sources": sources}
        if finding.path is not None:
            changed |= self._correct_place(finding, finding.path, false)
        return self._with(finding, changed, has_false=len(false) > before)

    def _with(self, part: _Part, changed: dict[str, Any], *, has_false: bool) -> _Part:
        """The statement with its changes, and with its confidence limited. One copy: there may be thousands."""
        most = _least(part.confidence, self._most(has_false=has_false))
        if part.confidence is not None and most != part.confidence:
            changed["confidence"] = most
        return part.model_copy(update=changed) if changed else part

    def _most(self, *, has_false: bool) -> int | None:
        """The highest confidence allowed; None means any."""
        if has_false:
            return MOST_WITH_FALSE_SOURCE
        return MOST_BY_OWN_KNOWLEDGE if self.is_own_knowledge else None

    def _correct_place(self, finding: Finding, path: str, false: list[str]) -> dict[str, Any]:
        """What has to change in the place of a finding."""
        shown = path if finding.line is None else f"{path}:{finding.line}"
        name = self._find_named_file(path)
        if name is None:
            if not _FILE.fullmatch(path.strip(_AROUND)):
                return {}
            false.append(shown)
            return {"path": None, "line": None, "end_line": None}
        changed: dict[str, Any] = {} if name == path else {"path": name}
        if finding.line is None:
            return changed
        if self._has_line(name, finding.line):
            if finding.end_line is not None and not self._has_line(name, finding.end_line):
                changed["end_line"] = self.files[name]
            return changed
        line = self._line_of(name, finding.message)
        if line is None:
            false.append(shown)
        return changed | {"line": line, "end_line": None}

    def _sources(self, named: Sequence[str], statement: str, false: list[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kept for source in named for kept in self._keep_source(source, statement, false)))

    def _keep_source(self, source: str, statement: str, false: list[str]) -> Iterator[str]:
        """The sources to keep for one source: none or one, or several for a list of tasks."""
        if len(source) > _LONGEST_SOURCE or source.endswith(UNCONFIRMED):
            source = source[:_LONGEST_SOURCE].removesuffix(UNCONFIRMED)
        bare = source.strip(_AROUND)
        if not bare:
            return
        if (tasks := self._as_tasks(bare)) is not None:
            for id in tasks:
                if id in self.inputs:
                    yield id
                elif id != self.task.id:
                    false.append(id)
        elif _FORM.fullmatch(bare):
            false.append(bare)
        elif (url := _URL.search(source)) is not None:
            yield from self._address(source.strip(), _plain(url[0]), false)
        else:
            yield from self._file(source.strip(), bare.removeprefix("file://"), statement, false)

    def _as_tasks(self, text: str) -> list[str] | None:
        """The ids that a source names; None when it is something else."""
        if ":" in text or "/" in text:
            return None
        found: list[str] = []
        for part in text.split(","):
            named = _TASK.fullmatch(part.strip(_AROUND))
            if named is None:
                return None
            id = self._ids.get(named[1].casefold())
            if id is None and not _LIKE_A_TASK.fullmatch(named[1]):
                return None
            found.append(id or named[1])
        return found

    def _address(self, source: str, url: str, false: list[str]) -> Iterator[str]:
        confirmed = self._addresses.get(url)
        if confirmed:
            yield source
        elif confirmed is False or self.is_own_knowledge:
            yield f"{source}{UNCONFIRMED}"
        else:
            false.append(source)

    def _file(self, source: str, bare: str, statement: str, false: list[str]) -> Iterator[str]:
        place = _PLACE.match(bare)
        given = place["name"].strip(_AROUND) if place else bare
        name = self._find_named_file(given)
        if name is None:
            if place is not None and _FILE.fullmatch(given):
                false.append(source)
            else:
                yield source
            return
        first = int(place["first"]) if place else None
        if first is not None and self._has_line(name, first):
            last = int(place["last"]) if place and place["last"] else first
            yield f"{name}:{first}-{last}" if last > first and self._has_line(name, last) else f"{name}:{first}"
        elif (line := self._line_of(name, statement)) is not None:
            yield f"{name}:{line}"
        elif first is None:
            yield name
        else:
            false.append(source)

    # -- what there is -----------------------------------------------------------------------------------------------

    @cached_property
    def _ids(self) -> dict[str, str]:
        return {id.casefold(): id for id in (*self.tasks, *self.inputs, self.task.id)}

    @cached_property
    def files(self) -> dict[str, int | None]:
        """Each file that may be named, with the last line it is known to have; None is any."""
        found: dict[str, int | None] = dict(_carried_files(self.inputs.values()))
        found.update(self._in_context)
        for _, result in self.results:
            # Names with `//` are lists and searches: the lines that they showed of files are among the lines.
            found.update({name: None for name in result.reads if "//" not in name and name not in found})
            found.update(result.lines)
        return found

    @cached_property
    def _in_context(self) -> dict[str, int]:
        return dict(_files_in(self.task.context))

    @cached_property
    def _by_last_part(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.files:
            names.setdefault(name.rpartition("/")[2], []).append(name)
        return names

    def _find_named_file(self, text: str) -> str | None:
        """The file that is meant: by its name, or by an end of its path that only one has."""
        text = text.strip(_AROUND).removeprefix("./")
        if text in self.files:
            return text
        near = self._by_last_part.get(text.rpartition("/")[2], ())
        same = [name for name in near if name.endswith(f"/{text}") or text.endswith(f"/{name}")]
        return same[0] if len(same) == 1 else None

    def _has_line(self, name: str, line: int) -> bool:
        last = self.files[name]
        return line >= 1 and (last is None or line <= last)

    @cached_property
    def _addresses(self) -> dict[str, bool]:
        """Addresses that the worker can know; False for an address that nobody has confirmed."""
        found: dict[str, bool] = {}
        texts = [self.task.instruction, self.task.success_criterion, _text(self.task.context)]
        for arguments, result in self.results:
            texts += [result.text, _text(arguments)]
        for outcome in self.inputs.values():
            named = [source for item in (*outcome.claims, *outcome.findings) for source in item.sources]
            for source in named:
                for url in _URL.findall(source):
                    found[_plain(url)] = not source.endswith(UNCONFIRMED)
            texts += [outcome.summary[:MOST_CHARACTERS], _text(outcome.output)[:MOST_CHARACTERS]]
        for text in texts:
            for url in _URL.findall(text):
                found.setdefault(_plain(url), True)
        return found

    def find_source(self, statement: str) -> tuple[str, ...]:
        """The place in what tools showed that has the words of a statement, where it is the only one; else none."""
        places = [(name, line) for name in self._index if (line := self._line_of(name, statement)) is not None]
        return (f"{places[0][0]}:{places[0][1]}",) if len(places) == 1 else ()

    def _line_of(self, name: str, statement: str) -> int | None:
        """The one line of a file, among those that were shown, that has most words of a statement.

        Or the line that has all its figures and one of its longer words: an answer uses other words than its source.
        """
        self.looked_for += 1
        words = _WORD.findall(statement[:MOST_CHARACTERS])
        wanted = dict.fromkeys(word.casefold() for word in words if len(word) > 2 or word.isdigit())
        if self.looked_for > MOST_LOOKED_FOR or not wanted:
            return None
        index, hits = self._index.get(name, {}), Counter[int]()
        for word in wanted:
            hits.update(index.get(word, ())[:_MOST_LINES])
        best = hits.most_common(2)
        if not best or best[0][1] < max(_LEAST_SHARED * len(wanted), 2) or (len(best) > 1 and best[1][1] == best[0][1]):
            return _line_with_figures(wanted, index)
        return best[0][0]

    @cached_property
    def _shown(self) -> dict[tuple[str, int], str]:
        """The lines that tools showed, by file and number."""
        shown: dict[tuple[str, int], str] = {}
        for _, result in self.results:
            for name, number, text in shown_lines(result.text, result.lines):
                shown.setdefault((name, number), text)
        return shown

    @cached_property
    def _index(self) -> dict[str, dict[str, list[int]]]:
        """File -> word -> the lines it is in, of what tools showed."""
        index: dict[str, dict[str, list[int]]] = {}
        for (name, number), text in self._shown.items():
            of_file = index.setdefault(name, {})
            for word in dict.fromkeys(word.casefold() for word in _WORD.findall(text)):
                of_file.setdefault(word, []).append(number)
        return index


def _line_with_figures(wanted: Collection[str], index: Mapping[str, Sequence[int]]) -> int | None:
    """The only line that has every figure among these words, and one more of them that says something."""
    figures = [frozenset(index.get(word, ())[:_MOST_LINES]) for word in wanted if word.isdigit()]
    others = [index.get(word, ())[:_MOST_LINES] for word in wanted if len(word) > _LONGEST_LITTLE_WORD]
    lines = frozenset[int]().union(*others).intersection(*figures) if figures else frozenset[int]()
    return next(iter(lines)) if len(lines) == 1 else None


def shown_lines(text: str, names: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """The numbered lines of these files in what a tool that reads files returned."""
    if not names:
        return
    at: tuple[str, int] | None = None
    for line in text.split("\n"):
        header = _HEADER.fullmatch(line)
        if header is not None and header[1] in names:
            at = header[1], int(header[2] or header[3])
            continue
        hit = _HIT.match(line)
        if hit is not None and hit[1] in names:
            at = None
            yield hit[1], int(hit[2]), line[hit.end() :]
        elif at is not None:
            yield *at, line
            at = at[0], at[1] + 1


def _carried_files(inputs: Iterable[Outcome]) -> Iterator[tuple[str, int | None]]:
    """The files that inputs name as sources, each with the last line they name of it."""
    last: dict[str, int] = {}
    for outcome in inputs:
        for finding in outcome.findings:
            if finding.path is not None:
                line = max(finding.line or 0, finding.end_line or 0)
                last[finding.path] = max(last.get(finding.path, 0), line)
        sources = [source for item in (*outcome.claims, *outcome.findings) for source in item.sources]
        for source in (*sources, *_MENTION.findall(_text(outcome.output)[:MOST_CHARACTERS])):
            if (place := _place_in_file(source)) is not None:
                line = max(int(place["first"]), int(place["last"] or 0))
                last[place["name"]] = max(last.get(place["name"], 0), line)
    yield from last.items()


def _files_in(context: JSON) -> Iterator[tuple[str, int]]:
    """Files that a task has in its context, as text under their names: each with its last line."""
    waiting: list[JSON] = [context]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(cast("list[JSON]", node))
        elif isinstance(node, dict):
            for name, value in cast("dict[str, JSON]", node).items():
                if not isinstance(value, str):
                    waiting.append(value)
                elif numbers := [int(found[1]) for line in value.split("\n") if (found := _NUMBERED.match(line))]:
                    yield name, max(numbers)
                elif _FILE.fullmatch(name):
                    yield name, value.removesuffix("\n").count("\n") + 1


def _has_source(outcome: Outcome) -> bool:
    """Whether it names something that was confirmed: a place in a file or an address."""
    if any(finding.path is not None for finding in outcome.findings):
        return True
    sources = (source for item in (*outcome.claims, *outcome.findings) for source in item.sources)
    return any(
        not source.endswith(UNCONFIRMED) and (_URL.search(source) is not None or _place_in_file(source) is not None)
        for source in sources
    )


def _place_in_file(source: str) -> re.Match[str] | None:
    place = _PLACE.match(source)
    return place if place is not None and _FILE.fullmatch(place["name"]) else None


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(url: str) -> str:
    """What spellings of one address have in common."""
    url = url.partition("#")[0].rstrip("/.,;:!?*_~").lower()
    return url.removeprefix("https://").removeprefix("http://").removeprefix("www.")


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)
