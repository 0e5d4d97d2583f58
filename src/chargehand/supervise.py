"""run(): the whole flow on one screen. Request -> plan -> outcomes -> report; only this module knows the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from chargehand.brains import Brain, Brains
from chargehand.deadline import in_time
from chargehand.dispatcher import Help, dispatch
from chargehand.engine import Engine
from chargehand.extension import extend_plan, worth_extending
from chargehand.outcome import Fault, Outcome, Usage
from chargehand.people import edited_plan, question_about, question_about_plan, verdict
from chargehand.plan import Plan, Task, parse
from chargehand.planner import Planned, Unplanned, make_plan, split_task
from chargehand.preview import preview
from chargehand.refiner import refine
from chargehand.report import Gap, Report, RunStatus, Timing
from chargehand.request import Request
from chargehand.scorer import score
from chargehand.synthesizer import OnDraft, Synthesis, Validate, synthesize
from chargehand.synthesizer.citations import keeps_open
from chargehand.synthesizer.select import choose
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
    on_draft: OnDraft | None = None,
) -> Report:
    """A plan given here is run as it is: no planner call at all.

    `validate` judges the answer as data; `on_draft` hears it grow.
    """
    agreed = await _agreed(request, team, roster, engine, brains, plan)
    if isinstance(agreed, Report):
        return agreed
    engine.hold(_cost_of_synthesis(agreed.plan, brains))
    done = await _done(agreed, request, team, roster, engine, brains)
    synthesis = await synthesize(
        request,
        done.plan,
        done.outcomes,
        engine,
        brains.get("synthesizer"),
        _left(request, engine),
        validate,
        filled=done.filled,
        judge=brains.get("judge"),
        critic=brains.get("critic") if request.critic or team.scrutiny.critic else None,
        rounds=team.scrutiny.rounds,
        rater=brains.get("scorer") if team.scrutiny.rate_findings else None,
        examiner=brains.get("examiner"),
        read=engine.returned(),
        on_draft=on_draft,
    )
    for gap in synthesis.gaps:
        engine.emit("gap_found", task=gap.task, gap=gap.to_json())
    for contradiction in synthesis.contradictions:
        engine.emit("contradiction_found", contradiction=contradiction.to_json())
    return _report(request, team, done, synthesis, engine)


@dataclass(frozen=True, slots=True)
class _Done:
    """The plan with what was added to it, an outcome for each task, and the gaps that were filled after all."""

    plan: Plan
    outcomes: Mapping[str, Outcome]
    filled: frozenset[str]
    planning: Usage


async def _done(agreed: _Agreed, request: Request, team: Team, roster: Roster, engine: Engine, brains: Brains) -> _Done:
    """Everything dispatched, then, in a plan made here, what failed planned for anew, a bounded number of times."""
    run_tasks = partial(
        dispatch,
        roster=roster,
        engine=engine,
        stop_at=_workers_stop_at(request),
        policy=team.recovery,
        fallbacks=team.fallbacks(),
        help=_help(request, team, engine, brains, planned_here=not agreed.given),
    )
    plan, used = agreed.plan, [agreed.usage]
    filled: frozenset[str] = frozenset()
    outcomes = await run_tasks(plan)
    planner = None if agreed.given else brains.get("planner")
    for number in range(1, team.scrutiny.extensions + 1):
        worth = worth_extending(outcomes, filled)
        if planner is None or not await _may_extend(number, worth, request, engine):
            break
        more = partial(extend_plan, plan, outcomes, filled, number, used)
        extend = partial(more, request=request, team=team, engine=engine, brain=planner)
        extension = await in_time(engine, f"@extend/{number}", _left(request, engine), extend)
        if extension is None:
            break
        added = plan.model_copy(update={"tasks": extension.tasks})
        outcomes = {**outcomes, **await run_tasks(added, earlier=outcomes)}
        plan = plan.model_copy(update={"tasks": (*plan.tasks, *extension.tasks)})
        filled |= extension.filled(outcomes)
    return _Done(plan, outcomes, filled, Usage.total(used))


async def _may_extend(number: int, worth: bool, request: Request, engine: Engine) -> bool:
    """Whether something failed that more tasks could mend, and there are budget and time for them. Decided once."""
    key, stop_at = f"@extend/{number}/whether", _workers_stop_at(request)
    if engine.decided(key) is None and not worth:
        return False
    in_hand = engine.affordable() and (stop_at is None or engine.now() < stop_at)
    why = "tasks failed that another way might do" if in_hand else "no budget or time is left for more tasks"
    return bool(await engine.decide(key, "extend", lambda: in_hand, why))


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
            return _nothing_run(request, engine, planned.fault.message, planned.usage, planned.fault)
        plan, planning = planned.plan, planned.usage
    else:
        engine.emit("plan_drafted", plan=plan.to_json(), round=0, problems=[], source="given")
    if request.approve:
        approved = await _approved(plan, request, team, roster, engine, brains)
        if isinstance(approved, str):
            why = f"The plan was rejected{f': {approved}' if approved else ' by a person.'}"
            report = _nothing_run(request, engine, why, planning)
            return report.model_copy(update={"strategy": plan.strategy, "plan": plan})
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
    planned = await in_time(
        engine, "@plan", _left(request, engine), lambda: make_plan(request, team, engine, brains["planner"], used)
    )
    if planned is not None:
        return planned
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
        select=partial(_best_of, engine=engine, brain=brains.get("judge")),
    )


async def _best_of(
    task: Task, results: Sequence[Outcome], number: int, used: list[Usage], *, engine: Engine, brain: Brain | None
) -> int:
    key, seed = f"{task.id}/{number}/select", f"{engine.run}/{task.id}/{number}"
    choice = await choose(
        task.instruction, results, engine, brain, key, used, criterion=task.success_criterion, seed=seed
    )
    return choice.index


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


def _report(request: Request, team: Team, done: _Done, synthesis: Synthesis, engine: Engine) -> Report:
    status = _status(done, synthesis)
    usage = Usage.total([done.planning, *(outcome.usage for outcome in done.outcomes.values()), synthesis.usage])
    return Report(
        run=engine.run,
        request=request.text,
        status=status,
        answer=f"{synthesis.answer}\n\n*{team.disclaimer}*" if team.disclaimer else synthesis.answer,
        findings=synthesis.findings,
        contradictions=synthesis.contradictions,
        gaps=synthesis.gaps,
        confidence=synthesis.confidence,
        provenance=synthesis.provenance,
        outcomes=tuple(done.outcomes.values()),
        usage=usage,
        timing=_timing(done, synthesis, engine.now()),
        strategy=done.plan.strategy,
        plan=done.plan,
        notes=(*done.plan.advice(), *synthesis.notes),
        error=_common_fault(done.outcomes) if status == "failed" else None,
        data=synthesis.data,
    )


def _status(done: _Done, synthesis: Synthesis) -> RunStatus:
    """complete only with evidence for all of it: every task done or replaced, no gap, nothing cited in vain."""
    if not any(outcome.ok for outcome in done.outcomes.values()):
        return "failed"
    whole = all(outcome.ok or id in done.filled for id, outcome in done.outcomes.items())
    return "complete" if whole and not synthesis.gaps and not keeps_open(synthesis.provenance) else "partial"


def _common_fault(outcomes: Mapping[str, Outcome]) -> Fault | None:
    """The one kind of error everything failed with, if it is one."""
    faults = [outcome.error for outcome in outcomes.values() if outcome.error is not None]
    return faults[0] if faults and len({fault.kind for fault in faults}) == 1 else None


def _timing(done: _Done, synthesis: Synthesis, wall: float) -> Timing:
    """Measured wall time against the same calls one after the other, and against the longest chain of them."""
    seconds = {id: outcome.usage.seconds for id, outcome in done.outcomes.items()}
    waiting = [done.planning.waiting_s, synthesis.usage.waiting_s, *(o.usage.waiting_s for o in done.outcomes.values())]
    around = done.planning.seconds + synthesis.usage.seconds
    sequential = around + sum(seconds.values())
    return Timing(
        wall_s=wall,
        sequential_s=sequential,
        critical_path_s=around + done.plan.critical_path(seconds)[0],
        speedup=sequential / wall if wall > 0 else 1.0,
        waiting_s=sum(waiting),
    )


def _nothing_run(request: Request, engine: Engine, why: str, planning: Usage, fault: Fault | None = None) -> Report:
    return Report(
        run=engine.run,
        request=request.text,
        status="failed",
        answer=why,
        gaps=(Gap(reason=why, impact="Nothing was run."),),
        usage=planning,
        timing=Timing(wall_s=engine.now(), sequential_s=planning.seconds, critical_path_s=planning.seconds),
        error=fault,
    )
