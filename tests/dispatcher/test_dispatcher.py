"""Dataflow as facts on virtual time: what runs when, what a failure touches, what a worker sees."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from chargehand.engine.port import Engine
from chargehand.errors import ModelError, StorageError
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.record.journal import Journal
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.testing import run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.outcome import Outcome, done
from chargehand.values.plan import Plan, Task, Tier
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.workers import Assignment
from tests.flows import Flow, works
from tests.flows import task as flow_task
from tests.flows import tasks as flow_tasks
from tests.kernel import MODEL, FunctionModel, after, engine, result, run_plan, stored

# task -> (start, end) in virtual seconds
Times = dict[str, tuple[float, float]]


@dataclass
class Timed:
    """A worker that takes the seconds its task's context says, and fails or breaks where it says so."""

    times: Times = field(default_factory=dict[str, tuple[float, float]])
    started: list[str] = field(default_factory=list[str])
    tier: Tier = "medium"
    check: str | None = None
    output_schema: dict[str, Any] | None = None
    waits_for_person: bool = False

    def model_for(self, tier: Tier | None) -> str | None:
        return None

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        task = assignment.task
        began = engine.clock.now()
        self.started.append(task.id)
        seconds: Any = task.context
        if isinstance(seconds, Exception):
            raise seconds
        await engine.clock.sleep(seconds)
        self.times[task.id] = (began, engine.clock.now())
        return done(task.id, "timed", summary="Done.", output=sorted(assignment.inputs))


def task(id: str, seconds: Any = 1.0, *depends_on: str, **fields: Any) -> Task:
    return Task(
        id=id, worker="timed", instruction="Take some time.", context=seconds, success_criterion="It is over.",
        depends_on=depends_on, **fields,
    )  # fmt: skip


def run(
    *tasks: Task, stop_at: float | None = None, worker: Timed | None = None
) -> tuple[dict[str, Outcome], Timed, float]:
    timed = worker or Timed()

    async def main() -> dict[str, Outcome]:
        async with engine(FunctionModel(after(0))) as local:
            return await run_plan(Plan(tasks=tasks), {"timed": timed}, local, stop_at=stop_at)

    outcomes, seconds = run_virtual(main())
    return outcomes, timed, seconds


def test_two_chains_do_not_wait_for_each_other() -> None:
    """1.0 + 0.1 s beside 0.1 + 1.0 s take 1.1 s: there are no waves."""
    _, timed, seconds = run(task("a1", 1.0), task("a2", 0.1, "a1"), task("b1", 0.1), task("b2", 1.0, "b1"))
    assert seconds == pytest.approx(1.1)
    assert timed.times["b2"] == pytest.approx((0.1, 1.1))


def test_a_join_waits_for_all_it_depends_on() -> None:
    """A task with three dependencies starts when the slowest is over, whatever their order."""
    _, timed, _ = run(task("j", 1.0, "a", "b", "c"), task("c", 0.5), task("b", 3.0), task("a", 1.0))
    assert timed.times["j"] == pytest.approx((3.0, 4.0))


def test_a_diamond_runs_its_end_once() -> None:
    """Two paths lead to d and d runs once, with both results."""
    outcomes, timed, seconds = run(task("a"), task("b", 1.0, "a"), task("c", 2.0, "a"), task("d", 1.0, "b", "c"))
    assert timed.started.count("d") == 1
    assert outcomes["d"].output == ["b", "c"]
    assert seconds == pytest.approx(4)


def test_a_failure_does_not_disturb_its_siblings() -> None:
    """A worker's bug is its own task's failure; what runs beside it ends as if nothing had happened."""
    outcomes, timed, seconds = run(task("bad", ZeroDivisionError("oops")), task("good", 5.0), task("next", 1.0, "good"))
    assert outcomes["bad"].error is not None
    assert outcomes["bad"].error.kind == "internal"
    assert "oops" in outcomes["bad"].summary
    assert outcomes["next"].ok
    assert seconds == pytest.approx(6)
    assert timed.times["good"] == pytest.approx((0, 5))


def test_dependents_of_a_failure_are_skipped_or_proceed_as_they_say() -> None:
    """Skipping goes down the chain and names its cause; a task that proceeds is given the failed outcome."""
    outcomes, timed, _ = run(
        task("bad", ZeroDivisionError()),
        task("skips", 1.0, "bad"),
        task("skips_too", 1.0, "skips"),
        task("proceeds", 1.0, "bad", "skips", on_dependency_failure="proceed"),
    )
    assert [outcomes[id].status for id in outcomes] == ["failed", "skipped", "skipped", "done"]
    assert outcomes["skips_too"].because == ("skips",)
    assert outcomes["proceeds"].output == ["bad", "skips"]
    assert timed.started == ["bad", "bad", "proceeds"], "a bug is tried once more"


