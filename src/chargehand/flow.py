"""The order of a run: request -> plan -> outcomes -> report. Only this module knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from chargehand.dispatcher import assemble, dispatch
from chargehand.engine.deadline import in_time
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel, SupervisorModels
from chargehand.planner.extend import extend_plan, worth_extending
from chargehand.planner.preview import cost_of_synthesis
from chargehand.planner.settle_plan import Agreed, agree, time_left
from chargehand.steps.final_report import RunResults, make_report, report_nothing_run
from chargehand.steps.supervisor_help import make_help
from chargehand.steps.task_steps import TaskSteps
from chargehand.synthesizer import Lacking, OnDraft, Synthesis, Validate, write_answer
from chargehand.team import Team
from chargehand.values.head import Head
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.workers import Roster, RunTerms
from chargehand.workers.factory import WorkerFactory

# Workers stop this much before the deadline, so that the answer can still be written.
SYNTHESIS_SHARE = 0.2
LONGEST_SYNTHESIS_S = 30.0


async def run(
    request: Request,
    team: Team,
    roster: Roster,
    engine: Engine,
    role_models: SupervisorModels,
    plan: Plan | None = None,
    validate: Validate | None = None,
    on_draft: OnDraft | None = None,
    factory: WorkerFactory | None = None,
) -> Report:
    """A plan given here is run as it is: no planner call at all.

    `validate` judges the answer as data; `on_draft` hears it grow; `factory` makes the workers that a plan defines.
    """
    agreed = await agree(request, team, roster, engine, role_models, plan, factory)
    if not isinstance(agreed, Agreed):
        return report_nothing_run(request, team, engine, agreed)
    if factory is not None and agreed.plan.workers:
        team, roster = team.hiring(agreed.plan.workers), {**roster, **factory.hire(agreed.plan.workers)}
    engine.budget.hold(cost_of_synthesis(agreed.plan, role_models.get("synthesizer")))
    work = _begin(agreed, request, team, roster, engine, role_models)
    await work.run()
    write = partial(_write, work, validate, on_draft)
    written = await write()
    while isinstance(written, Lacking):
        added = await work.extend(written)
        if added:
            await work.extend_for_failures()
        written = await (write(written) if added else written.finish(time_left(request, engine)))
    return make_report(request, team, work.results(), written, engine)


class RunTasks(Protocol):
    """Dispatches a plan; its tasks may depend on `earlier` ones."""

    async def __call__(self, plan: Plan, *, earlier: Mapping[str, Head] | None = None) -> dict[str, Head]: ...


@dataclass(slots=True)
class _Work:
    """Tasks dispatched, and added to a bounded number of times where the plan was made here."""

    request: Request
    team: Team
    engine: Engine
    role_models: SupervisorModels
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
        work = partial(more, request=request, team=self.team, engine=engine, planner_model=self.planner)
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
        engine.budget.hold(cost_of_synthesis(whole, self.role_models.get("synthesizer")) + self.to_read)
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
            engine.budget.hold(cost_of_synthesis(self.plan, self.role_models.get("synthesizer")) + self.to_read)
        in_hand = engine.budget.affordable() and (stop_at is None or engine.clock.now() < stop_at)
        why = "tasks failed or are thin" if draft is None else "a draft of the answer lacks something"
        reason = f"{why}, and another way might do" if in_hand else "no budget or time is left for more tasks"
        may = bool(await engine.decide(key, "extend", lambda: in_hand, reason))
        if draft is not None and not may:
            engine.budget.release()
        return may

    def results(self) -> RunResults:
        return RunResults(self.plan, self.outcomes, self.filled, Usage.total(self.used))


def _begin(
    agreed: Agreed, request: Request, team: Team, roster: Roster, engine: Engine, role_models: SupervisorModels
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
    help = make_help(request, team, engine, role_models, planned_here=agreed.planned)
    steps = TaskSteps(engine, workers, help)
    engine.serve(steps)
    run_tasks = partial(dispatch, crew=crew, engine=engine, stop_at=stop_at, policy=team.recovery, rungs=help.rungs)
    run_tasks = partial(run_tasks, ceiling=agreed.ceiling)
    # A person has approved this plan and no other.
    planner = role_models.get("planner") if agreed.planned and not request.approve else None
    left = 0 if planner is None else team.scrutiny.extensions
    return _Work(request, team, engine, role_models, steps, run_tasks, planner, agreed.plan, [agreed.usage], left=left)


async def _write(
    work: _Work, validate: Validate | None, on_draft: OnDraft | None, before: Lacking | None = None
) -> Synthesis | Lacking:
    """The answer; or, where tasks may still be added, a first draft that lacks something."""
    request, team, engine, role_models = work.request, work.team, work.engine, work.role_models
    return await write_answer(
        request,
        work.plan,
        work.outcomes,
        engine,
        role_models.get("synthesizer"),
        time_left(request, engine),
        validate,
        filled=work.filled,
        judge=role_models.get("judge"),
        critic=role_models.get("critic") if request.critic or team.scrutiny.critic else None,
        rounds=team.scrutiny.rounds,
        rater=role_models.get("scorer") if team.scrutiny.rate_findings else None,
        examiner=role_models.get("examiner"),
        read=engine.record.urls(),
        on_draft=on_draft,
        pause=work.left > 0,
        before=before,
        mark="" if before is None else f"x{work.rounds}/",
    )


def _workers_stop_at(request: Request) -> float | None:
    if request.deadline_s is None:
        return None
    return request.deadline_s - min(SYNTHESIS_SHARE * request.deadline_s, LONGEST_SYNTHESIS_S)
