"""The steps of a run, each by its refs: its plan, what is added to it, its answer, and the steps of its tasks.

plan      the request becomes a plan that may run          -> its tasks without their words, or a report of why not
extend    a model adds tasks for what is missing           -> these, and which gaps they fill
write     the results become the answer                    -> a report, or a first draft that lacks something
finish    that draft becomes the answer                    -> a report
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from functools import partial
from importlib import import_module

from chargehand.engine.deadline import in_time
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModels
from chargehand.planner.preview import synthesis_tokens
from chargehand.planner.settle_plan import Agreed, agree, time_left
from chargehand.steps.final_report import RunResults, make_report, report_nothing_run
from chargehand.steps.supervisor_help import SupervisorHelp, make_help
from chargehand.steps.task_steps import TaskSteps, drop_words
from chargehand.synthesizer import Lacking, OnDraft, Synthesis, Validate, write_answer
from chargehand.team import Team
from chargehand.values.estimate import PastRun
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Request
from chargehand.values.step import Head, PlanHead, StepKind, StepRefs, WorkerHead
from chargehand.workers import Roster, RunTerms
from chargehand.workers.factory import WorkerFactory

# Workers stop this much before the deadline, so that the answer can still be written.
SYNTHESIS_SHARE = 0.2
LONGEST_SYNTHESIS_S = 30.0
# What a planned run needs after its planner's call, and when to load it: by then the call is on its way.
NEEDED_LATER = (
    "chargehand.planner.lost_details",
    "chargehand.synthesizer.synthesis_flow",
    "chargehand.synthesizer.contradictions_by_model",
    "chargehand.synthesizer.quoted_results",
    "chargehand.synthesizer.critic",
)
LOAD_AFTER_S = 0.03


@plain_class()
class RunSteps:
    """One per run, or per team within one. `plan` is the first step; the others come after a plan that may run."""

    request: Request
    team: Team
    roster: Roster
    engine: Engine
    role_models: SupervisorModels
    # A plan given here is run as it is: no planner call at all.
    given: Plan | None = None
    # Judges the answer as data.
    validate: Validate | None = None
    # Receives the answer as it grows.
    on_draft: OnDraft | None = None
    # Makes the workers that a plan defines.
    factory: WorkerFactory | None = None
    # Runs of the same team and models, for the estimate that a person is shown before the plan runs.
    past: Sequence[PastRun] = ()
    # The ids of the tasks that an estimate is made for: those known before a planner adds tasks.
    first: frozenset[str] = frozenset()
    # The plan that runs, with what was added to it so far.
    _plan: Plan = field(default_factory=Plan)
    _tasks: TaskSteps | None = None
    # What planning used, call by call.
    _used: list[Usage] = field(default_factory=list[Usage])
    _drafts: dict[str, Lacking] = field(default_factory=dict[str, Lacking])

    async def run(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        if (step := _STEPS.get(kind)) is not None:
            return await step(self, key, refs)
        return await self.tasks.run(key, kind, refs)

    def recall(self, key: str) -> None:
        self.tasks.recall(key)

    @property
    def tasks(self) -> TaskSteps:
        assert self._tasks is not None, "the plan is the first step"
        return self._tasks

    # -- the steps ---------------------------------------------------------------------------------------------------

    async def plan(self, key: str, refs: StepRefs) -> Head:
        request, engine, models, factory = self.request, self.engine, self.role_models, self.factory
        with load_meanwhile() if self.given is None else nullcontext():
            agreed = await agree(request, self.team, self.roster, engine, models, self.given, factory, self.past)
        if not isinstance(agreed, Agreed):
            report = report_nothing_run(request, self.team, engine, agreed)
            return engine.outcomes.keep_report(key, report, agreed.usage)
        self.first = frozenset(task.id for task in (self.given or agreed.plan).tasks)
        plan = agreed.plan.model_copy(update={"tasks": self.as_restarted(agreed.plan.tasks)})
        tasks = self.continue_with(plan, {task.id: task for task in plan.tasks}, [agreed.usage], planned=agreed.planned)
        head = self._plan_head(agreed, tasks.roster, tasks.help)
        return Head(status="done", parts=drop_words(plan.tasks), usage=agreed.usage, plan=head)

    def continue_with(
        self, plan: Plan, tasks: dict[str, Task], used: list[Usage], *, planned: bool, ids: frozenset[str] | None = None
    ) -> TaskSteps:
        """Take over a plan that may run, whichever session or machine settled it, and what planning used.

        `tasks` and `ids` are its tasks and their ids, to be shared by steps of the same run.
        """
        if self.factory is not None and plan.workers:
            self.team = self.team.with_workers(plan.workers)
            self.roster = {**self.roster, **self.factory.make_agents(plan.workers)}
        terms = RunTerms(self.request, workers_stop_at(self.request), self.team.recovery.evidence)
        workers = {name: worker.bind(terms) for name, worker in self.roster.items()}
        help = make_help(self.request, self.team, self.engine, self.role_models, planned_here=planned)
        self._tasks = TaskSteps(self.engine, workers, help, tasks, _ids=frozenset(tasks) if ids is None else ids)
        self._plan, self._used = plan, used
        return self._tasks

    async def extend(self, key: str, refs: StepRefs) -> Head:
        from chargehand.planner.extend import extend_plan  # few runs extend their plan

        lacks = () if refs.draft is None else self._drafts[refs.draft].gaps
        used: list[Usage] = []
        more = partial(extend_plan, self._plan, self._outcomes(refs), frozenset(refs.filled), lacks, refs.round, used)
        planner, engine = self.role_models["planner"], self.engine
        work = partial(more, request=self.request, team=self.team, engine=engine, planner_model=planner)
        time = None if refs.stop_at is None else max(refs.stop_at - engine.clock.now(), 0.0)
        extension = await in_time(engine, key, time, work)
        self._used += used
        if extension is None:
            return Head(status="skipped", usage=Usage.total(used))
        added = self.as_restarted(extension.tasks)
        self.engine.outcomes.keep_tasks(key, added)
        self._plan = self._plan.with_tasks(added)
        self.tasks.add_tasks(added)
        parts, fills = drop_words(extension.tasks), dict(extension.fills)
        return Head(status="done", parts=parts, fills=fills, usage=Usage.total(used))

    async def write(self, key: str, refs: StepRefs) -> Head:
        request, scrutiny, models = self.request, self.team.scrutiny, self.role_models
        written = await write_answer(
            request,
            self._plan,
            self._outcomes(refs),
            self.engine,
            models.get("synthesizer"),
            time_left(request, self.engine),
            self.validate,
            filled=frozenset(refs.filled),
            judge=models.get("judge"),
            critic=models.get("critic") if request.critic or scrutiny.critic else None,
            rounds=scrutiny.rounds,
            rater=models.get("scorer") if scrutiny.rate_findings else None,
            examiner=models.get("examiner"),
            read=self.engine.record.urls(),
            on_draft=self.on_draft,
            pause=refs.may_lack,
            before=None if refs.draft is None else self._drafts[refs.draft],
            mark="" if refs.draft is None else f"x{refs.round}/",
        )
        if isinstance(written, Synthesis):
            return self._report(key, refs, written)
        self._drafts[key] = written
        return Head(status="done", ref=key, lacks=True, tokens_read=written.tokens_read)

    async def finish(self, key: str, refs: StepRefs) -> Head:
        assert refs.draft is not None
        written = await self._drafts[refs.draft].finish(time_left(self.request, self.engine))
        return self._report(key, refs, written)

    def as_restarted(self, tasks: Iterable[Task]) -> tuple[Task, ...]:
        """The tasks with the instructions that a person restarted them with."""
        restarts = {task.id: self.engine.record.restart_of(task.id) for task in tasks}
        return tuple(
            task.model_copy(update={"instruction": restart.instruction})
            if (restart := restarts[task.id]) is not None and restart.instruction
            else task
            for task in tasks
        )

    # -- parts of them -----------------------------------------------------------------------------------------------

    def _plan_head(self, agreed: Agreed, workers: Roster, help: SupervisorHelp) -> PlanHead:
        request, team = self.request, self.team
        # A person has approved this plan and no other.
        may_extend = agreed.planned and not request.approve and "planner" in self.role_models
        return PlanHead(
            ceiling=agreed.ceiling,
            stop_at=workers_stop_at(request),
            workers={
                name: WorkerHead(tier=worker.tier, waits_for_person=worker.waits_for_person)
                for name, worker in workers.items()
            },
            fallbacks=team.fallbacks(),
            pools=team.pools(),
            max_concurrent=request.max_concurrent,
            ask=request.ask,
            policy=team.recovery,
            rungs=help.rungs._asdict(),
            extensions=team.scrutiny.extensions if may_extend else 0,
            max_tasks=request.max_tasks,
            synthesis_tokens=synthesis_tokens(self.role_models.get("synthesizer")),
        )

    def _report(self, key: str, refs: StepRefs, written: Synthesis) -> Head:
        results = RunResults(self._plan, self._outcomes(refs), frozenset(refs.filled), Usage.total(self._used))
        report = make_report(self.request, self.team, results, written, self.engine)
        return self.engine.outcomes.keep_report(key, report, written.usage)

    def _outcomes(self, refs: StepRefs) -> Mapping[str, Outcome]:
        return {task: self.engine.outcomes.at(task) for task in refs.inputs}


@contextmanager
def load_meanwhile() -> Generator[None]:
    """Loads what is needed later in a thread, if the block waits for long enough: the loop is idle then."""
    timer = asyncio.get_running_loop().call_later(LOAD_AFTER_S, load_in_thread)
    try:
        yield
    finally:
        timer.cancel()


def load_in_thread() -> None:
    """Load what is not loaded yet."""
    if missing := [module for module in NEEDED_LATER if module not in sys.modules]:
        threading.Thread(target=lambda: [import_module(module) for module in missing], name="load modules").start()


def workers_stop_at(request: Request) -> float | None:
    """When workers stop, in seconds of the run's clock; None without a deadline."""
    if request.deadline_s is None:
        return None
    return request.deadline_s - min(SYNTHESIS_SHARE * request.deadline_s, LONGEST_SYNTHESIS_S)


_STEPS: dict[StepKind, Callable[[RunSteps, str, StepRefs], Awaitable[Head]]] = {
    "plan": RunSteps.plan,
    "extend": RunSteps.extend,
    "write": RunSteps.write,
    "finish": RunSteps.finish,
}
