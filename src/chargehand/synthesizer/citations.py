"""An answer and the outcomes -> which tasks each paragraph cites, what is wrong with that, which results are unused.

Each problem is a code and a sentence:

    unknown_citation     [t9] is no task of this run
    unsupported_figure   a figure that no result cited for it holds
    uncited_figure       a figure that a result holds, in a paragraph that cites none
    unknown_url          a url that neither the request, a result nor a tool's result holds
    no_citation          several results, and not one cited
    unused_result        a result that is neither cited nor merged into something cited

The first two keep a run from being complete. All are worth telling the synthesizer. Unused results stand in `unused`
and not among the problems, for leaving one out may be on purpose.

No figures are: list and heading numbers, small counting words, labels ("step 3", "option 2"), what the request itself
says, the length of a list the answer goes on to give, and the number of this run's own tasks and findings. Code is
never held against anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from chargehand.citation import Citations
from chargehand.outcome import Claim, Finding, Outcome
from chargehand.plan import Plan
from chargehand.report import Provenance
from chargehand.request import Request
from chargehand.synthesizer.evidence import Evidence, Held, held_in_text
from chargehand.synthesizer.figures import Figure, figures
from chargehand.synthesizer.passages import Paragraph, Passage, announced, read
from chargehand.synthesizer.plain import paragraphs
from chargehand.synthesizer.units import is_money
from chargehand.synthesizer.urls import normal, urls

Code: TypeAlias = Literal[
    "unknown_citation", "unsupported_figure", "uncited_figure", "unknown_url", "no_citation", "unused_result"
]
CODES: tuple[Code, ...] = get_args(Code)
KEEPS_OPEN: tuple[Code, ...] = ("unknown_citation", "unsupported_figure")
# Problems of one kind that are spelled out; more help neither the model nor the reader.
MOST_OF_A_KIND = 10
SMALL_COUNT = 20
_LABEL = re.compile(
    r"\b(?:steps?|options?|phases?|parts?|sections?|tables?|figures?|figs?\.?|tiers?|levels?|items?|points?|no\.|numbers?"
    r"|questions?|chapters?|days?|weeks?|rounds?|tasks?|stages?|appendix|schritt|phase|teil)\s+\Z",
    re.IGNORECASE,
)
_OF_THE_RUN = re.compile(
    r"\s+(?:of\s+(?:the\s+)?(?:\w+\s+)?)?(?:\w+\s+){0,2}(?:tasks?|workers?|results?|findings?|issues?|problems?|claims?"
    r"|reports?|reviewers?|warnings?|critical|sources)\b",
    re.IGNORECASE,
)
_IDIOMS = re.compile(r"\b24/7\b|\b50/50\b|^[ \t>*_#-]*\(?\d{1,3}[.)](?=\s)", re.MULTILINE)
# `(1) cost, (2) time` and `1) cost 2) time`: numbers that count what the sentence lists.
_FIRST_OF_A_LIST = re.compile(r"(?<![\w(])\(?1\)\s")
_IN_A_LIST = re.compile(r"(?<![\w(])\(?\d\)(?=\s)")


@dataclass(frozen=True, slots=True)
class Known:
    """What an answer may say besides its results: figures and urls of `text`, and `urls` in their normal form."""

    text: str = ""
    urls: frozenset[str] = frozenset()

    @staticmethod
    def of(request: Request, plan: Plan, read: Iterable[str] = ()) -> Known:
        """The request, the goal and the run it follows up on; `read` is what tools returned, for its urls alone."""
        earlier = request.earlier
        words = [request.text, plan.goal, plan.synthesis.instruction]
        words += [earlier.request, earlier.answer] if earlier else []
        return Known("\n".join(filter(None, words)), frozenset(normal(url) for text in read for url in urls(text)))


def provenance_of(
    answer: str,
    outcomes: Mapping[str, Outcome],
    *,
    known: Known | None = None,
    merged: Iterable[Claim | Finding] = (),
) -> Provenance:
    """What a model's answer cites, and what is wrong with that.

    `merged` are the claims and findings after deduplication: a result all of whose items are part of ones that a cited
    task has too is used.
    """
    parts, merged = read(answer, Citations(outcomes)), tuple(merged)
    check = _Check(outcomes, known or Known(), merged, Evidence(outcomes))
    problems = [*_unknown(parts), *check.figures(parts), *check.urls(answer)]
    cited = {task for paragraph in parts for task in paragraph.tasks}
    cites_nothing = not cited and not any(code == "unknown_citation" for code, _ in problems)
    if cites_nothing and sum(outcome.ok for outcome in outcomes.values()) > 1:
        example = next(iter(outcomes))
        words = f"The answer cites no task: cite those each paragraph rests on, as [{example}]."
        problems = [("no_citation", words), *(problem for problem in problems if problem[0] != "uncited_figure")]
    return Provenance(
        citations={str(paragraph.number): paragraph.tasks for paragraph in parts if paragraph.tasks},
        problems=tuple(_worded(problems)),
        unused=_unused(outcomes, cited, merged),
    )


def provenance_of_listing(
    answer: str, outcomes: Mapping[str, Outcome], merged: Iterable[Claim | Finding] = ()
) -> Provenance:
    """What a text made by code cites. Results stand in it as they are: brackets in them are nobody's mistake."""
    citations = Citations(outcomes)
    found: dict[str, tuple[str, ...]] = {}
    for number, paragraph in enumerate(paragraphs(answer), 1):
        if tasks := tuple(dict.fromkeys(task for each in citations.find(paragraph) for task in each.tasks)):
            found[str(number)] = tasks
    cited = {task for tasks in found.values() for task in tasks}
    return Provenance(citations=found, unused=_unused(outcomes, cited, merged))


