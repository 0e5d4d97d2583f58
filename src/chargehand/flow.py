"""run(): the whole flow on one screen. Request -> plan -> outcomes -> report; only this module knows the order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

from chargehand.dispatcher import assemble, dispatch
from chargehand.engine.deadline import in_time
from chargehand.engine.people import question_about
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel, SupervisorModels
from chargehand.planner.draft import Unplanned, split_task
from chargehand.planner.extend import extend_plan, worth_extending
from chargehand.planner.preview import cost_of_synthesis
from chargehand.planner.route import reroute
from chargehand.planner.settle_plan import Agreed, Rejected, agree, time_left
from chargehand.steps.refine import refine
from chargehand.steps.score import score
from chargehand.steps.supervisor_help import SupervisorHelp
from chargehand.steps.task_steps import TaskSteps
from chargehand.synthesizer import Lacking, OnDraft, Synthesis, Validate, write_answer
from chargehand.synthesizer.synthesis import keeps_open
from chargehand.team import Team
from chargehand.values.event import ContradictionFound, GapFound
from chargehand.values.head import Head
from chargehand.values.outcome import Fault, Outcome, Usage
from chargehand.values.plan import Plan, Task
from chargehand.values.report import Gap, Report, Timing, evidence_notes
from chargehand.values.request import Request
from chargehand.values.run_status import RunStatus
from chargehand.workers import Roster, RunTerms
from chargehand.workers.delegate import IMPACT
from chargehand.workers.factory import WorkerFactory

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
    brains: SupervisorModels,
    plan: Plan | None = None,
    validate: Validate | None = None,
    on_draft: OnDraft | None = None,
    factory: WorkerFactory | None = None,
) -> Report:
    """A plan given here is run as it is: no planner call at all.

    `validate` judges the answer as data; `on_draft` hears it grow; `factory` makes the workers that a plan defines.
    """
    agreed = await agree(request, team, roster, engine, brains, plan, factory)
    if not isinstance(agreed, Agreed):
        return _answer_when_nothing(_nothing_run(request, engine, agreed), team)
    if factory is not None and agreed.plan.workers:
        team, roster = team.hiring(agreed.plan.workers), {**roster, **factory.hire(agreed.plan.workers)}
    engine.budget.hold(cost_of_synthesis(agreed.plan, brains.get("synthesizer")))
    work = _begin(agreed, request, team, roster, engine, brains)
    await work.run()
    write = partial(_write, work, validate, on_draft)
    written = await write()
    while isinstance(written, Lacking):
        added = await work.extend(written)
        if added:
            await work.extend_for_failures()
        written = await (write(written) if added else written.finish(time_left(request, engine)))
    done = work.as_done()
    synthesis = _with_handed_up(written, request, done.outcomes.values())
    for gap in synthesis.gaps:
        engine.emit(GapFound(gap=gap.to_json()), task=gap.task)
    for contradiction in synthesis.contradictions:
        engine.emit(ContradictionFound(contradiction=contradiction.to_json()))
    return _answer_when_nothing(_report(request, team, done, synthesis, engine), team)


class RunTasks(Protocol):
    """Dispatches a plan; its tasks may depend on `earlier` ones."""

    async def __call__(self, plan: Plan, *, earlier: Mapping[str, Head] | None = None) -> dict[str, Head]: ...


class _Done(NamedTuple):
    """The plan with what was added to it, an outcome for each task, and the gaps that were filled after all."""

    plan: Plan
    outcomes: Mapping[str, Outcome]
    filled: frozenset[str]
    planning: Usage


@dataclass(slots=True)
class _Work:
    """Tasks dispatched, and added to a bounded number of times where the plan was made here."""

    request: Request
    team: Team
    engine: Engine
    brains: SupervisorModels
    steps: TaskSteps
    dispatch: RunTasks
    # Who may add tasks; None where nobody may.
    planner: SupervisorModel | None
    plan: Plan
    used: list[Usage]
    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    filled: frozenset[str] = frozenset()
    # Rounds in which tasks were added, and how many more there may be.
    rounds: int = 0
    left: int = 0
    # What the results took of a draft that may have to be written again, in tokens.
    to_read: int = 0

    async def run(self) -> None:
        """An outcome for every task; what failed is planned for in another way."""
        await self._run_tasks(self.plan)
        await self.extend_for_failures()

    async def _run_tasks(self, plan: Plan) -> None:
        self.steps.add_tasks(plan.tasks)
        self.heads = {**self.heads, **await self.dispatch(plan, earlier=self.heads)}
        # New values: a draft that is there knows the outcomes it was written from.
        self.outcomes = {id: self.engine.outcomes.at(id) for id in self.heads}

    async def extend_for_failures(self) -> None:
        """Tasks for what failed or is thin, as long as there are some and rounds are left."""
        while await self.extend():
            pass

    async def extend(self, draft: Lacking | None = None) -> bool:
        """Whether tasks were added and run, for what came of the tasks or for what a draft of the answer lacks."""
        if self.planner is None or not self.left or len(self.plan.tasks) >= self.request.max_tasks:
            return False
        number, request, engine = self.rounds + 1, self.request, self.engine
        if not await self._may_extend(number, draft):
            return False
        lacks = () if draft is None else draft.gaps
        more = partial(extend_plan, self.plan, self.outcomes, self.filled, lacks, number, self.used)
        work = partial(more, request=request, team=self.team, engine=engine, brain=self.planner)
        stop_at = _workers_stop_at(request)
        time = None if stop_at is None else max(stop_at - engine.clock.now(), 0.0)
        extension = await in_time(engine, f"@extend/{number}", time, work)
        if extension is None:
            # The planner has nothing to add, or no time to: it is not asked a second time.
            self.left = 0
            if draft is not None:
                engine.budget.release()
            return False
        self.rounds, self.left = number, self.left - 1
        whole = self.plan.with_tasks(extension.tasks)
        engine.budget.hold(cost_of_synthesis(whole, self.brains.get("synthesizer")) + self.to_read)
        await self._run_tasks(self.plan.model_copy(update={"tasks": extension.tasks}))
        self.plan = whole
        self.filled |= extension.filled_gaps(self.outcomes)
        return True

    async def _may_extend(self, number: int, draft: Lacking | None) -> bool:
        """Whether something is missing that more tasks could give, and there are budget and time for them.

        Decided once. A draft that is there has been paid for: the money for another is set aside first.
        """
        engine, stop_at = self.engine, _workers_stop_at(self.request)
        key = f"@extend/{number}/{'whether' if draft is None else 'gaps'}"
        if draft is None and engine.record.decided(key) is None and not worth_extending(self.outcomes, self.filled):
            return False
        if draft is not None:
            self.to_read = draft.tokens_read
            engine.budget.hold(cost_of_synthesis(self.plan, self.brains.get("synthesizer")) + self.to_read)
        in_hand = engine.budget.affordable() and (stop_at is None or engine.clock.now() < stop_at)
        why = "tasks failed or are thin" if draft is None else "a draft of the answer lacks something"
        reason = f"{why}, and another way might do" if in_hand else "no budget or time is left for more tasks"
        may = bool(await engine.decide(key, "extend", lambda: in_hand, reason))
        if draft is not None and not may:
            engine.budget.release()
        return may

    def as_done(self) -> _Done:
        return _Done(self.plan, self.outcomes, self.filled, Usage.total(self.used))


def _begin(
    agreed: Agreed, request: Request, team: Team, roster: Roster, engine: Engine, brains: SupervisorModels
) -> _Work:
    stop_at = _workers_stop_at(request)
    terms = RunTerms(request, stop_at, team.recovery.evidence)
    workers = {name: worker.bind(terms) for name, worker in roster.items()}
    crew = assemble(
        workers,
        engine,
        fallbacks=team.fallbacks(),
        pools=team.pools(),
        width=request.max_concurrent,
        ask=request.ask,
    )
    help = _help(request, team, engine, brains, planned_here=agreed.planned)
    steps = TaskSteps(engine, workers, help)
    engine.serve(steps)
    run_tasks = partial(dispatch, crew=crew, engine=engine, stop_at=stop_at, policy=team.recovery, rungs=help.rungs)
    run_tasks = partial(run_tasks, ceiling=agreed.ceiling)
    # A person has approved this plan and no other.
    planner = brains.get("planner") if agreed.planned and not request.approve else None
    left = 0 if planner is None else team.scrutiny.extensions
    return _Work(request, team, engine, brains, steps, run_tasks, planner, agreed.plan, [agreed.usage], left=left)


async def _write(
    work: _Work, validate: Validate | None, on_draft: OnDraft | None, before: Lacking | None = None
) -> Synthesis | Lacking:
    """The answer; or, where tasks may still be added, a first draft that lacks something."""
    request, team, engine, brains = work.request, work.team, work.engine, work.brains
    return await write_answer(
        request,
        work.plan,
        work.outcomes,
        engine,
        brains.get("synthesizer"),
        time_left(request, engine),
        validate,
        filled=work.filled,
        judge=brains.get("judge"),
        critic=brains.get("critic") if request.critic or team.scrutiny.critic else None,
        rounds=team.scrutiny.rounds,
        rater=brains.get("scorer") if team.scrutiny.rate_findings else None,
        examiner=brains.get("examiner"),
        read=engine.record.urls(),
        on_draft=on_draft,
        pause=work.left > 0,
        before=before,
        mark="" if before is None else f"x{work.rounds}/",
    )


def _help(
    request: Request, team: Team, engine: Engine, brains: SupervisorModels, *, planned_here: bool
) -> SupervisorHelp:
    """What the dispatcher may fall back on when a task fails. A plan that was given is never planned on: no split."""
    refiner, scorer, router = brains.get("refiner"), brains.get("scorer"), brains.get("router")
    planner = brains.get("planner") if planned_here else None
    return SupervisorHelp(
        refine=partial(refine, engine=engine, brain=refiner) if refiner else None,
        split=partial(split_task, request=request, team=team, engine=engine, brain=planner) if planner else None,
        ask=question_about if request.ask else None,
        score=partial(score, engine=engine, brain=scorer) if scorer and team.recovery.score else None,
        select=partial(_best_of, engine=engine, brain=brains.get("judge")),
        reroute=partial(reroute, team=team, engine=engine, brain=router) if router else None,
    )


async def _best_of(
    task: Task,
    results: Sequence[Outcome],
    number: int,
    used: list[Usage],
    *,
    engine: Engine,
    brain: SupervisorModel | None,
) -> tuple[int, str]:
    from chargehand.synthesizer.select import choose

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
        answer=_add_disclaimers(synthesis.answer, team, done.outcomes.values()),
        findings=synthesis.findings,
        contradictions=synthesis.contradictions,
        gaps=synthesis.gaps,
        confidence=synthesis.confidence,
        provenance=synthesis.provenance,
        outcomes=tuple(done.outcomes.values()),
        usage=usage,
        timing=_timing(done, synthesis, engine.clock.now()),
        strategy=done.plan.strategy,
        plan=done.plan,
        notes=(*done.plan.advice(), *synthesis.notes, *evidence_notes(done.outcomes.values())),
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
    return report.model_copy(update={"answer": _add_disclaimers(team.when_nothing, team, ()), "when_nothing": True})


def _add_disclaimers(answer: str, team: Team, outcomes: Iterable[Outcome]) -> str:
    """The answer, then each disclaimer once: those of teams that gave a part of it, which stand there, and the own."""
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
        timing=Timing(wall_s=engine.clock.now(), sequential_s=why.usage.seconds, critical_path_s=why.usage.seconds),
        error=why.fault if isinstance(why, Unplanned) else None,
    )
    if isinstance(why, Unplanned):
        return report
    return report.model_copy(update={"strategy": why.plan.strategy, "plan": why.plan})
