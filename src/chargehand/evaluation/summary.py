"""Results -> one document: for each candidate and kind its figures with intervals, and candidates side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from chargehand.evaluation.case import KINDS, Kind
from chargehand.evaluation.result import Result
from chargehand.evaluation.statistics import FEWEST, Estimate, Figures, difference, estimate
from chargehand.trace.number_text import LEAST_SPEEDUP
from chargehand.values.base import JSON, Value

VERSION = 1
Better = Literal["higher", "lower", "neither"]
# Which direction is better for a figure. Cost and time alone are never a regression: cases set their limits.
_LOWER = frozenset({"gaps", "citation_problems", "unreadable", "extra_worker"})
_AMOUNTS = frozenset({"tokens", "usd", "seconds", "wall_seconds", "parallelism", "confidence", "speedup"})
_NEITHER = _AMOUNTS | {"contradictions", "by_rule"}
# All other figures are shares between 0 and 1.
_NO_SHARE = _AMOUNTS | {"gaps", "contradictions", "citation_problems"}
# The name of "passed" for kinds that use another one.
_PASSED: dict[Kind, str] = {"routing": "accuracy"}
# Kinds whose score is already one of their figures, under another name.
_NAMED: tuple[Kind, ...] = ("routing", "plan")


def better(kind: Kind, metric: str) -> Better:
    if metric == "gaps" and kind == "synthesis":
        return "neither"  # gaps come from the fixed outcomes
    return "lower" if metric in _LOWER else "neither" if metric in _NEITHER else "higher"


class Metric(Value):
    estimate: Estimate
    better: Better


class Confusion(Value):
    """Rows are what was expected, columns what was chosen, both in the order of `workers`."""

    workers: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


class KindSummary(Value):
    kind: Kind
    cases: int
    # Every repeat counts as a result.
    results: int
    passed: int
    errors: int
    metrics: dict[str, Metric]
    confusion: Confusion | None = None

    @property
    def to_show(self) -> dict[str, Metric]:
        """The metrics for people: a speed-up only where there was one."""
        faster = self.metrics.get("speedup")
        hidden = {"speedup"} if faster is not None and faster.estimate.mean < LEAST_SPEEDUP else set[str]()
        return {name: metric for name, metric in self.metrics.items() if name not in hidden}


class CandidateSummary(Value):
    name: str
    team: str
    model: str | None
    # One plain call instead of a team, as the minimum that a team has to beat. Never a regression.
    is_plain: bool = False
    kinds: tuple[KindSummary, ...]


class Comparison(Value):
    """How much higher the second candidate is than the first, case by case."""

    kind: Kind
    metric: str
    first: str
    second: str
    difference: Estimate
    # There are enough cases, and zero is outside the interval.
    clear: bool


class CandidateVerdict(NamedTuple):
    passed: int
    results: int
    # Results of cases that could not be tried; they count as not passed.
    errors: int

    def __str__(self) -> str:
        failed = self.results - self.passed - self.errors
        parts = [f"{self.passed:,} of {self.results:,} passed"]
        parts += [f"{failed:,} failed"] if failed else []
        parts += [f"{self.errors:,} could not be tried"] if self.errors else []
        return ", ".join(parts)


def is_pass(result: Result) -> bool:
    return result.passed and result.error is None


class SuiteInfo(Value):
    name: str
    hash: str
    cases: int


class Evaluation(Value):
    version: Literal[1] = VERSION
    suite: SuiteInfo
    repeat: int
    candidates: tuple[CandidateSummary, ...]
    comparisons: tuple[Comparison, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def errors(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.error is not None)

    def verdict_of(self, candidate: str) -> CandidateVerdict:
        """How many results of a candidate passed: the same in the table, on the page and for --fail-under."""
        results = [result for result in self.results if result.candidate == candidate]
        errors = sum(result.error is not None for result in results)
        return CandidateVerdict(sum(map(is_pass, results)), len(results), errors)

    def to_json(self) -> dict[str, JSON]:
        return self.model_dump(mode="json", exclude={"results": {"__all__": {"key"}}})


def summarise(
    suite: SuiteInfo,
    repeat: int,
    candidates: Sequence[tuple[str, str, str | None]],
    results: Sequence[Result],
    plain: Collection[str] = (),
) -> Evaluation:
    """`candidates` are names, teams and models. The others are compared with the first.

    `plain` holds the names of candidates that are one plain call.
    """
    by_name = {name: [result for result in results if result.candidate == name] for name, _, _ in candidates}
    summaries = tuple(
        CandidateSummary(name=name, team=team, model=model, is_plain=name in plain, kinds=tuple(_kinds(by_name[name])))
        for name, team, model in candidates
    )
    first, *others = [name for name, _, _ in candidates]
    comparisons = tuple(each for other in others for each in _compare(first, other, by_name))
    return Evaluation(suite=suite, repeat=repeat, candidates=summaries, comparisons=comparisons, results=tuple(results))


def _kinds(results: Sequence[Result]) -> Iterable[KindSummary]:
    for kind in KINDS:
        if of_kind := [result for result in results if result.kind == kind]:
            yield _kind(kind, of_kind)


def _kind(kind: Kind, results: Sequence[Result]) -> KindSummary:
    tried = [result for result in results if result.error is None]
    metrics: dict[str, Metric] = {}
    for name in metric_names(kind, tried):
        found = estimate(figures(kind, name, tried), share=name not in _NO_SHARE)
        if found is not None:
            metrics[name] = Metric(estimate=found, better=better(kind, name))
    return KindSummary(
        kind=kind,
        cases=len({result.case for result in results}),
        results=len(results),
        passed=sum(result.passed for result in results),
        errors=len(results) - len(tried),
        metrics=metrics,
        confusion=_confusion(tried) if kind == "routing" else None,
    )


def metric_names(kind: Kind, results: Sequence[Result]) -> list[str]:
    own = dict.fromkeys(name for result in results for name in result.metrics)
    money = ["usd"] if results and all(result.usage.usd is not None for result in results) else []
    return [_PASSED.get(kind, "passed"), *([] if kind in _NAMED else ["score"]), *own, "tokens", *money, "seconds"]


def figures(kind: Kind, metric: str, results: Sequence[Result]) -> Figures:
    """Case -> the metric in each of its repeats, errors left out."""
    read = _reader(kind, metric)
    found: dict[str, list[float]] = {}
    for result in results:
        value = None if result.error is not None else read(result)
        if value is not None:
            found.setdefault(result.case, []).append(value)
    return found


def _reader(kind: Kind, metric: str) -> Callable[[Result], float | None]:
    if metric == _PASSED.get(kind, "passed"):
        return lambda result: float(result.passed)
    match metric:
        case "score":
            return lambda result: result.score
        case "tokens":
            return lambda result: float(result.usage.tokens)
        case "usd":
            return lambda result: result.usage.usd
        case "seconds":
            return lambda result: result.seconds
        case _:
            return lambda result: result.metrics.get(metric)


def _compare(first: str, second: str, results: dict[str, list[Result]]) -> Iterable[Comparison]:
    for kind in KINDS:
        ours = [result for result in results[first] if result.kind == kind]
        theirs = [result for result in results[second] if result.kind == kind]
        for name in metric_names(kind, ours):
            found = difference(figures(kind, name, ours), figures(kind, name, theirs))
            if found is not None:
                clear = found.n >= FEWEST and (found.low > 0 or found.high < 0)
                yield Comparison(kind=kind, metric=name, first=first, second=second, difference=found, clear=clear)


def _confusion(results: Sequence[Result]) -> Confusion | None:
    pairs = Counter((result.expected or "", result.chosen or "") for result in results)
    workers = tuple(sorted({name for pair in pairs for name in pair}))
    if not workers:
        return None
    return Confusion(
        workers=workers,
        counts=tuple(tuple(pairs[row, column] for column in workers) for row in workers),
    )
