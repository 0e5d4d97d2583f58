"""What several tasks have in common: workers that are taken out, failures that go down a graph, money, an outage."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models import Attribution
from chargehand.models.resolve import Models, Provider
from chargehand.record.memory_journal import MemoryJournal
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.team import Team, Worker
from chargehand.values.budget import SMALLEST_SHARE, Budget
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount
from chargehand.values.plan import Plan
from chargehand.values.recovery_policy import Policy
from chargehand.values.report import Report
from chargehand.values.request import Request
from tests.flows import Flow, Said, by_task, clerks, task, tasks, works
from tests.kernel import result
from tests.loopback import Answer, Seen, serve


def wide(count: int, **fields: Any) -> Plan:
    return tasks(*(task(f"t{n}", **fields) for n in range(1, count + 1)))


def broken_clerk(call: ModelCall, attribution: Attribution) -> Said:
    return ModelError("bad_request", "THE-SAME") if call.worker == "clerk" else works(call, attribution)


def with_stand_in() -> Team:
    return Team([Worker("clerk", "Does clerical work", fallback="second"), Worker("second", "Stands in")])


# -- workers that keep failing ---------------------------------------------------------------------------------------


def test_112_identical_failures_are_a_handful_of_calls() -> None:
    """A worker that fails everything is tried with what was in flight and once more; the rest costs nothing."""
    flow = Flow(broken_clerk, wide(112))
    report = flow.run()
    assert report.status == "failed"
    assert len(report.outcomes) == len(report.gaps) == 112
    assert len(flow.model.asked) <= 20
    assert flow.states("worker clerk") == ["open", "half_open", "open"]
    assert all("THE-SAME" in gap.reason for gap in report.gaps), "each gap names the cause"


def test_while_a_worker_is_out_its_fallback_takes_over() -> None:
    """Everything is done, the handing over is on the record with its reason, and few calls were in vain."""
    flow = Flow(broken_clerk, wide(60), with_stand_in())
    report = flow.run()
    assert all(outcome.ok for outcome in report.outcomes)
    assert sum(call.worker == "clerk" for call in flow.calls()) < 40
    routes = flow.decisions("route")
    assert routes
    assert set(map(str, routes.values())) == {"{'worker': 'second'}"}


def test_a_worker_that_is_back_is_used_again() -> None:
    """Out after three tasks, it is tried after a pause; when that goes well the rest is done by it."""
    left = [3]

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        left[0] -= call.role == "worker"
        return ModelError("bad_request", "no") if call.role == "worker" and left[0] >= 0 else works(call, attribution)

    flow = Flow(talk, wide(20), request={"max_concurrent": 3})
    report = flow.run()
    assert flow.states("worker clerk") == ["open", "half_open", "closed"]
    assert all(outcome.ok for outcome in report.outcomes)
    assert flow.took >= 15


def test_one_task_that_fails_again_and_again_takes_nobody_out() -> None:
    """Three different tasks in a row count, not three attempts at one."""
    flow = Flow(lambda c, w: ModelError("bad_request", "no") if w.task == "t1" else works(c, w), wide(3))
    flow.run()
    assert flow.states("worker clerk") == []


@pytest.mark.parametrize("kind", ["auth", "budget"])
def test_what_is_not_the_workers_doing_takes_nobody_out(kind: str) -> None:
    """A refused key and an empty purse say nothing about the worker."""
    request: dict[str, Any] = {"budget": {"tokens": 300}} if kind == "budget" else {}
    talk = works if kind == "budget" else lambda c, w: ModelError("auth", "wrong key")
    flow = Flow(talk, wide(10), request=request)  # type: ignore[arg-type]
    report = flow.run()
    assert flow.states("worker clerk") == []
    assert {outcome.error.kind for outcome in report.outcomes if outcome.error} == {kind}
    assert len(flow.model.asked) <= 8


def test_a_worker_that_is_out_stays_out_when_the_run_is_resumed() -> None:
    """Resume reads that from the record; reopening the failed tasks gives it another chance."""
    flow = Flow(broken_clerk, wide(30), request={"max_concurrent": 2})
    flow.run()
    verdicts = [n for n, e in enumerate(flow.events, 1) if e.kind == "decision" and e.data["decision"] == "breaker"]
    del flow.store.events[verdicts[-1] :]
    made = len(flow.model.asked)
    report = flow.run(number=1)
    assert report.status == "failed"
    assert len(flow.model.asked) == made


def test_a_crash_after_a_handing_over_stays_with_who_got_it() -> None:
    """The stand-in's attempts are found on the record: nothing committed is asked for again."""
    whole = Flow(broken_clerk, wide(8), with_stand_in(), request={"max_concurrent": 1})
    expected = whole.run()
    route = next(n for n, e in enumerate(whole.events, 1) if e.kind == "decision" and e.data["decision"] == "route")
    for kept in range(route, len(whole.events), 5):
        flow = Flow(broken_clerk, whole.plan, whole.team, request=whole.request)
        flow.store.events.extend(whole.store.events[:kept])
        flow.store.blobs.update(whole.store.blobs)
        handed = flow.decisions("route")
        report = flow.run(number=1)
        assert [o.ok for o in report.outcomes] == [o.ok for o in expected.outcomes], f"cut after event {kept}"
        workers = {(e.task, e.attempt): e.data["worker"] for e in flow.events if e.kind == "attempt_started"}
        for key in handed:
            task, attempt, _ = key.split("/")
            assert workers[task, int(attempt)] == "second"