def corrections(provenance: Provenance) -> tuple[str, ...]:
    """What to tell a synthesizer that can still mend its answer: the problems, and what it left out."""
    unused = [
        ("unused_result", f"The answer does not use [{task}], which is done: use it, or say why it does not matter.")
        for task in provenance.unused
    ]
    return (*provenance.problems, *_worded(unused))


def keeps_open(provenance: Provenance) -> tuple[str, ...]:
    """The problems because of which a run is not complete."""
    return tuple(problem for problem in provenance.problems if problem.startswith(KEEPS_OPEN))


_Problem: TypeAlias = tuple[Code, str]


def _worded(problems: Iterable[tuple[str, str]]) -> Iterator[str]:
    told: Counter[str] = Counter()
    for code, sentence in problems:
        told[code] += 1
        if told[code] <= MOST_OF_A_KIND:
            yield f"{code}: {sentence}"
    for code, number in told.items():
        if number > MOST_OF_A_KIND:
            yield f"{code}: {number - MOST_OF_A_KIND} more of this kind."


def _unknown(parts: Iterable[Paragraph]) -> Iterator[_Problem]:
    """Each unknown task once, where it is cited first."""
    first: dict[str, int] = {}
    for passage in _passages(parts):
        for name in passage.unknown:
            first.setdefault(name, passage.paragraph)
    for name, number in first.items():
        yield "unknown_citation", f"Paragraph {number} cites [{name}], which is not a task of this run."


def _unused(
    outcomes: Mapping[str, Outcome], cited: Collection[str], merged: Iterable[Claim | Finding]
) -> tuple[str, ...]:
    in_use: dict[str, bool] = {}
    for item in merged:
        tasks = [source for source in item.sources if source in outcomes]
        used = any(task in cited for task in tasks)
        for task in tasks:
            in_use[task] = in_use.get(task, True) and used
    return tuple(id for id, outcome in outcomes.items() if outcome.ok and id not in cited and not in_use.get(id, False))


def _passages(parts: Iterable[Paragraph]) -> Iterator[Passage]:
    return (passage for paragraph in parts for passage in paragraph.passages)


