"""run(): the whole flow on one screen. Request -> plan -> outcomes -> report; only this module knows the order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chargehand.agreement import Agreed, Rejected, agree, time_left
from chargehand.brains import Brain, Brains
from chargehand.deadline import in_time
from chargehand.dispatcher import Help, assemble, dispatch
from chargehand.engine import Engine
from chargehand.extension import extend_plan, worth_extending
from chargehand.outcome import Fault, Outcome, Usage
from chargehand.people import question_about
from chargehand.plan import Plan, Task
from chargehand.planner import Unplanned, split_task
from chargehand.preview import cost_of_synthesis
from chargehand.refiner import refine
from chargehand.report import Gap, Report, RunStatus, Timing
from chargehand.request import Request
from chargehand.routing import reroute
from chargehand.scorer import score
from chargehand.synthesizer import OnDraft, Synthesis, Validate, synthesize
from chargehand.synthesizer.citations import keeps_open
from chargehand.synthesizer.select import choose
from chargehand.team import Team
from chargehand.workers import Roster
from chargehand.workers.delegate import IMPACT, Delegate
from chargehand.workers.factory import Factory

# Workers stop this much before the deadline, so that the answer can still be written.
SYNTHESIS_SHARE = 0.2
LONGEST_SYNTHESIS_S = 30.0
# Errors of a worker or provider that did not answer, whatever it was asked. A wrong key is the caller's to mend.
UNREACHABLE = frozenset({"rate_limited", "overloaded", "connection", "timeout"})


async def run(
    request: Request,
    team: Team,
    roster: Roster,
    engine: Engine,
    brains: Brains,
    plan: Plan | None = None,
    validate: Validate | None = None,
    on_draft: OnDraft | None = None,
    factory: Factory | None = None,
) -> Report:
    """A plan given here is run as it is: no planner call at all.

    `validate` judges the answer as data; `on_draft` hears it grow; `factory` makes the workers that a plan defines.
    """
    agreed = await agree(request, team, roster, engine, brains, plan, factory)
    if not isinstance(agreed, Agreed):
        return _answer_when_nothing(_nothing_run(request, engine, agreed), team)
    if factory is not None and agreed.plan.workers:
        team, roster = team.hiring(agreed.plan.workers), {**roster, **factory.hired(agreed.plan.workers)}
    engine.hold(cost_of_synthesis(agreed.plan, brains.get("synthesizer")))
    done = await _done(agreed, request, team, roster, engine, brains)
    synthesis = await synthesize(
        request,
        done.plan,
        done.outcomes,
        engine,
        brains.get("synthesizer"),
        time_left(request, engine),
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
    synthesis = _with_handed_up(synthesis, request, done.outcomes.values())
    for gap in synthesis.gaps:
        engine.emit("gap_found", task=gap.task, gap=gap.to_json())
    for contradiction in synthesis.contradictions:
        engine.emit("contradiction_found", contradiction=contradiction.to_json())
    return _answer_when_nothing(_report(request, team, done, synthesis, engine), team)


@dataclass(frozen=True, slots=True)
class _Done:
    """The plan with what was added to it, an outcome for each task, and the gaps that were filled after all."""

    plan: Plan
    outcomes: Mapping[str, Outcome]
    filled: frozenset[str]
    planning: Usage


async def _done(agreed: Agreed, request: Request, team: Team, roster: Roster, engine: Engine, brains: Brains) -> _Done:
    """Everything dispatched, then, in a plan made here, what failed planned for anew, a bounded number of times."""
    crew = assemble(
        _under(request, roster),
        engine,
        fallbacks=team.fallbacks(),
        pools=team.pools(),
        width=request.max_concurrent,
        ask=request.ask,
    )
    stop_at = _workers_stop_at(request)
    help = _help(request, team, engine, brains, planned_here=agreed.planned)
    run_tasks = partial(dispatch, crew=crew, engine=engine, stop_at=stop_at, policy=team.recovery, help=help)
    run_tasks = partial(run_tasks, ceiling=agreed.ceiling)
    plan, used = agreed.plan, [agreed.usage]
    filled: frozenset[str] = frozenset()
    outcomes = await run_tasks(plan)
    # A person has approved this plan and no other.
    planner = brains.get("planner") if agreed.planned and not request.approve else None
    for number in range(1, team.scrutiny.extensions + 1):
        worth = len(plan.tasks) < request.max_tasks and worth_extending(outcomes, filled)
        if planner is None or not await _may_extend(number, worth, request, engine):
            break
        more = partial(extend_plan, plan, outcomes, filled, number, used)
        extend = partial(more, request=request, team=team, engine=engine, brain=planner)
        left = None if stop_at is None else max(stop_at - engine.now(), 0.0)
        extension = await in_time(engine, f"@extend/{number}", left, extend)
        if extension is None:
            break
        engine.hold(cost_of_synthesis(plan.with_tasks(extension.tasks), brains.get("synthesizer")))
        added = plan.model_copy(update={"tasks": extension.tasks})
        outcomes = {**outcomes, **await run_tasks(added, earlier=outcomes)}
        plan = plan.with_tasks(extension.tasks)
        filled |= extension.filled(outcomes)
    return _Done(plan, outcomes, filled, Usage.total(used))


def _under(request: Request, roster: Roster) -> Roster:
    """The workers, with teams among them told what the request leaves them."""
    stop_at = _workers_stop_at(request)
    return {name: each.under(request, stop_at) if isinstance(each, Delegate) else each for name, each in roster.items()}


async def _may_extend(number: int, worth: bool, request: Request, engine: Engine) -> bool:
    """Whether something failed that more tasks could mend, and there are budget and time for them. Decided once."""
    key, stop_at = f"@extend/{number}/whether", _workers_stop_at(request)
    if engine.decided(key) is None and not worth:
        return False
    in_hand = engine.affordable() and (stop_at is None or engine.now() < stop_at)
    why = "tasks failed that another way might do" if in_hand else "no budget or time is left for more tasks"
    return bool(await engine.decide(key, "extend", lambda: in_hand, why))


def _help(request: Request, team: Team, engine: Engine, brains: Brains, *, planned_here: bool) -> Help:
    """What the dispatcher may fall back on when a task fails. A plan that was given is never planned on: no split."""
    refiner, scorer, router = brains.get("refiner"), brains.get("scorer"), brains.get("router")
    planner = brains.get("planner") if planned_here else None
    return Help(
        refine=partial(refine, engine=engine, brain=refiner) if refiner else None,
        split=partial(split_task, request=request, team=team, engine=engine, brain=planner) if planner else None,
        ask=question_about if request.ask else None,
        score=partial(score, engine=engine, brain=scorer) if scorer and team.recovery.score else None,
        select=partial(_best_of, engine=engine, brain=brains.get("judge")),
        reroute=partial(reroute, team=team, engine=engine, brain=router) if router else None,
    )


async def _best_of(
    task: Task, results: Sequence[Outcome], number: int, used: list[Usage], *, engine: Engine, brain: Brain | None
) -> tuple[int, str]:
    key, seed = f"{task.id}/{number}/select", f"{engine.run}/{task.id}/{number}"
    choice = await choose(
        task.instruction, results, engine, brain, key, used, criterion=task.success_criterion, seed=seed
    )
    return choice.index, choice.reason


def _workers_stop_at(request: Request) -> float | None:
    if request.deadline_s is None:
        return None
    return request.deadline_s - min(SYNTHESIS_SHARE * request.deadline_s, LONGEST_SYNTHESIS_S)


def _report(request: Request, team: Team, done: _Done, synthesis: Synthesis, engine: Engine) -> Report:
    status = _status(done, synthesis)
    usage = Usage.total([done.planning, *(outcome.usage for outcome in done.outcomes.values()), synthesis.usage])
    return Report(
        run=engine.run,
        request=request.text,
        status=status,
        answer=_disclaimed(synthesis.answer, team, done.outcomes.values()),
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


def _answer_when_nothing(report: Report, team: Team) -> Report:
    """The report with the team's own words as its answer, when it failed because nobody could be reached."""
    undone = [outcome for outcome in report.outcomes if outcome.status != "skipped"]
    faults = [report.error] if report.plan is None else [outcome.error for outcome in undone]
    unreached = all(fault is not None and fault.kind in UNREACHABLE for fault in faults)
    if not team.when_nothing or report.status != "failed" or not faults or not unreached:
        return report
    if any(outcome.partial for outcome in report.outcomes):
        return report
    return report.model_copy(update={"answer": _disclaimed(team.when_nothing, team, ()), "when_nothing": True})