# -- failures in a graph ---------------------------------------------------------------------------------------------


def cascade(on_dependency_failure: str) -> Flow:
    plan = tasks(
        task("T1"), task("T2"), task("T3", "T1"), task("T4", "T2"),
        task("T5", "T3", "T4", on_dependency_failure=on_dependency_failure),
    )  # fmt: skip

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role == "synthesizer":
            return {"answer": "T2 and T4 are there. [T2] [T4]"}
        return ModelError("bad_request", "T1-FAILS") if attribution.task == "T1" else works(call, attribution)

    return Flow(talk, plan)


@pytest.mark.parametrize("says", ["skip", "proceed"])
def test_a_failure_touches_only_what_needs_it(says: str) -> None:
    """T1 fails for good: T2 and T4 are in the answer, and T5 too where it proceeds with the gap stated."""
    flow = cascade(says)
    report = flow.run()
    status = {id: outcome.status for id, outcome in by_task(report).items()}
    five = "done" if says == "proceed" else "skipped"
    assert status == {"T1": "failed", "T2": "done", "T3": "skipped", "T4": "done", "T5": five}
    assert report.status == "partial"
    assert "[T2] [T4]" in report.answer
    gaps = {gap.task: gap for gap in report.gaps}
    assert set(gaps) == {id for id, was in status.items() if was != "done"}
    assert "T1-FAILS" in gaps["T1"].reason
    assert "T1" in gaps["T3"].reason
    assert all(gap.impact for gap in gaps.values())
    if says == "proceed":
        (seen,) = [call for call in flow.calls() if "the part T5" in call.messages[-1].text]
        assert "Result of task T3: missing" in seen.messages[-1].text
        assert "RESULT-T4" in seen.messages[-1].text


@pytest.mark.parametrize("says", ["skip", "proceed"])
def test_one_at_a_time_ends_too(says: str) -> None:
    """With a single slot the same tasks end the same way."""
    flow = cascade(says)
    flow.request = {"max_concurrent": 1}
    assert by_task(flow.run()).keys() == {"T1", "T2", "T3", "T4", "T5"}


# -- money -----------------------------------------------------------------------------------------------------------

OUTPUT = 600


def counting(spent: list[int], output: int = OUTPUT) -> Any:
    """Each call uses as much as it was estimated at and writes `output` tokens; `spent` grows with each."""

    async def talk(call: ModelCall, attribution: Attribution) -> Said:
        size = sum(len(m.packed) for m in call.messages) // 4
        spent.append(size + output)
        await asyncio.sleep(1)
        text = '{"answer": "As far as it goes [t1]."}' if call.role == "synthesizer" else result("word " * 300)
        return Reply(text=text, usage=TokenCount(input_tokens=size, output_tokens=output))

    return talk


