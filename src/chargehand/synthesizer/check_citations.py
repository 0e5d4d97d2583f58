"""An answer and the outcomes -> the tasks each paragraph cites, the problems of these citations, the unused results.

Each problem is a code and a sentence:

    unknown_citation     [t9] is not a task of this run
    unsupported_figure   a figure that no result cited for it holds
    uncited_figure       a figure that a result holds, in a paragraph that cites none
    unknown_url          a url that neither the request, a result nor a tool's result holds
    failed_citation      a passage or a clause that rests on tasks without a result alone, and does not speak of what is
                         missing
    unused_result        a result that is neither cited nor merged into something cited, nor left out for a reason

A run with one of the first two is not complete. All are sent back to the synthesizer, with what to do about them.
Unused results are in `unused` and not among the problems; a run with unused results is not complete either.

Not looked up: whole numbers up to 3, or up to the number of items that the answer lists (at most 12), what the request
itself says, the number of this run's own tasks and findings, number words, and code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from chargehand.synthesizer.answer_passages import AnswerPassage, Paragraph, read
from chargehand.synthesizer.figures import Figure, clock_time_around, figures, most_counted
from chargehand.synthesizer.plain_report import paragraphs
from chargehand.synthesizer.result_index import ResultIndex, readings, values_in
from chargehand.synthesizer.statements import is_record
from chargehand.synthesizer.word_stems import overlap, terms
from chargehand.text.citation import Citations
from chargehand.text.urls import normal, urls
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Claim, Finding, Outcome
from chargehand.values.plan import Plan
from chargehand.values.report import Provenance
from chargehand.values.request import Request

Code: TypeAlias = Literal[
    "unknown_citation",
    "unsupported_figure",
    "uncited_figure",
    "unknown_url",
    "no_citation",
    "failed_citation",
    "unused_result",
]
ADVICE: dict[Code, str] = {
    "unknown_citation": "Cite tasks of this run only.",
    "unsupported_figure": "Cite the task it is from; if no result has it, leave it out.",
    "uncited_figure": "Cite the task it is from.",
    "unknown_url": "Leave it out.",
    "no_citation": "Cite the tasks each paragraph rests on, their ids in square brackets.",
    "failed_citation": "Say what is missing, or cite the result it is from.",
    "unused_result": "Use it, or name it in `left_out` with the reason.",
}
# How many problems of one kind are written out; more help neither the model nor the reader.
MOST_OF_A_KIND = 10
# Words that say that a result is missing; a denial is one way to say it.
_MISSING = lazy_regex(
    r"n['’]t\b|\b(?:not?\b|never\b|none\b|nothing\b|without\b|cannot\b|lack|missing|absent"
    r"|nicht|kein|ohne\b|pas\b|aucun|sans\b|nada\b|sin\b|non\b|senza\b|niet\b|geen\b|ikke\b|inte\b"
    r"|fail|unavailab|skip|time[ds]?[ -]?out|unknown|open\b|incomplete|pending|gap|error|unable|unread|unanswer"
    r"|undeterm|unclear|uncertain|unresolved|unfinished|abort|cancel|refus|denied|block|stopped|broke|outage|escalat|wait"
    r"|remains?\b|still\b|only partial|left (?:out|open)|fehl|unbekannt|offen|manqu|échou|falta|fall[óo])",
    re.IGNORECASE,
)
_OF_ITS_REASON = 0.4


@dataclass(frozen=True, slots=True)
class Known:
    """What an answer may also say: figures and urls of `text`, and `urls` in their normal form."""

    text: str = ""
    urls: frozenset[str] = frozenset()

    @staticmethod
    def of(request: Request, plan: Plan, read: Iterable[str] = ()) -> Known:
        """The request and the run it follows up on; `read` are the urls in what tools returned.

        The planner's version of the request is not evidence. The instruction counts if the goal is in the request's own
        words, as in a plan that was given without a request.
        """
        earlier = request.earlier
        words = [request.text]
        if plan.goal.strip() and plan.goal.strip() in request.text:
            words.append(plan.synthesis.instruction)
        words += [earlier.request, earlier.answer] if earlier else []
        return Known("\n".join(filter(None, words)), frozenset(read))


def provenance_of(
    answer: str,
    outcomes: Mapping[str, Outcome],
    *,
    known: Known | None = None,
    merged: Iterable[Claim | Finding] = (),
) -> Provenance:
    """What a model's answer cites, and what is wrong with that.

    `merged` are the claims and findings after deduplication: a result is used if all its items were merged with items
    of a cited task.
    """
    parts, merged = read(answer, Citations(outcomes)), tuple(merged)
    check = _Check(outcomes, known or Known(), merged, ResultIndex(outcomes))
    figures = tuple(check.figures(parts))
    problems = [*_unknown(parts), *(problem for _, problem in figures), *check.urls(answer)]
    problems += check.without_result(parts, {paragraph for paragraph, _ in figures})
    cited = {task for paragraph in parts for task in paragraph.tasks}
    if not cited:  # it is rejected for that, and citations are asked for once
        problems = [problem for problem in problems if problem[0] != "uncited_figure"]
    return Provenance(
        citations={str(paragraph.number): paragraph.tasks for paragraph in parts if paragraph.tasks},
        problems=tuple(_word_problems(problems)),
        unused=_unused_tasks(outcomes, cited, merged),
    )


def provenance_of_listing(
    answer: str, outcomes: Mapping[str, Outcome], merged: Iterable[Claim | Finding] = ()
) -> Provenance:
    """The citations of a text made by code. It contains results unchanged: brackets in them are not mistakes."""
    citations = Citations(outcomes)
    found: dict[str, tuple[str, ...]] = {}
    for number, paragraph in enumerate(paragraphs(answer), 1):
        if tasks := citations.tasks(paragraph):
            found[str(number)] = tasks
    cited = {task for tasks in found.values() for task in tasks}
    return Provenance(citations=found, unused=_unused_tasks(outcomes, cited, merged))


def why_unfounded(provenance: Provenance, outcomes: Mapping[str, Outcome]) -> str | None:
    """Why an answer that rests on no result is rejected; None for one that rests on some."""
    if not provenance.cited:
        return f"no_citation: The answer cites no task of this run. {ADVICE['no_citation']}"
    if not any(outcomes[task].ok or outcomes[task].partial for task in provenance.cited):
        return "uses_no_result: The answer uses no result: what it cites has none. Cite the tasks that have results."
    return None


def corrections(provenance: Provenance) -> tuple[str, ...]:
    """What a synthesizer has to correct: the problems, the results it left out, and what to do about each."""
    unused = [("unused_result", f"The answer does not use [{task}], which is done.") for task in provenance.unused]
    problems = (*provenance.problems, *_word_problems(unused))
    advice = {str(code): words for code, words in ADVICE.items()}
    return tuple(f"{problem} {advice.get(problem.partition(':')[0], '')}".rstrip() for problem in problems)


_Problem: TypeAlias = tuple[Code, str]


def _word_problems(problems: Iterable[tuple[str, str]]) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for code, sentence in problems:
        counted[code] += 1
        if counted[code] <= MOST_OF_A_KIND:
            yield f"{code}: {sentence}"
    for code, number in counted.items():
        if number > MOST_OF_A_KIND:
            yield f"{code}: {number - MOST_OF_A_KIND} more of this kind."


def _unknown(parts: Iterable[Paragraph]) -> Iterator[_Problem]:
    """Each unknown task once, at its first citation."""
    first: dict[str, int] = {}
    for passage in _passages(parts):
        for name in passage.unknown:
            first.setdefault(name, passage.paragraph)
    for name, number in first.items():
        yield "unknown_citation", f"Paragraph {number} cites [{name}], which is not a task of this run."


def _unused_tasks(
    outcomes: Mapping[str, Outcome], cited: Collection[str], merged: Iterable[Claim | Finding]
) -> tuple[str, ...]:
    in_use: dict[str, bool] = {}
    for item in merged:
        tasks = [source for source in item.sources if source in outcomes]
        used = any(task in cited for task in tasks)
        for task in tasks:
            in_use[task] = in_use.get(task, True) and used
    return tuple(
        id
        for id, outcome in outcomes.items()
        if outcome.ok and id not in cited and not in_use.get(id, False) and not _is_only_findings(outcome)
    )


def _is_only_findings(outcome: Outcome) -> bool:
    """Whether the report itself uses all of a result: its findings are listed there, and it states nothing else.

    An empty list or object is the result of a task that was asked for findings and has none.
    """
    if outcome.claims:
        return False
    return is_record(outcome) or outcome.output in ({}, []) or (not outcome.output and bool(outcome.findings))


def _passages(parts: Iterable[Paragraph]) -> Iterator[AnswerPassage]:
    return (passage for paragraph in parts for passage in paragraph.passages)


@dataclass(frozen=True)
class _Check:
    outcomes: Mapping[str, Outcome]
    known: Known
    merged: Sequence[Claim | Finding]
    index: ResultIndex

    def figures(self, parts: Sequence[Paragraph]) -> Iterator[tuple[int, _Problem]]:
        """The problems, each with its paragraph."""
        seen: set[tuple[int, str]] = set()
        most = most_counted(sum(passage.kind in ("item", "row", "heading") for passage in _passages(parts)))
        for passage in _passages(parts):
            cited = frozenset(passage.tasks)
            for figure in figures(passage.text):
                time = clock_time_around(passage.text, figure)
                place = passage.paragraph, time or figure.value
                if figure.counts_up_to(most) or place in seen:
                    continue
                if (problem := self._figure(figure, time or figure.text, passage, cited)) is not None:
                    seen.add(place)
                    yield passage.paragraph, problem

    def without_result(self, parts: Sequence[Paragraph], reported: Collection[int]) -> Iterator[_Problem]:
        """Passages that rest on failed tasks; once for each paragraph, unless its figures are already reported."""
        seen = set(reported)
        for passage in _passages(parts):
            if passage.paragraph in seen or passage.kind == "heading":
                continue
            clauses = ((passage.tasks, passage.text), *passage.clauses)
            if (tasks := next((tasks for tasks, text in clauses if self._is_baseless(tasks, text)), None)) is not None:
                seen.add(passage.paragraph)
                yield "failed_citation", f"Paragraph {passage.paragraph} rests on {self._name_without_result(tasks)}."

    def _is_baseless(self, tasks: Sequence[str], text: str) -> bool:
        outcomes = [self.outcomes[task] for task in tasks]
        if not outcomes or any(outcome.ok or outcome.partial for outcome in outcomes):
            return False
        return not _speaks_of_a_gap(text, [outcome.summary for outcome in outcomes])

    def _name_without_result(self, tasks: Sequence[str]) -> str:
        faults = [self.outcomes[task].error for task in tasks]
        stopped = all(fault is not None and fault.kind == "cancelled" for fault in faults)
        return f"[{', '.join(tasks[:5])}], which {'a person stopped: it ' if stopped else ''}has no result"

    def _figure(self, figure: Figure, shown: str, passage: AnswerPassage, cited: Collection[str]) -> _Problem | None:
        if not self._needs_no_source.isdisjoint(readings(figure)) or self.index.has(figure, cited):
            return None
        somewhere = self.index.has(figure, self.outcomes)
        said = f"Paragraph {passage.paragraph} says {shown}"
        lacks = f"[{', '.join(passage.tasks[:5])}] {'does' if len(passage.tasks) == 1 else 'do'} not contain"
        if not somewhere:
            return "unsupported_figure", f"{said}, which {lacks if passage.tasks else 'no result contains'}."
        if passage.tasks:
            return "unsupported_figure", f"{said}, which {lacks}; another result does."
        # A heading need not cite what the text under it does.
        return None if passage.kind == "heading" else ("uncited_figure", f"{said} and cites no task.")

    def urls(self, answer: str) -> Iterator[_Problem]:
        for number, paragraph in enumerate(paragraphs(answer), 1):
            for url in dict.fromkeys(urls(paragraph)):
                if normal(url) not in self._urls:
                    yield "unknown_url", f"Paragraph {number} gives {url[:200]}, which no result contains."

    @cached_property
    def _needs_no_source(self) -> frozenset[str]:
        """Values that need no result: those of the request, and the numbers of tasks and findings."""
        outcomes = self.outcomes.values()
        done = sum(outcome.ok for outcome in outcomes)
        counts = [len(outcomes), done, len(outcomes) - done]
        every = [finding for outcome in outcomes for finding in outcome.findings]
        for findings in (every, [item for item in self.merged if isinstance(item, Finding)]):
            counts += [len(findings), *Counter(finding.severity for finding in findings).values()]
        return values_in(self.known.text).union(map(str, counts))

    @cached_property
    def _urls(self) -> frozenset[str]:
        given = (normal(url) for url in urls(self.known.text))
        return self.index.urls.union(self.known.urls, given)


def _speaks_of_a_gap(text: str, reasons: Iterable[str]) -> bool:
    """Whether a text says that something is missing, or why: by a word for it, a denial, or the words of a reason.

    A single word, as in `Source:`, says nothing else.
    """
    if _MISSING.search(text):
        return True
    said = frozenset(terms(text))
    return len(said) < 2 or any(overlap(said, frozenset(terms(why))) >= _OF_ITS_REASON for why in reasons)