def _disclaimed(answer: str, team: Team, outcomes: Iterable[Outcome]) -> str:
    """The answer, then each disclaimer once: those of teams that gave a part of it, which stand there, and the own."""
    if not team.disclaimers:
        return answer
    given = "\n".join(json.dumps([outcome.summary, outcome.output], ensure_ascii=False) for outcome in outcomes)
    lines = [line for line in team.disclaimers if line == team.disclaimer or _quoted(line) in given]
    ends = [f"*{line}*" for line in lines]
    paragraphs = answer.split("\n\n")
    while paragraphs and paragraphs[-1] in ends:
        paragraphs.pop()
    return "\n\n".join([*paragraphs, *ends])


def _quoted(line: str) -> str:
    return json.dumps(line, ensure_ascii=False)[1:-1]


def _with_handed_up(synthesis: Synthesis, request: Request, outcomes: Iterable[Outcome]) -> Synthesis:
    """The synthesis with what was missing from the start, and what teams left missing or at odds, whatever else the
    answer says of their tasks.
    """
    gaps, contradictions = [*request.gaps, *synthesis.gaps], list(synthesis.contradictions)
    for outcome in outcomes:
        if outcome.ok and outcome.partial:
            gaps += outcome.gaps or [Gap(task=outcome.task, reason=outcome.summary, impact=IMPACT)]
        contradictions += outcome.contradictions
    # A model that read them may have stated them too.
    stated = {"gaps": tuple(dict.fromkeys(gaps)), "contradictions": tuple(dict.fromkeys(contradictions))}
    return replace(synthesis, **stated)