def test_a_timeout_fires_on_time() -> None:
    """Stopped at exactly its time; the others go on."""
    outcomes, _, seconds = run(task("slow", 60.0, timeout_s=2.5), task("other", 4.0))
    assert outcomes["slow"].error is not None
    assert outcomes["slow"].error.kind == "timeout"
    assert outcomes["other"].ok
    assert seconds == pytest.approx(4)
    assert run(task("slow", 60.0, timeout_s=2.5))[2] == pytest.approx(2.5)
    assert run(task("slow", 60.0, budget={"seconds": 1.5}))[2] == pytest.approx(1.5)


def test_a_workers_own_timeout_error_is_not_the_tasks_timeout() -> None:
    """Only the clock of the attempt makes a timeout; an exception of that name is a bug like any other."""
    outcomes, _, _ = run(task("odd", TimeoutError("mine"), timeout_s=10))
    assert outcomes["odd"].error is not None
    assert outcomes["odd"].error.kind == "internal"


def test_at_the_deadline_what_is_done_stays_done() -> None:
    """Work under way fails with `deadline`, what depends on it follows its rule, what was done is kept."""
    outcomes, timed, seconds = run(task("quick", 1.0), task("slow", 60.0), task("after", 1.0, "slow"), stop_at=3)
    assert [outcomes[id].status for id in outcomes] == ["done", "failed", "skipped"]
    assert outcomes["slow"].error is not None
    assert outcomes["slow"].error.kind == "deadline"
    assert seconds == pytest.approx(3)
    assert timed.started == ["quick", "slow"]


def test_the_records_own_errors_end_the_run() -> None:
    """A full disk is nobody's task failure: it goes through to the caller."""
    with pytest.raises(ExceptionGroup) as raised:
        run(task("a", StorageError("The disk is full.")), task("b", 60.0))
    assert raised.group_contains(StorageError)


# -- whole runs ------------------------------------------------------------------------------------------------------


def session(plan: Plan | None, model: FunctionModel, journal: Journal | None = None, **request: Any) -> Session:
    asked = Request(text="THE-REQUEST", **request)
    settings = Settings(home="unused", model=MODEL)
    job = RunJob("run", asked, Team([Worker("clerk", "Does clerical work")]), settings, plan)
    return Session(job, journal or MemoryJournal(), Models({}, {}, {"model": model}))


def clerical(id: str, *depends_on: str, **fields: Any) -> Task:
    return Task(
        id=id, worker="clerk", instruction=f"INSTRUCTION-{id} for one.", context=f"CONTEXT-{id}",
        success_criterion=f"CRITERION-{id}.", depends_on=depends_on, **fields,
    )  # fmt: skip


def answers(by_task: Mapping[str, Any]) -> FunctionModel:
    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(1)
        said = by_task.get(attribution.task or "", f"RESULT-{attribution.task}")
        if isinstance(said, Exception):
            raise said
        usage = TokenCount(input_tokens=100, output_tokens=10)
        return Reply(text=result(said) if attribution.task else '{"answer": "All in all. [a]"}', usage=usage)

    return FunctionModel(answer)


def seen_by(model: FunctionModel, task: str) -> str:
    return "\n".join(m.text for call, _, who in model.asked if who.task == task for m in call.messages)


def test_a_worker_sees_its_task_and_its_direct_dependencies_results_only() -> None:
    """No other task's words, no result further up, and never the request."""
    model = answers({})
    plan = Plan(goal="THE-GOAL", tasks=(clerical("a"), clerical("b", "a"), clerical("c", "b"), clerical("x")))
    run_virtual(session(plan, model).work())
    seen = seen_by(model, "c")
    assert all(words in seen for words in ("INSTRUCTION-c", "CONTEXT-c", "CRITERION-c", "RESULT-b"))
    hidden = (
        "THE-REQUEST",
        "THE-GOAL",
        "RESULT-a",
        "RESULT-x",
        *(f"{w}-{t}" for w in ("INSTRUCTION", "CONTEXT", "CRITERION") for t in "abx"),
    )
    assert [words for words in hidden if words in seen] == []


def test_a_task_that_proceeds_is_told_the_gap() -> None:
    """The prompt names the missing result and why it is missing."""
    model = answers({"a": ModelError("bad_request", "THE-REASON")})
    plan = Plan(goal="g", tasks=(clerical("a"), clerical("b", "a", on_dependency_failure="proceed")))
    report, _ = run_virtual(session(plan, model).work())
    seen = seen_by(model, "b")
    assert "Result of task a: missing." in seen
    assert "THE-REASON" in seen
    assert report.status == "partial"


