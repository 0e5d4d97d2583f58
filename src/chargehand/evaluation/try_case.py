"""A case and a candidate -> the trial, through the same code that serves requests.

Whole runs are recorded like any run; the other kinds run in memory.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import assert_never

from chargehand.engine.engine_session import EngineInputs, EngineSession
from chargehand.engine.make_engine import make_engine
from chargehand.evaluation import scorers
from chargehand.evaluation.candidate import Candidate
from chargehand.evaluation.case import PlanCase, RoutingCase, RunCase, SynthesisCase, WorkerCase
from chargehand.evaluation.result import UNTRIED, Check, Tried
from chargehand.evaluation.suite import Placed
from chargehand.events import Event, ModelReplied
from chargehand.models.resolve import Models
from chargehand.planner.draft import make_plan
from chargehand.planner.planning_result import Planned
from chargehand.planner.route import route
from chargehand.record.memory_journal import MemoryJournal
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.runs.supervisor import Supervisor, materials
from chargehand.steps.score import score
from chargehand.synthesizer import Synthesis, write_answer
from chargehand.trace.number_text import short
from chargehand.values.base import JSON
from chargehand.values.outcome import Claim, Fault, Finding, Outcome, Usage, done
from chargehand.values.plan import Plan, Task
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Gap, Report
from chargehand.values.request import Request
from chargehand.workers import Assignment

RUN = "eval"
NO_SCORE = "The scorer gave no usable answer."
_MOST_ANSWER = 600


async def try_case(placed: Placed, candidate: Candidate) -> Tried:
    """Raises only errors that the caller has to act on. Faults of models are in the returned value."""
    began = time.monotonic()
    async with _bench(candidate) as bench:
        tried = await _try_case(placed, bench)
    return tried.model_copy(update={"seconds": time.monotonic() - began - bench.scoring_s})


async def _try_case(placed: Placed, bench: _Bench) -> Tried:
    match case := placed.case:
        case RoutingCase():
            return await _routing(case, bench)
        case PlanCase():
            return await _plan(case, placed, bench)
        case WorkerCase():
            return await _worker(case, placed, bench)
        case SynthesisCase():
            return await _synthesis(case, bench)
        case RunCase():
            return await _run(case, placed, bench)
        case _:
            assert_never(case)


@dataclass(slots=True)
class _Bench:
    """What a case is tried with. `faults` are faults of calls that say nothing about an answer."""

    candidate: Candidate
    models: Models
    faults: list[Fault] = field(default_factory=list[Fault])
    scoring_s: float = 0.0

    def request(self, text: str, placed: Placed | None = None) -> Request:
        settings = self.candidate.settings
        return Request(
            text=text,
            material=materials(placed.material) if placed else (),
            budget=settings.budget,
            deadline_s=settings.deadline_s,
            max_concurrent=settings.max_concurrent,
            max_tasks=settings.max_tasks,
        )

    def engine(self) -> EngineSession:
        """An engine in memory, so always in this process."""
        settings = self.candidate.settings
        inputs = EngineInputs(
            run=RUN,
            journal=MemoryJournal(),
            models=self.models,
            budget=settings.budget,
            max_concurrent=settings.max_concurrent,
            listeners=(self._on_event,),
        )
        return make_engine("local", inputs)

    def _on_event(self, event: Event) -> None:
        match event.body:
            case ModelReplied(result={"error": {"kind": kind} as error}) if kind in UNTRIED:
                self.faults.append(Fault.model_validate(error))
            case _:
                pass

    async def finish(self, tried: Tried, rubric: str | None, asked: str, output: JSON) -> Tried:
        """The trial with the scorer's check, if there is a rubric. Its time does not count for the candidate."""
        if rubric is None or tried.error is not None:
            return tried
        began = time.monotonic()
        async with self.engine() as engine:
            task = Task(id="case", worker="candidate", instruction=asked, success_criterion=rubric)
            given = done("case", "candidate", summary="", output=output)
            found = await score(Assignment(task, 1, {}), given, engine, self.candidate.scorer_model(self.models))
        self.scoring_s = time.monotonic() - began
        if found is None:  # no verdict: neither passed nor failed
            fault = self.faults[-1] if self.faults else Fault(kind="contract", message=NO_SCORE)
            return tried.model_copy(update={"error": fault})
        check = Check(name="rubric", passed=found.met, by="judge", score=found.score / 100, said=found.reason)
        return tried.model_copy(update={"checks": (*tried.checks, check)})