@dataclass(frozen=True)
class _Check:
    outcomes: Mapping[str, Outcome]
    known: Known
    merged: Sequence[Claim | Finding]
    evidence: Evidence

    def figures(self, parts: Sequence[Paragraph]) -> Iterator[_Problem]:
        lengths = announced(parts)
        told: set[tuple[int, str, str | None]] = set()
        for passage in _passages(parts):
            cited = frozenset(passage.tasks)
            for figure in _stated(passage.text):
                if figure.unit is None and figure.value in lengths[passage.paragraph]:
                    continue
                if (place := (passage.paragraph, figure.value, figure.unit)) not in told:
                    problem = self._figure(figure, passage, cited)
                    if problem is not None:
                        told.add(place)
                        yield problem

    def _figure(self, figure: Figure, passage: Passage, cited: Collection[str]) -> _Problem | None:
        before = passage.text[max(figure.start - 24, 0) : figure.start]
        if self._given.has(figure, before) or self._counts_the_run(figure, passage.text):
            return None
        if self.evidence.has(figure, before, cited):
            return None
        somewhere = self.evidence.has(figure, before, self.outcomes)
        said = f"Paragraph {passage.paragraph} says {figure.text}"
        if not somewhere:
            where = f"[{', '.join(passage.tasks[:5])}] does not contain" if passage.tasks else "no result contains"
            advice = "leave it out, or say what the results say as they say it"
            return "unsupported_figure", f"{said}, which {where}: {advice}."
        if passage.tasks:
            names = f"[{', '.join(passage.tasks[:5])}]"
            return "unsupported_figure", f"{said}, which {names} does not contain: cite the task it is from."
        # A heading need not cite what the text under it does.
        return None if passage.kind == "heading" else ("uncited_figure", f"{said}: cite the task it is from.")

    def urls(self, answer: str) -> Iterator[_Problem]:
        for number, paragraph in enumerate(paragraphs(answer), 1):
            for url in dict.fromkeys(urls(paragraph)):
                if normal(url) not in self._urls:
                    yield (
                        "unknown_url",
                        f"Paragraph {number} gives {url[:200]}, which no result contains: leave it out.",
                    )

    @cached_property
    def _given(self) -> Held:
        return held_in_text(self.known.text)

    @cached_property
    def _urls(self) -> frozenset[str]:
        given = (normal(url) for url in urls(self.known.text))
        return self.evidence.urls.union(self.known.urls, given)

    @cached_property
    def _of_the_run(self) -> frozenset[str]:
        """How many tasks and findings there are, in all and of each kind, merged and not."""
        outcomes = self.outcomes.values()
        done = sum(outcome.ok for outcome in outcomes)
        counts = [len(outcomes), done, len(outcomes) - done]
        every = [finding for outcome in outcomes for finding in outcome.findings]
        for findings in (every, [item for item in self.merged if isinstance(item, Finding)]):
            counts += [len(findings), *Counter(finding.severity for finding in findings).values()]
        return frozenset(map(str, counts))

    def _counts_the_run(self, figure: Figure, text: str) -> bool:
        if figure.unit is not None or figure.value not in self._of_the_run:
            return False
        return _OF_THE_RUN.match(text, figure.end, figure.end + 60) is not None


def _stated(text: str) -> Iterator[Figure]:
    """The figures a text states, without small counts in words and without labels."""
    text = _IDIOMS.sub(_blank, text)
    if _FIRST_OF_A_LIST.search(text):
        text = _IN_A_LIST.sub(_blank, text)
    for figure in figures(text):
        labelled = figure.unit is None and _LABEL.search(text, max(figure.start - 16, 0), figure.start)
        if not labelled and not _only_counts(figure):
            yield figure


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _only_counts(figure: Figure) -> bool:
    """`two weeks` and `#1`, but not `two percent`."""
    value = figure.value
    if not value.isdigit() or len(value) > 3 or int(value) > SMALL_COUNT:
        return False
    in_words = not any(map(str.isdigit, figure.text))
    return figure.unit == "#" or (in_words and figure.unit != "%" and not is_money(figure.unit))
