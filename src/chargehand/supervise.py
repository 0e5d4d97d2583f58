"""run(): the whole flow on one screen. Request -> plan -> outcomes -> report; only this module knows the order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from chargehand.brains import Brains
from chargehand.dispatcher import Help, dispatch
from chargehand.engine import Engine
from chargehand.outcome import Fault, Outcome, Usage
from chargehand.people import edited_plan, question_about, question_about_plan, verdict
from chargehand.plan import Plan, parse
from chargehand.planner import Planned, Unplanned, make_plan, split_task
from chargehand.preview import preview
from chargehand.refiner import refine
from chargehand.report import Gap, Report, RunStatus, Timing
from chargehand.request import Request
from chargehand.scorer import score
from chargehand.synthesizer import Synthesis, Validate, synthesize
from chargehand.team import Team
from chargehand.trace import to_text
from chargehand.workers import Roster

# Workers stop this much before the deadline, so that the answer can still be written.
SYNTHESIS_SHARE = 0.2
LONGEST_SYNTHESIS_S = 30.0
# The synthesizer's own words and what frames each result, in tokens.
SYNTHESIS_FRAME = 1_500


async def run(
    request: Request,
    team: Team,
    roster: Roster,
    engine: Engine,
    brains: Brains,
    plan: Plan | None = None,
    validate: Validate | None = None,
) -> Report:
    """A plan given here is run as it is: no planner call at all. `validate` judges the answer as data."""
    agreed = await _agreed(request, team, roster, engine, brains, plan)
    if isinstance(agreed, Report):
        return agreed
    plan = agreed.plan
    engine.hold(_cost_of_synthesis(plan, brains))
    outcomes = await dispatch(
        plan,
        roster,
        engine,
        stop_at=_workers_stop_at(request),
        policy=team.recovery,
        fallbacks=team.fallbacks(),
        help=_help(request, team, engine, brains, planned_here=not agreed.given),
    )
    engine.hold(0)
    synthesis = await synthesize(
        request, plan, outcomes, engine, brains.get("synthesizer"), _left(request, engine), validate
    )
    for gap in synthesis.gaps:
        engine.emit("gap_found", task=gap.task, gap=gap.to_json())
    for contradiction in synthesis.contradictions:
        engine.emit("contradiction_found", contradiction=contradiction.to_json())
    return _report(request, plan, outcomes, synthesis, agreed.usage, engine)


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The plan that runs, whether the user gave it, and what making it used."""

    plan: Plan
    given: bool
    usage: Usage


async def _agreed(
    request: Request, team: Team, roster: Roster, engine: Engine, brains: Brains, plan: Plan | None
) -> _Agreed | Report:
    """The plan as the record has it, else as given or planned and, where that is wanted, approved by a person."""
    if (recorded := engine.approved()) is not None:
        usage = Usage.model_validate(recorded.get("usage") or {})
        return _Agreed(parse(recorded["plan"]), bool(recorded.get("given")), usage)
    given, planning = plan is not None, Usage()
    if plan is None:
        planned = await _plan_in_time(request, team, engine, brains)
        if isinstance(planned, Unplanned):
            return _no_plan(request, engine, planned)
        plan, planning = planned.plan, planned.usage
    else:
        engine.emit("plan_drafted", plan=plan.to_json(), round=0, problems=[], source="given")
    if request.approve:
        approved = await _approved(plan, request, team, roster, engine, brains)
        if isinstance(approved, str):
            return _rejected(request, engine, plan, approved, planning)
        plan = approved
    engine.emit(
        "plan_approved",
        plan=plan.to_json(),
        strategy=plan.strategy,
        notes=list(plan.advice()),
        given=given,
        usage=planning.to_json(),
    )
    return _Agreed(plan, given, planning)


async def _plan_in_time(request: Request, team: Team, engine: Engine, brains: Brains) -> Planned | Unplanned:
    used: list[Usage] = []
    try:
        async with asyncio.timeout(_left(request, engine)):
            return await make_plan(request, team, engine, brains["planner"], used)
    except TimeoutError:
        message = f"The deadline of {request.deadline_s:g} s came before there was a plan."
        return Unplanned(Fault(kind="deadline", message=message), (), Usage.total(used))


async def _approved(
    plan: Plan, request: Request, team: Team, roster: Roster, engine: Engine, brains: Brains
) -> Plan | str:
    """The plan a person lets run, perhaps edited, or why they let none."""
    text = f"{to_text(plan).rstrip()}\n\n{preview(plan, team, roster, brains['synthesizer'].model, request)}"
    answer = await engine.ask("@plan/approve", question_about_plan(text))
    said = verdict(answer)
    if said is None:
        return edited_plan(answer, plan)
    return plan if said.approved else said.reason