@asynccontextmanager
async def _bench(candidate: Candidate) -> AsyncGenerator[_Bench]:
    models = candidate.models()
    try:
        yield _Bench(candidate, models)
    finally:
        await models.close()


async def _routing(case: RoutingCase, bench: _Bench) -> Tried:
    used: list[Usage] = []
    async with bench.engine() as engine:
        model = bench.candidate.role_model(bench.models, "router")
        found = await route(case.request, bench.candidate.team, engine, model, "@route", used)
    # A router that fails leaves the request to the default worker, which says nothing about the model.
    if bench.faults:
        return Tried(error=bench.faults[0], usage=Usage.total(used))
    also = f" and {found.secondary}" if found.secondary else ""
    extra = {"extra_worker": float(found.secondary is not None)} if case.secondary is None else {}
    return Tried(
        checks=scorers.check_route(case, found.primary, found.secondary),
        metrics={"by_rule": float(found.source == "rule"), "unreadable": float(found.source == "default"), **extra},
        expected=case.primary,
        chosen=found.primary,
        answer=short(f"{found.primary}{also}: {found.reason}", _MOST_ANSWER),
        usage=Usage.total(used),
    )


async def _plan(case: PlanCase, placed: Placed, bench: _Bench) -> Tried:
    team = bench.candidate.team
    async with bench.engine() as engine:
        model = bench.candidate.role_model(bench.models, "planner")
        made = await make_plan(bench.request(case.request, placed), team, engine, model)
    if isinstance(made, Planned):
        checks, figures, score = scorers.check_plan(case, made.plan)
        answer = ", ".join(f"{task.id} {task.worker}" for task in made.plan.tasks)
        return Tried(checks=checks, metrics=figures, score=score, answer=answer, usage=made.usage)
    if made.fault.kind in UNTRIED:
        return Tried(error=made.fault, usage=made.usage)
    checks, figures, score = scorers.check_plan(case, None, made.fault.message)
    return Tried(checks=checks, metrics=figures, score=score, usage=made.usage)


async def _worker(case: WorkerCase, placed: Placed, bench: _Bench) -> Tried:
    """One attempt by this worker, without recovery: a result after recovery is not its own answer."""
    task = Task(
        id="t1",
        worker=case.worker,
        instruction=case.instruction,
        context=case.context,
        success_criterion=case.criterion,
    )
    candidate = bench.candidate
    team = replace(candidate.team, recovery=Policy(attempts=1))
    plan = Plan(goal=case.instruction, tasks=(task,))
    job = RunJob(RUN, bench.request(case.instruction, placed), team, candidate.settings, plan)
    report = await Session(job, MemoryJournal(), bench.models).work()
    if not report.outcomes:
        return Tried(checks=(scorers.check("status", False, report.answer),), usage=report.usage)
    outcome = report.outcomes[0]
    if (untried := _fault_untried(outcome.error)) is not None:
        return Tried(error=untried, usage=report.usage)
    answer = outcome.output or outcome.summary
    ended = scorers.check("status", outcome.status in case.expect.status, f"it is {outcome.status}: {outcome.summary}")
    tried = Tried(
        checks=(ended, *scorers.check_worker(case.expect, outcome.output, outcome.summary)),
        metrics={} if outcome.confidence is None else {"confidence": float(outcome.confidence)},
        answer=short(scorers.text_of(answer), _MOST_ANSWER),
        usage=report.usage,
    )
    return await bench.finish(tried, case.expect.rubric, case.instruction, answer) if ended.passed else tried


