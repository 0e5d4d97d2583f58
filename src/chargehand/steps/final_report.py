"""A plan, its outcomes and the synthesis -> the report: status, timing, gaps, disclaimers; or why nothing was run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from chargehand.engine.port import Engine
from chargehand.events import ContradictionFound, GapFound
from chargehand.planner.planning_result import Unplanned
from chargehand.planner.settle_plan import Rejected
from chargehand.synthesizer import Synthesis
from chargehand.synthesizer.synthesis import keeps_open
from chargehand.team import Team
from chargehand.values.outcome import IMPACT_OF_TEAM, Fault, Outcome, Usage
from chargehand.values.plan import Plan
from chargehand.values.report import Gap, Report, Timing, evidence_notes
from chargehand.values.request import Request
from chargehand.values.status_words import RunStatus

# Errors of a worker or provider that does not answer at all. A wrong key is different: the caller has to correct it.
UNREACHABLE = frozenset({"rate_limited", "overloaded", "connection", "timeout"})
# From this factor on, calls of a run were made at the same time.
PARALLEL = 1.1


class RunResults(NamedTuple):
    """The plan with what was added to it, an outcome for each task, and the gaps that were filled after all."""

    plan: Plan
    outcomes: Mapping[str, Outcome]
    filled: frozenset[str]
    planning: Usage


def make_report(request: Request, team: Team, done: RunResults, synthesis: Synthesis, engine: Engine) -> Report:
    """The report of a run whose tasks have ended; its gaps and contradictions are put on the record."""
    synthesis = _with_handed_up(synthesis, request, done.outcomes.values())
    for gap in synthesis.gaps:
        engine.emit(GapFound(gap=gap.to_json()), task=gap.task)
    for contradiction in synthesis.contradictions:
        engine.emit(ContradictionFound(contradiction=contradiction.to_json()))
    return _answer_when_nothing(_report(request, team, done, synthesis, engine), team)


def report_nothing_run(request: Request, team: Team, engine: Engine, why: Unplanned | Rejected) -> Report:
    """The report of a run without a plan that may run."""
    return _answer_when_nothing(_nothing_run(request, engine, why), team)


def _report(request: Request, team: Team, done: RunResults, synthesis: Synthesis, engine: Engine) -> Report:
    status = _decide_status(done, synthesis)
    usage = Usage.total([done.planning, *(outcome.usage for outcome in done.outcomes.values()), synthesis.usage])
    timing = Timing.compare(engine.clock.now(), usage, done.outcomes.values(), done.plan)
    # A chain of teams is not a chain if tasks ran in parallel inside them.
    advice = team.advice(done.plan, parallel_inside=timing.speedup >= PARALLEL)
    return Report(
        run=engine.run,
        request=request.text,
        status=status,
        answer=_add_disclaimers(synthesis.answer, team, done.outcomes.values()),
        findings=synthesis.findings,
        contradictions=synthesis.contradictions,
        gaps=synthesis.gaps,
        confidence=synthesis.confidence,
        provenance=synthesis.provenance,
        outcomes=tuple(done.outcomes.values()),
        usage=usage,
        timing=timing,
        strategy=done.plan.strategy,
        plan=done.plan,
        notes=(*request.notes, *advice, *synthesis.notes, *evidence_notes(done.outcomes.values())),
        error=_common_fault(done.outcomes) if status == "failed" else None,
        data=synthesis.data,
    )


def _decide_status(done: RunResults, synthesis: Synthesis) -> RunStatus:
    """complete only with evidence for everything: every task done or replaced, no gap, no wrong citation, and an
    answer that cites its sources and accounts for every result.
    """
    if not any(outcome.ok for outcome in done.outcomes.values()):
        return "failed"
    whole = all(outcome.ok or id in done.filled for id, outcome in done.outcomes.items())
    rests = synthesis.provenance.accounts_for_all and not keeps_open(synthesis.provenance)
    return "complete" if whole and not synthesis.gaps and rests else "partial"


def _answer_when_nothing(report: Report, team: Team) -> Report:
    """The report with the team's own words as its answer, when it failed because nobody could be reached."""
    undone = [outcome for outcome in report.outcomes if outcome.status != "skipped"]
    faults = [report.error] if report.plan is None else [outcome.error for outcome in undone]
    unreached = all(fault is not None and fault.kind in UNREACHABLE for fault in faults)
    if not team.when_nothing or report.status != "failed" or not faults or not unreached:
        return report
    if any(outcome.partial for outcome in report.outcomes):
        return report
    return report.model_copy(update={"answer": _add_disclaimers(team.when_nothing, team, ()), "when_nothing": True})


def _add_disclaimers(answer: str, team: Team, outcomes: Iterable[Outcome]) -> str:
    """The answer, then each disclaimer once: those of teams that wrote a part of it, and its own."""
    if not team.disclaimers:
        return answer
    given = "\n".join(json.dumps([outcome.summary, outcome.output], ensure_ascii=False) for outcome in outcomes)
    lines = [line for line in team.disclaimers if line == team.disclaimer or _quote(line) in given]
    ends = [f"*{line}*" for line in lines]
    paragraphs = answer.split("\n\n")
    while paragraphs and paragraphs[-1] in ends:
        paragraphs.pop()
    return "\n\n".join([*paragraphs, *ends])


def _quote(line: str) -> str:
    return json.dumps(line, ensure_ascii=False)[1:-1]


def _with_handed_up(synthesis: Synthesis, request: Request, outcomes: Iterable[Outcome]) -> Synthesis:
    """The synthesis with what was missing from the start, and the gaps and contradictions of teams, whatever else the
    answer says of their tasks.
    """
    gaps, contradictions = [*request.gaps, *synthesis.gaps], list(synthesis.contradictions)
    for outcome in outcomes:
        if outcome.ok and outcome.partial:
            gaps += outcome.gaps or [Gap(task=outcome.task, reason=outcome.summary, impact=IMPACT_OF_TEAM)]
        contradictions += outcome.contradictions
    # A model that read them may have stated them too.
    stated = {"gaps": tuple(dict.fromkeys(gaps)), "contradictions": tuple(dict.fromkeys(contradictions))}
    return replace(synthesis, **stated)


def _common_fault(outcomes: Mapping[str, Outcome]) -> Fault | None:
    """The kind of error that all tasks failed with, if there is only one."""
    faults = [outcome.error for outcome in outcomes.values() if outcome.error is not None]
    return faults[0] if faults and len({fault.kind for fault in faults}) == 1 else None


def _nothing_run(request: Request, engine: Engine, why: Unplanned | Rejected) -> Report:
    if isinstance(why, Unplanned):
        fault = why.fault
    else:
        said = f"The plan was rejected{f': {why.reason}' if why.reason else ' by a person.'}"
        fault = Fault(kind="cancelled", message=said)
    report = Report(
        run=engine.run,
        request=request.text,
        status="failed",
        answer=fault.message,
        gaps=(Gap(reason=fault.message, impact="Nothing was run."),),
        usage=why.usage,
        timing=Timing.compare(engine.clock.now(), why.usage, (), None),
        error=fault,
    )
    if isinstance(why, Unplanned):
        return report
    return report.model_copy(update={"strategy": why.plan.strategy, "plan": why.plan})
