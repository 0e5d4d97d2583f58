"""An evaluation and a saved one -> regressions: figures that clearly got worse, and cases that no longer pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from chargehand.evaluation.case import KINDS, Kind
from chargehand.evaluation.result import Result
from chargehand.evaluation.statistics import FEWEST, difference
from chargehand.evaluation.summary import Evaluation, better, figures, metric_names
from chargehand.trace.number_text import several, short
from chargehand.values.base import Value

# Scores of a scorer for the same answer vary by a few points.
SCORE_TOLERANCE = 0.05
_ROUNDING = 1e-9


class Regression(Value):
    candidate: str
    kind: Kind
    # Exactly one is set: a figure of all cases, or one case.
    metric: str | None = None
    case: str | None = None
    message: str


class BaselineVerdict(Value):
    """What became worse. `compared` counts the shared cases; a candidate without a counterpart is in `unknown`."""

    regressions: tuple[Regression, ...] = ()
    # Lower scores over too few cases to rule out the scorer's own variation: not regressions.
    unclear: tuple[Regression, ...] = ()
    compared: int = 0
    unknown: tuple[str, ...] = ()


def against(now: Evaluation, baseline: Evaluation) -> BaselineVerdict:
    """Only shared cases count, so that a suite may grow. If a baseline has one candidate, all are compared with it."""
    names = [candidate.name for candidate in baseline.candidates if not candidate.is_plain]
    found: list[tuple[Regression, bool]] = []
    unknown: list[str] = []
    compared: set[tuple[str, str]] = set()
    for candidate in now.candidates:
        if candidate.is_plain:
            continue
        name = candidate.name if candidate.name in names else names[0] if len(names) == 1 else None
        if name is None:
            unknown.append(candidate.name)
            continue
        ours = [result for result in now.results if result.candidate == candidate.name and result.error is None]
        theirs = [result for result in baseline.results if result.candidate == name and result.error is None]
        shared = {result.case for result in ours} & {result.case for result in theirs}
        compared |= {(candidate.name, case) for case in shared}
        ours = [result for result in ours if result.case in shared]
        theirs = [result for result in theirs if result.case in shared]
        found += _find_worse(candidate.name, ours, theirs)
        found += [(each, True) for each in _no_longer(candidate.name, ours, theirs)]
    return BaselineVerdict(
        regressions=tuple(each for each, sure in found if sure),
        unclear=tuple(each for each, sure in found if not sure),
        compared=len(compared),
        unknown=tuple(unknown),
    )


def _find_worse(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[tuple[Regression, bool]]:
    """Figures that got worse, and whether that is certain."""
    for kind in KINDS:
        now = [result for result in ours if result.kind == kind]
        before = [result for result in theirs if result.kind == kind]
        for metric in metric_names(kind, before):
            scored = metric in ("passed", "score") and any(result.is_scored for result in (*now, *before))
            if (worse := _worse(kind, metric, now, before, scored=scored)) is not None:
                message, cases = worse
                regression = Regression(candidate=name, kind=kind, metric=metric, message=message)
                yield regression, not scored or cases >= FEWEST


def _worse(
    kind: Kind, metric: str, now: Sequence[Result], before: Sequence[Result], *, scored: bool
) -> tuple[str, int] | None:
    """A message that a figure got worse, and the number of cases; None if it may be chance."""
    ours, theirs = figures(kind, metric, now), figures(kind, metric, before)
    change = difference(theirs, ours)
    if change is None:
        return None
    match better(kind, metric):
        case "higher":
            loss, least = -change.mean, -change.high
        case "lower":
            loss, least = change.mean, change.low
        case "neither":
            return None
    if least <= _ROUNDING or (scored and loss <= SCORE_TOLERANCE):
        return None
    was, is_now = (fmean(fmean(each[case]) for case in ours if case in theirs) for each in (theirs, ours))
    interval = f" (95 %: {change.low:.3g} to {change.high:.3g})" if change.low < change.high else ""
    by = f"{change.mean:.3g}{interval} over {several(change.n, 'case')}"
    return f"{kind} {metric} was {was:.3g} and is {is_now:.3g}, a change of {by}.", change.n


def _no_longer(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[Regression]:
    """Cases that passed every check by code and now fail one of them. Verdicts of a scorer do not count."""
    passed: dict[str, bool] = {}
    for result in theirs:
        passed[result.case] = passed.get(result.case, True) and not result.failed_by_code
    reported: set[str] = set()
    for result in ours:
        failed = result.failed_by_code
        if passed[result.case] and failed and result.case not in reported:
            reported.add(result.case)
            why = "; ".join(f"{check.name}: {check.said}" if check.said else check.name for check in failed)
            where = f"{result.file}:{result.line}"
            message = f"{result.case} ({where}) passed and now fails: {short(why, 300)}"
            yield Regression(candidate=name, kind=result.kind, case=result.case, message=message)
