"""An evaluation and a saved one -> regressions: figures that got worse beyond doubt, and cases that no longer pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chargehand.evaluation.case import KINDS, Kind
from chargehand.evaluation.result import Result
from chargehand.evaluation.statistics import estimate
from chargehand.evaluation.summary import Evaluation, better, figures, metric_names
from chargehand.trace.figures import short
from chargehand.value import Value


class Regression(Value):
    candidate: str
    kind: Kind
    # One of both: a figure of all cases, or a case.
    metric: str | None = None
    case: str | None = None
    message: str


class Verdict(Value):
    """What became worse. `compared` counts cases both have; a candidate without a counterpart is in `unknown`."""

    regressions: tuple[Regression, ...] = ()
    compared: int = 0
    unknown: tuple[str, ...] = ()


def against(now: Evaluation, baseline: Evaluation) -> Verdict:
    """Only cases both have count, so that a suite may grow. A sole candidate of the baseline stands for every other."""
    names = [candidate.name for candidate in baseline.candidates]
    found: list[Regression] = []
    unknown: list[str] = []
    compared: set[tuple[str, str]] = set()
    for candidate in now.candidates:
        name = candidate.name if candidate.name in names else names[0] if len(names) == 1 else None
        if name is None:
            unknown.append(candidate.name)
            continue
        ours = [result for result in now.results if result.candidate == candidate.name and result.error is None]
        theirs = [result for result in baseline.results if result.candidate == name and result.error is None]
        shared = {result.case for result in ours} & {result.case for result in theirs}
        compared |= {(candidate.name, case) for case in shared}
        found += _regressions(
            candidate.name,
            [result for result in ours if result.case in shared],
            [result for result in theirs if result.case in shared],
        )
    return Verdict(regressions=tuple(found), compared=len(compared), unknown=tuple(unknown))


def _regressions(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[Regression]:
    for kind in KINDS:
        now = [result for result in ours if result.kind == kind]
        before = [result for result in theirs if result.kind == kind]
        for metric in metric_names(kind, before):
            message = _worse(kind, metric, now, before)
            if message is not None:
                yield Regression(candidate=name, kind=kind, metric=metric, message=message)
    yield from _no_longer(name, ours, theirs)


def _worse(kind: Kind, metric: str, now: Sequence[Result], before: Sequence[Result]) -> str | None:
    ours = estimate(figures(kind, metric, now), f"{kind}/{metric}")
    theirs = estimate(figures(kind, metric, before), f"{kind}/{metric}")
    if ours is None or theirs is None:
        return None
    match better(kind, metric):
        case "higher":
            worse = ours.high < theirs.mean - 1e-9
        case "lower":
            worse = ours.low > theirs.mean + 1e-9
        case "neither":
            worse = False
    if not worse:
        return None
    interval = f"{ours.mean:.3g} (95 %: {ours.low:.3g} to {ours.high:.3g})"
    return f"{kind} {metric} was {theirs.mean:.3g} and is {interval} over {ours.n} cases."


def _no_longer(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[Regression]:
    """Cases that always passed by code's own checks, and now fail one of them."""
    passed: dict[str, bool] = {}
    for result in theirs:
        passed[result.case] = passed.get(result.case, True) and result.passed and result.by_code
    told: set[str] = set()
    for result in ours:
        failed = [check for check in result.checks if check.by == "code" and not check.passed]
        if passed[result.case] and failed and result.case not in told:
            told.add(result.case)
            why = "; ".join(f"{check.name}: {check.said}" if check.said else check.name for check in failed)
            where = f"{result.file}:{result.line}"
            message = f"{result.case} ({where}) passed and now fails: {short(why, 300)}"
            yield Regression(candidate=name, kind=result.kind, case=result.case, message=message)
