"""Interchangeable workers: who gets the next task, and that choosing beats assigning on a slow member."""

from __future__ import annotations

import random
from typing import Any

import pytest

from chargehand.dispatcher.pool import Load, choose
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryStore
from chargehand.record.replay import replay
from chargehand.team import Team, Worker
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.plan import Plan
from tests.flows import Flow, Said, by_task, task, tasks
from tests.kernel import result, stored

MEMBERS = ("m1", "m2", "m3", "m4")


@pytest.mark.parametrize(
    ("loads", "room", "chosen"),
    [
        ({"a": Load(), "b": Load()}, 2, "a"),
        ({"a": Load(1), "b": Load()}, 2, "b"),
        ({"a": Load(0, 9.0), "b": Load(0, 1.0)}, 2, "b"),
        ({"a": Load(2, 1.0), "b": Load(0, 9.0)}, 4, "a"),
        ({"a": Load(0, 1.0, 0.9), "b": Load(0, 2.0, 0.0)}, 4, "b"),
        ({"a": Load(0, 5.0), "b": Load()}, 4, "a"),
        ({"a": Load(1, 5.0), "b": Load()}, 4, "b"),
        ({"a": Load(2, 1.0), "b": Load(2, 1.0)}, 2, None),
        ({"a": Load(2, 1.0), "b": Load(1, 50.0)}, 2, "b"),
    ],
)
def test_the_least_expected_wait_is_chosen(loads: dict[str, Load], room: int, chosen: str | None) -> None:
    """By tasks under way, recent seconds and errors; who is unknown counts as the fastest; nobody without room."""
    assert choose(loads, room) == chosen


def test_what_ended_lately_counts_most() -> None:
    """A member that has become fast again is taken for fast soon."""
    load = Load()
    for seconds in (10.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        load.record_end(seconds)
    assert load.seconds is not None
    assert load.seconds < 3
    load.record_end(None)
    assert 0 < load.errors < 0.5


def pool(**fields: Any) -> Team:
    return Team([Worker(name, "Looks things up", pool="look") for name in MEMBERS], **fields)


def paced(seed: int, slow: float) -> Any:
    """Members take about a second; the first takes `slow` times as long."""

    async def talk(call: ModelCall, who: Attribution) -> Said:
        import asyncio

        chance = random.Random(f"{seed}/{who.task}")
        await asyncio.sleep(chance.uniform(0.5, 1.5) * (slow if call.worker == "m1" else 1.0))
        return result(f"RESULT-{who.task}") if call.role == "worker" else {"answer": "All."}

    return talk


def fan(number: int, worker: Any) -> Plan:
    return tasks(*(task(f"t{n}", worker=worker(n)) for n in range(number)))


def latencies(run: Flow) -> list[float]:
    """Seconds from ready to ended, of each task."""
    ready = {event.task: event.at for event in run.events if event.kind == "task_ready"}
    return sorted(event.at - ready[event.task] for event in run.events if event.kind == "task_ended")


def p95(values: list[float]) -> float:
    return values[int(0.95 * (len(values) - 1))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_choosing_beats_assigning_with_one_slow_member(seed: int) -> None:
    """80 tasks, 8 at once, one of four members ten times as slow: the 95th percentile is well below round robin's."""

    def run(worker: Any) -> Flow:
        flow = Flow(paced(seed, 10.0), fan(80, worker), team=pool(), seconds=0.0, request={"max_concurrent": 8})
        report = flow.run()
        assert all(outcome.ok for outcome in report.outcomes)
        return flow

    chosen, assigned = run(lambda n: "look"), run(lambda n: MEMBERS[n % len(MEMBERS)])
    assert p95(latencies(chosen)) < 0.6 * p95(latencies(assigned))
    slow = [event for event in chosen.events if event.kind == "attempt_started" and event.data["worker"] == "m1"]
    assert len(slow) < 20


def test_with_equal_members_choosing_costs_nothing() -> None:
    """No worse than round robin."""

    def run(worker: Any) -> float:
        flow = Flow(paced(3, 1.0), fan(80, worker), team=pool(), seconds=0.0, request={"max_concurrent": 8})
        flow.run()
        return p95(latencies(flow))

    assert run(lambda n: "look") <= 1.1 * run(lambda n: MEMBERS[n % len(MEMBERS)])


def test_the_choice_is_on_the_record_and_kept() -> None:
    """Before the attempt begins; a resumed run goes on with who was chosen."""
    whole = Flow(paced(1, 2.0), fan(6, lambda n: "look"), team=pool(), seconds=0.0)
    whole.run()
    chosen = whole.decisions("route")
    assert set(chosen) == {f"t{n}/1/route" for n in range(6)}
    assert all(value["pool"] == "look" and value["worker"] in MEMBERS for value in chosen.values())
    for kept in range(2, len(whole.events), 4):
        cut = Flow(paced(1, 2.0), fan(6, lambda n: "look"), team=pool(), seconds=0.0)
        cut.store = MemoryStore(whole.store.events[:kept], dict(whole.store.blobs))
        known = replay(stored(cut.store)).decisions
        report = cut.run(number=1)
        for n, outcome in enumerate(report.outcomes):
            if f"t{n}/1/route" in known:
                assert outcome.worker == known[f"t{n}/1/route"]["worker"]


def test_a_member_that_fails_is_replaced_by_another_of_the_pool() -> None:
    """The ladder's next worker is the pool's own."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        return Reply(text="No.", stop="refused") if call.worker == "m1" else result("fine")

    team = pool()
    run = Flow(talk, tasks(task("a", worker="look"), task("b", worker="m2")), team=team)
    outcome = by_task(run.run())["a"]
    assert outcome.ok
    assert outcome.worker in MEMBERS[1:]


def test_a_pool_is_one_line_to_the_planner() -> None:
    """It chooses the pool, not a member."""

    def talk(call: ModelCall, who: Attribution) -> Said:
        if call.role == "planner":
            told = {"instruction": "Look it up well.", "success_criterion": "Found.", "depends_on": []}
            return {"goal": "g", "tasks": [{"id": "t1", "worker": "look", **told}]}
        return result("found")

    run = Flow(talk, None, team=Team([*pool().workers, Worker("writer", "Writes")]))
    assert run.run().status == "complete"
    said = run.calls("planner")[0].messages[0].text
    assert "- look: Looks things up" in said
    assert "- m1" not in said


def test_a_task_that_waits_at_its_pool_still_has_a_deadline() -> None:
    """It fails on time with nothing sent."""
    run = Flow(paced(1, 1.0), fan(40, lambda n: "look"), team=pool(), seconds=2.0, request={"deadline_s": 10.0})
    report = run.run()
    assert report.timing.wall_s <= 10.0
    late = [o for o in report.outcomes if o.error is not None]
    assert late
    assert {o.error.kind for o in late if o.error} == {"deadline"}