def test_twenty_workers_on_half_the_money_keep_to_it() -> None:
    """They spend the budget and no more than the stated error, finish 40 % of the tasks, and there is a synthesis.

    (Others spend 6.7 times their limit here.)
    """
    spent: list[int] = []
    free = Flow(counting(spent), wide(20), request={"max_concurrent": 20})
    assert free.run().status in ("complete", "partial")
    whole = sum(spent)
    spent.clear()
    flow = Flow(counting(spent), wide(20), clerks(), request={"max_concurrent": 20, "budget": {"tokens": whole // 2}})
    report = flow.run()
    assert sum(spent) <= whole // 2 + OUTPUT + flow.short
    assert sum(outcome.ok for outcome in report.outcomes) >= 8
    assert flow.calls("synthesizer")
    assert report.answer.startswith("As far as it goes [t1].")
    assert report.status == "partial"
    denied = [outcome for outcome in report.outcomes if not outcome.ok]
    assert {outcome.error.kind for outcome in denied if outcome.error} == {"budget"}
    assert {gap.task for gap in report.gaps} >= {outcome.task for outcome in denied}


def over_http(spent: list[int], budget: int | None) -> tuple[Report, int]:
    """The same over real HTTP: the report, and the estimation error it states."""

    def handler(seen: Seen) -> Answer:
        size = len(json.dumps(seen.body["messages"])) // 4
        spent.append(size + OUTPUT)
        text = '{"answer": "As far as it goes [t1]."}' if seen.role == "synthesizer" else result("word " * 300)
        return Answer(text=text, usage=(size, OUTPUT, 0), delay=0.02)

    async def main() -> tuple[Report, int]:
        async with serve(handler) as server:
            local = Provider(name="local", base_url=f"{server.url}/v1", wire="openai")
            models = Models({"local": local}, {})
            request = Request(text="The request.", max_concurrent=20, budget=Budget(tokens=budget))
            job = RunJob("run", request, clerks(), Settings(home="unused", model="local:model"), wide(20))
            session = Session(job, MemoryJournal(), models)
            try:
                report = await session.work()
            finally:
                await models.close()
            (note,) = [note for note in report.notes if "more than was estimated" in note] or ["0"]
            return report, int("".join(c for c in note if c.isdigit()))

    return asyncio.run(main())


def test_twenty_workers_on_half_the_money_keep_to_it_over_http() -> None:
    """With real connections and a provider that counts in its own way: what goes over is stated in the report."""
    spent: list[int] = []
    over_http(spent, None)
    half = sum(spent) // 2
    spent.clear()
    report, error = over_http(spent, half)
    assert sum(spent) <= half + OUTPUT + error
    assert sum(outcome.ok for outcome in report.outcomes) >= 8
    assert report.answer.startswith("As far as it goes [t1].")
    assert report.status == "partial"


def test_a_task_over_its_own_budget_is_a_gap_and_nobody_elses() -> None:
    """What it may not spend is there for the others."""
    plan = tasks(task("a", budget={"tokens": 300}), task("b"))
    report = Flow(works, plan).run()
    outcomes = by_task(report)
    assert outcomes["a"].error is not None
    assert outcomes["a"].error.kind == "budget"
    assert "task a" in outcomes["a"].summary
    assert outcomes["b"].ok


def test_no_attempt_is_made_that_cannot_be_paid() -> None:
    """With nothing left the ladder gives up, and says that it is the budget."""

    async def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role != "worker":
            return works(call, attribution)
        return Reply(text="", usage=TokenCount(input_tokens=2_000, output_tokens=2_000))

    flow = Flow(talk, tasks(task("a")), request={"budget": {"tokens": 8_000 + SMALLEST_SHARE}})
    report = flow.run()
    assert report.outcomes[0].attempts == 1
    (decision,) = flow.decisions().values()
    assert decision["kind"] == "give_up"
    assert "budget" in decision["reason"]


# -- an outage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["connection", "overloaded", "timeout"])
def test_an_outage_of_a_minute_is_bridged_by_the_fallback(kind: Any) -> None:
    """One provider is down for 60 s: everything is done by the worker on another, with fewer than 20 calls in vain."""
    wasted: Counter[str] = Counter()

    async def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.model == "scripted:medium" and asyncio.get_running_loop().time() < 60:
            wasted[call.model] += 1
            return ModelError(kind, "down")
        return works(call, attribution)

    team = Team(
        [
            Worker("clerk", "Does clerical work", fallback="second"),
            Worker("second", "Stands in", model="scripted:other"),
        ],
        recovery=Policy(),
    )
    flow = Flow(talk, wide(60), team)
    report = flow.run()
    assert all(outcome.ok for outcome in report.outcomes), Counter(o.summary for o in report.outcomes if not o.ok)
    assert wasted.total() < 20
    assert flow.took < math.inf