def test_a_deadline_gives_a_partial_report_in_time() -> None:
    """Workers stop early enough for a synthesis; the answer is there at the deadline with what was done."""

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        await asyncio.sleep(60 if attribution.task == "b" else 1)
        return Reply(text=result("fine") if attribution.task else '{"answer": "Half of it. [a]"}')

    plan = Plan(goal="g", tasks=(clerical("a"), clerical("b")))
    report, seconds = run_virtual(session(plan, FunctionModel(answer), deadline_s=10).work())
    assert report.status == "partial"
    assert report.answer == "Half of it. [a]"
    assert seconds == pytest.approx(9)
    assert [gap.task for gap in report.gaps] == ["b"]


def test_what_a_stopped_worker_used_is_in_the_report() -> None:
    """Tokens of attempts that ran out of time are counted like all others, and so are the rewriter's."""

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        usage = TokenCount(input_tokens=70, output_tokens=7)
        if call.role == "refiner":
            return Reply(text='{"instruction": "Be quick."}', usage=TokenCount(input_tokens=100, output_tokens=5))
        if len(call.messages) > 2:
            await asyncio.sleep(60)
        return Reply(text='{"summary": "no result"}', usage=usage)

    plan = Plan(goal="g", tasks=(clerical("a", timeout_s=5),))
    report, seconds = run_virtual(session(plan, FunctionModel(answer)).work())
    assert report.outcomes[0].error is not None
    assert report.outcomes[0].error.kind == "timeout"
    assert report.outcomes[0].attempts == 3
    assert report.outcomes[0].usage.tokens == 3 * 77 + 2 * 105
    # The three calls that were broken off count at what was set aside for them, and the report says so.
    assert report.usage.tokens > report.outcomes[0].usage.tokens
    assert report.usage.calls == 3 * 2 + 2
    assert "3 calls were broken off" in report.notes[-1]
    assert seconds == pytest.approx(15)


def test_a_given_plan_is_on_disk_with_the_start_of_the_run() -> None:
    """However early the process dies, a run that has begun on the record knows its plan: the planner is never asked."""
    store = MemoryStore()
    sizes: list[int] = []

    class Watching(MemoryJournal):
        async def append(self, events: Any, blobs: Any) -> None:
            await super().append(events, blobs)
            sizes.append(len(store.events))

    plan = Plan(goal="g", tasks=(clerical("a"),))
    run_virtual(session(plan, answers({}), Watching(store)).work())
    first = [event.kind for event in stored(store)[: sizes[0]]]
    assert first[:3] == ["run_started", "plan_drafted", "plan_approved"]


def test_an_interrupted_run_lets_its_calls_commit_and_says_how_to_go_on() -> None:
    """Ctrl-C once: what is in flight is committed, nothing new begins, the report says interrupted."""
    store = MemoryStore()
    model = answers({})
    first = session(Plan(goal="g", tasks=(clerical("a"), clerical("b", "a"))), model, MemoryJournal(store))

    async def main() -> Report:
        asyncio.get_running_loop().call_later(0.5, first.interrupt)
        return await first.work()

    report, seconds = run_virtual(main())
    assert report.status == "interrupted"
    assert "esume" in report.answer
    assert seconds == pytest.approx(1)
    assert [who.task for _, _, who in model.asked] == ["a"]
    assert "model_replied" in [event.kind for event in stored(store)]


@pytest.mark.parametrize("kind", ["model_replied", "task_ended"])
def test_an_interruption_with_a_broken_record_does_not_hang(kind: str) -> None:
    """The disk fills up while the run is being stopped: the storage's error comes through."""
    plan = Plan(goal="g", tasks=(clerical("a"), clerical("b", "a")))

    class Full(MemoryJournal):
        async def append(self, events: Any, blobs: Any) -> None:
            if any(event.kind == kind for event in events):
                raise StorageError("The disk is full.")
            await super().append(events, blobs)

    stopped = session(plan, answers({}), Full())

    async def main() -> Report:
        asyncio.get_running_loop().call_later(0.5, stopped.interrupt)
        return await stopped.work()

    with pytest.raises(StorageError, match="disk is full"):
        run_virtual(main())


def test_equal_runs_that_are_stopped_left_different_records() -> None:
    """Calls in flight are broken off in plan order, not in that of a set of tasks."""
    ids = [f"t{number}" for number in range(1, 41)]
    flow = Flow(works, flow_tasks(*map(flow_task, ids)), request={"max_concurrent": 40}, seconds=100.0)
    assert flow.run(interrupt_at=1.0).status == "interrupted"
    assert [e.task for e in flow.events if e.kind == "budget_settled"] == ids


def test_a_task_that_became_ready_last_waits_for_all_that_were_ready_before() -> None:
    """Of tasks without a slot so far the first in the plan comes first; only "b" took its slot as "a" ended."""
    plan = flow_tasks(flow_task("a"), flow_task("after_a", "a"), flow_task("b"), flow_task("c"))
    flow = Flow(works, plan, request={"max_concurrent": 1}, seconds=1.0)
    assert flow.run().status == "complete"
    assert [e.task for e in flow.events if e.kind == "model_replied" and e.task] == ["a", "b", "after_a", "c"]