def _status(done: _Done, synthesis: Synthesis) -> RunStatus:
    """complete only with evidence for all of it: every task done or replaced, no gap, nothing cited in vain, and an
    answer that cites what it rests on and accounts for every result.
    """
    if not any(outcome.ok for outcome in done.outcomes.values()):
        return "failed"
    whole = all(outcome.ok or id in done.filled for id, outcome in done.outcomes.items())
    rests = synthesis.provenance.accounts_for_all and not keeps_open(synthesis.provenance)
    return "complete" if whole and not synthesis.gaps and rests else "partial"


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
        # Seconds of calls side by side, of a judge or of a best_of, are summed: no path is longer than the run.
        critical_path_s=min(around + done.plan.critical_path(seconds)[0], wall),
        speedup=sequential / wall if wall > 0 else 1.0,
        waiting_s=sum(waiting),
    )


def _nothing_run(request: Request, engine: Engine, why: Unplanned | Rejected) -> Report:
    if isinstance(why, Unplanned):
        said = why.fault.message
    else:
        said = f"The plan was rejected{f': {why.reason}' if why.reason else ' by a person.'}"
    report = Report(
        run=engine.run,
        request=request.text,
        status="failed",
        answer=said,
        gaps=(Gap(reason=said, impact="Nothing was run."),),
        usage=why.usage,
        timing=Timing(wall_s=engine.now(), sequential_s=why.usage.seconds, critical_path_s=why.usage.seconds),
        error=why.fault if isinstance(why, Unplanned) else None,
    )
    if isinstance(why, Unplanned):
        return report
    return report.model_copy(update={"strategy": why.plan.strategy, "plan": why.plan})