def _help(request: Request, team: Team, engine: Engine, brains: Brains, *, planned_here: bool) -> Help:
    """What the dispatcher may fall back on when a task fails. A plan that was given is never planned on: no split."""
    refiner, scorer = brains.get("refiner"), brains.get("scorer")
    planner = brains.get("planner") if planned_here else None
    return Help(
        refine=partial(refine, engine=engine, brain=refiner) if refiner else None,
        split=partial(split_task, request=request, team=team, engine=engine, brain=planner) if planner else None,
        ask=question_about if request.ask else None,
        score=partial(score, engine=engine, brain=scorer) if scorer and team.recovery.score else None,
    )


def _cost_of_synthesis(plan: Plan, brains: Brains) -> int:
    """What writing the answer will cost besides reading the results; a single task needs no synthesis."""
    brain = brains.get("synthesizer")
    return 0 if brain is None or len(plan.tasks) == 1 else brain.output_cap + SYNTHESIS_FRAME


def _workers_stop_at(request: Request) -> float | None:
    if request.deadline_s is None:
        return None
    return request.deadline_s - min(SYNTHESIS_SHARE * request.deadline_s, LONGEST_SYNTHESIS_S)


def _left(request: Request, engine: Engine) -> float | None:
    return None if request.deadline_s is None else max(request.deadline_s - engine.now(), 0.0)


def _report(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    synthesis: Synthesis,
    planning: Usage,
    engine: Engine,
) -> Report:
    status = _status(outcomes, synthesis)
    usage = Usage.total([planning, *(outcome.usage for outcome in outcomes.values()), synthesis.usage])
    return Report(
        run=engine.run,
        request=request.text,
        status=status,
        answer=synthesis.answer,
        findings=tuple(finding for outcome in outcomes.values() for finding in outcome.findings),
        contradictions=synthesis.contradictions,
        gaps=synthesis.gaps,
        confidence=synthesis.confidence,
        provenance=synthesis.provenance,
        outcomes=tuple(outcomes.values()),
        usage=usage,
        timing=_timing(plan, outcomes, synthesis, planning, engine.now()),
        strategy=plan.strategy,
        plan=plan,
        notes=(*plan.advice(), *synthesis.notes),
        error=_common_fault(outcomes) if status == "failed" else None,
        data=synthesis.data,
    )


def _status(outcomes: Mapping[str, Outcome], synthesis: Synthesis) -> RunStatus:
    """complete only with evidence for all of it: every task done, no gap, no unknown citation."""
    if not any(outcome.ok for outcome in outcomes.values()):
        return "failed"
    whole = all(outcome.ok for outcome in outcomes.values())
    return "complete" if whole and not synthesis.gaps and not synthesis.provenance.problems else "partial"


def _common_fault(outcomes: Mapping[str, Outcome]) -> Fault | None:
    """The one kind of error everything failed with, if it is one."""
    faults = [outcome.error for outcome in outcomes.values() if outcome.error is not None]
    return faults[0] if faults and len({fault.kind for fault in faults}) == 1 else None


def _timing(plan: Plan, outcomes: Mapping[str, Outcome], synthesis: Synthesis, planning: Usage, wall: float) -> Timing:
    """Measured wall time against the same calls one after the other, and against the longest chain of them."""
    seconds = {id: outcome.usage.seconds for id, outcome in outcomes.items()}
    around = planning.seconds + synthesis.usage.seconds
    sequential = around + sum(seconds.values())
    return Timing(
        wall_s=wall,
        sequential_s=sequential,
        critical_path_s=around + plan.critical_path(seconds)[0],
        speedup=sequential / wall if wall > 0 else 1.0,
        waiting_s=planning.waiting_s + synthesis.usage.waiting_s + sum(o.usage.waiting_s for o in outcomes.values()),
    )


def _rejected(request: Request, engine: Engine, plan: Plan, reason: str, planning: Usage) -> Report:
    why = f"The plan was rejected{f': {reason}' if reason else ' by a person.'}"
    return Report(
        run=engine.run,
        request=request.text,
        status="failed",
        answer=why,
        gaps=(Gap(reason=why, impact="Nothing was run."),),
        usage=planning,
        timing=Timing(wall_s=engine.now(), sequential_s=planning.seconds, critical_path_s=planning.seconds),
        strategy=plan.strategy,
        plan=plan,
    )


def _no_plan(request: Request, engine: Engine, unplanned: Unplanned) -> Report:
    why = unplanned.fault.message
    return Report(
        run=engine.run,
        request=request.text,
        status="failed",
        answer=why,
        gaps=(Gap(reason=why, impact="Nothing was run."),),
        usage=unplanned.usage,
        timing=Timing(wall_s=engine.now()),
        error=unplanned.fault,
    )