async def _synthesis(case: SynthesisCase, bench: _Bench) -> Tried:
    candidate, text = bench.candidate, case.request or case.plan.goal
    given = {outcome.task: _stamp_sources(outcome) for outcome in case.outcomes}
    outcomes = {task.id: given[task.id] for task in case.plan.tasks}
    scrutiny = candidate.team.scrutiny

    async with bench.engine() as engine:
        made = await write_answer(
            bench.request(text),
            case.plan,
            outcomes,
            engine,
            candidate.role_model(bench.models, "synthesizer"),
            candidate.settings.deadline_s,
            judge=candidate.role_model(bench.models, "judge"),
            critic=candidate.role_model(bench.models, "critic") if scrutiny.critic else None,
            rounds=scrutiny.rounds,
            rater=candidate.role_model(bench.models, "scorer") if scrutiny.rate_findings else None,
            examiner=candidate.role_model(bench.models, "scorer", "large"),
        )
    assert isinstance(made, Synthesis)
    # A synthesizer that fails leaves a listing made by code, which says nothing about the model.
    if bench.faults:
        return Tried(error=bench.faults[0], usage=made.usage)
    tried = Tried(
        checks=scorers.check_answer(case.expect, made.answer, made.provenance, made.contradictions, made.gaps),
        metrics=_figures(made.gaps, len(made.contradictions), len(made.provenance.problems)),
        answer=short(made.answer, _MOST_ANSWER),
        usage=made.usage,
    )
    return await bench.finish(tried, case.expect.rubric, text, made.answer)


async def _run(case: RunCase, placed: Placed, bench: _Bench) -> Tried:
    candidate = bench.candidate
    door = Supervisor(candidate.team_ref, settings=candidate.settings)
    if candidate.is_plain:
        case = case.for_plain_call() or case
    report = await door.run(case.request, plan=case.plan, material=placed.material, single=candidate.is_plain)
    if report.status == "failed" and (untried := _fault_untried(report.error)) is not None:
        return Tried(error=untried, usage=report.usage, run=report.run)
    tried = Tried(
        checks=scorers.ran(case.expect, report),
        metrics=_run_figures(report),
        answer=short(report.answer, _MOST_ANSWER),
        usage=report.usage,
        run=report.run,
    )
    return await bench.finish(tried, case.expect.rubric, case.request, report.answer)


def _run_figures(report: Report) -> dict[str, float]:
    done = sum(outcome.ok for outcome in report.outcomes)
    return {
        "complete": float(report.status == "complete"),
        "tasks_done": done / len(report.outcomes) if report.outcomes else 0.0,
        **_figures(report.gaps, len(report.contradictions), len(report.provenance.problems)),
        "wall_seconds": report.timing.wall_s,
        # Calls that take no time, as those of a script, are not slower one after the other.
        "speedup": max(report.timing.speedup, 1.0),
    }


def _figures(gaps: Sequence[Gap], contradictions: int, problems: int) -> dict[str, float]:
    figures = {"gaps": len(gaps), "contradictions": contradictions, "citation_problems": problems}
    return {name: float(number) for name, number in figures.items()}


def _fault_untried(fault: Fault | None) -> Fault | None:
    return fault if fault is not None and fault.kind in UNTRIED else None


def _stamp_sources(outcome: Outcome) -> Outcome:
    """The outcome with its task among the sources of its claims and findings, as in a run."""

    def sources(given: Claim | Finding) -> tuple[str, ...]:
        return given.sources if outcome.task in given.sources else (outcome.task, *given.sources)

    claims = tuple(claim.model_copy(update={"sources": sources(claim)}) for claim in outcome.claims)
    findings = tuple(finding.model_copy(update={"sources": sources(finding)}) for finding in outcome.findings)
    return outcome.model_copy(update={"claims": claims, "findings": findings})
