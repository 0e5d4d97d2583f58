"""A world -> one run played to its end over all its sessions, with every invariant of the kernel checked on the way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chargehand.engine.engine_session import DRAIN_S
from chargehand.events import Event
from chargehand.events.body import BODIES, fields_of, shape_problem
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import Replay, replay
from chargehand.runs.session import Session
from chargehand.synthesizer.synthesis import keeps_open
from chargehand.testing import run_virtual
from chargehand.trace import RunState, fold
from chargehand.values.key import within
from chargehand.values.outcome import Outcome
from chargehand.values.recovery_policy import MOST_ATTEMPTS
from chargehand.values.report import Report
from tests.simulation.world import CURRENT, EPOCH, RUN, Stop, World, idempotency_key

# Between the id of a task and those of the tasks it was split into.
PART = ".s."
FINISHED = ("complete", "partial", "failed")


@dataclass
class Played:
    """What is left when a run has ended."""

    report: Report
    store: MemoryStore
    interrupts: int = 0
    cuts: int = 0
    # By how much calls went over their estimates, as the report states it.
    short: int = 0
    # Virtual seconds of each session.
    seconds: list[float] = field(default_factory=list[float])

    @property
    def events(self) -> list[Event]:
        return list(MemoryJournal.read(self.store).events())


def play(world: World, stops: tuple[Stop, ...] | None = None, store: MemoryStore | None = None) -> Played:
    """Run the world's job until it is finished, stopping and resuming as the world has it."""
    played = Played(Report(run=RUN, request="", status="running", answer=""), store or MemoryStore())
    played.cuts = int(store is not None)  # a record that is handed in was cut, in another world
    for number, stop in enumerate((*(world.stops if stops is None else stops), Stop())):
        played.report = _session(world, played, stop, number)
        if stop.at is not None:
            played.interrupts += 1
        if stop.cut is not None:
            played.cuts += 1
            del played.store.events[max(1, int(len(played.store.events) * stop.cut)) :]
        elif played.report.status in FINISHED:
            break
    _check_run(world, played)
    return played


def _session(world: World, played: Played, stop: Stop, number: int) -> Report:
    before = list(MemoryJournal.read(played.store).events())
    known, live, view = replay(before), replay(before), fold(before)
    asked = len(world.asked)
    complaints: list[dict[str, Any]] = []

    def apply(event: Event) -> None:
        live.apply(event)
        view.apply(event)

    session = Session(
        world.job,
        MemoryJournal(played.store),
        world.models(),
        earlier=replay(before) if before else None,
        listeners=(apply,),
        wall_clock=lambda: EPOCH + 1000 * number + asyncio.get_running_loop().time(),
        chance=random.Random(f"{world.seed}/{number}"),
        person=world.person if world.request.ask and not stop.away else None,
    )

    async def work() -> Report:
        loop = asyncio.get_running_loop()
        CURRENT.set(world)
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        timers = [loop.call_later(at, session.interrupt) for at in _times(stop)]
        try:
            return await session.work()
        finally:
            for timer in timers:
                timer.cancel()

    report, seconds = run_virtual(work())
    played.seconds.append(seconds)
    assert not complaints, complaints
    _check_nothing_is_left(session, world, played)
    _check_decisions(known, played.events[len(before) :])
    _check_nothing_was_repeated(known, world, asked)
    _check_folds(played.events, live, view)
    return report


def _times(stop: Stop) -> list[float]:
    if stop.at is None:
        return []
    return [stop.at] if stop.again is None else [stop.at, stop.at + stop.again]


def _check_nothing_is_left(session: Session, world: World, played: Played) -> None:
    engine = session._engine  # pyright: ignore[reportPrivateUsage]
    assert engine is not None
    assert engine.ledger.open == {}
    assert engine._slots.held == 0  # pyright: ignore[reportPrivateUsage]
    assert engine._tools.flights == {}  # pyright: ignore[reportPrivateUsage]
    assert engine._activity.under_way == 0  # pyright: ignore[reportPrivateUsage]
    assert world.in_flight == 0
    played.short = engine.ledger.short


def _check_decisions(known: Replay, events: list[Event]) -> None:
    """What was decided is not decided again, and an attempt that ended is not made again."""
    fresh = [event.data for event in events if event.kind == "decision"]
    again = [data for data in fresh if data["key"] in known.decisions and data["decision"] in ("recovery", "route")]
    assert again == []
    chosen = {key for key, value in known.decisions.items() if key.endswith("/best") and value["chosen"] is not None}
    assert chosen.isdisjoint(data["key"] for data in fresh)
    begun = {f"{event.task}/{event.attempt}" for event in events if event.kind == "attempt_started"}
    assert begun.isdisjoint(known.attempted)
    assert {event.task for event in events if event.kind == "attempt_started"}.isdisjoint(known.ended)


def _check_nothing_was_repeated(known: Replay, world: World, asked: int) -> None:
    """No committed call is made again."""
    committed = {idempotency_key(RUN, key, effect.fingerprint) for key, effect in known.committed.items()}
    assert committed.isdisjoint(world.asked[asked:])


def _check_folds(events: list[Event], live: Replay, view: RunState) -> None:
    assert replay(events) == live
    assert fold(events) == view


def _check_run(world: World, played: Played) -> None:
    events, report = played.events, played.report
    assert report.status in FINISHED, report.status
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    for event in events:
        kind = BODIES[event.kind]
        assert (event.run, shape_problem(kind, event.data)) == (RUN, "")
        assert set(event.data) <= set(fields_of(kind))
    assert world.most_in_flight <= world.request.max_concurrent
    assert Report.model_validate(report.to_json()) == report
    _check_once(events)
    _check_order([event for event in events if "/" not in (event.task or "")], report)
    _check_nested(events)
    _check_attempts(world, events, report)
    _check_status(report, played.events)
    _check_time(world, played)
    _check_usage(world, played)


def _check_once(events: list[Event]) -> None:
    """A `once` call begins at most once in a run, whatever happened to it."""
    begun = Counter(
        event.data["key"] for event in events if event.kind == "tool_called" and event.data["effect"] == "once"
    )
    assert all(count == 1 for count in begun.values()), begun


def _check_order(events: list[Event], report: Report) -> None:
    """Each task ends once, no task starts before those it depends on ended, a skipped one never starts."""
    ended = {event.task: event.seq for event in events if event.kind == "task_ended"}
    endings = Counter(event.task for event in events if event.kind == "task_ended")
    if report.plan is None:
        assert not endings
        assert report.outcomes == ()
        return
    parts = {id for id in endings if id is not None and PART in id}
    assert set(endings) - parts == {task.id for task in report.plan.tasks}
    assert set(endings.values()) == {1}
    assert [outcome.task for outcome in report.outcomes] == [task.id for task in report.plan.tasks]
    depends_on = {task.id: task.depends_on for task in report.plan.tasks}
    started: set[str] = set()
    for event in events:
        if event.kind == "attempt_started":
            assert event.task is not None
            whole = event.task.partition(PART)[0]
            started.add(whole)
            assert all(ended[dependency] < event.seq for dependency in depends_on[whole])
    skipped = {outcome.task for outcome in report.outcomes if outcome.status == "skipped"}
    assert started.isdisjoint(skipped)
    # One that waits for a worker who is out may see its time run out before it starts.
    late = [o for o in report.outcomes if o.attempts == 0 and o.error and o.error.kind in ("timeout", "deadline")]
    assert started | {outcome.task for outcome in late} | skipped == set(depends_on)
    _check_skips({outcome.task: outcome for outcome in report.outcomes}, report)


def _check_nested(events: list[Event]) -> None:
    """The tasks of a nested team end once each and in order, inside of the attempt they are of, under its own plan."""
    plans = {event.data["within"]: event.data["plan"] for event in events if _is_nested_plan(event)}
    ended = {event.task: event.seq for event in events if event.kind == "task_ended"}
    attempts: dict[str, int] = {}
    for event in events:
        key = f"{event.task}/{event.attempt}"
        if event.kind == "attempt_started":
            attempts[key] = event.seq
        scope = (event.task or "").rpartition("/")[0]
        if event.kind == "attempt_started" and scope:
            assert scope in attempts, "begun outside of the attempt it is of"
            assert attempts[scope] < event.seq
            tasks = {within(scope, task["id"]): task for task in plans[scope]["tasks"]}
            task = tasks.get((event.task or "").partition(PART)[0])
            needs = [within(scope, each) for each in task["depends_on"]] if task else []
            assert all(ended[each] < event.seq for each in needs)
    endings = Counter(event.task for event in events if event.kind == "task_ended")
    assert set(endings.values()) <= {1}


def _is_nested_plan(event: Event) -> bool:
    return event.kind == "plan_approved" and bool(event.data.get("within"))


def _check_attempts(world: World, events: list[Event], report: Report) -> None:
    """At most three attempts a task, one after the other, each after a decision; at most one split; few workers."""
    most = world.team.recovery.attempts
    numbers: dict[str, list[int]] = {}
    ended: dict[str, Event] = {}
    decided: dict[str, list[str]] = {}
    for event in events:
        task = event.task or ""
        match event.kind:
            case "attempt_started":
                tried = numbers.setdefault(task, [])
                if event.attempt not in tried:
                    assert event.attempt == len(tried) + 1 <= (most if "/" not in task else MOST_ATTEMPTS)
                    assert not tried or f"{task}/{len(tried)}" in decided
                    tried.append(event.attempt)
            case "attempt_ended" if event.data["status"] == "skipped":
                numbers[task].remove(event.attempt or 0)  # its worker was taken out before anything was sent
            case "attempt_ended":
                ended[f"{task}/{event.attempt}"] = event
            case "decision" if event.data["decision"] == "recovery":
                assert f"{task}/{event.attempt}" in ended, "decided before the attempt ended"
                decided.setdefault(f"{task}/{event.attempt}", []).append(event.data["value"]["kind"])
                assert event.data["value"]["reason"]
            case _:
                pass
    for outcome in report.outcomes:
        assert outcome.attempts == sum(key.rpartition("/")[0] == outcome.task for key in ended)
    for task in numbers:
        kinds = [kind for key, made in decided.items() if key.rpartition("/")[0] == task for kind in made]
        assert kinds.count("split") <= 1
        assert kinds.count("ask") <= world.request.ask, "asked once, and only where a person may be asked"
        assert PART not in task or "split" not in kinds, "parts are not split again"
    _check_reassignments(events, decided)


def _check_reassignments(events: list[Event], decided: dict[str, list[str]]) -> None:
    """A task is never given to a worker that failed it, but by trying the same one again."""
    workers: dict[str, list[str]] = {}
    # Whose worker is taken out before anything is sent is begun again, by another one or later.
    last = {(event.task or "", event.attempt or 0): event for event in events if event.kind == "attempt_started"}
    for (task, attempt), event in sorted(last.items()):
        before, worker = workers.setdefault(task, []), event.data["worker"]
        assert worker not in before or before[-1] == worker, f"{task} went back to {worker}"
        if before and "reassign" in decided[f"{task}/{attempt - 1}"]:
            assert worker not in before
        before.append(worker)


def _check_skips(outcomes: dict[str, Outcome], report: Report) -> None:
    assert report.plan is not None
    for task in report.plan.tasks:
        missing = [id for id in task.depends_on if not outcomes[id].ok]
        skipped = bool(missing) and task.on_dependency_failure == "skip"
        assert (outcomes[task.id].status == "skipped") == skipped
        assert set(outcomes[task.id].because) == (set(missing) if skipped else set())


def _check_status(report: Report, events: list[Event]) -> None:
    """complete = every task done or replaced, no open gap, nothing cited in vain, every result accounted for by an
    answer that cites; failed = none done; else partial.
    """
    done = [outcome.task for outcome in report.outcomes if outcome.status == "done"]
    added = [event.data["fills"] for event in events if event.kind == "extension" and not event.data.get("within")]
    filled = {gap for fills in added for gap, by in fills.items() if set(by) <= set(done)}
    undone = {outcome.task for outcome in report.outcomes} - set(done) - filled
    assert undone <= {gap.task for gap in report.gaps}
    if not done:
        assert report.status == "failed"
    elif undone or report.gaps or keeps_open(report.provenance) or not report.provenance.accounts_for_all:
        assert report.status == "partial"
    else:
        assert report.status == "complete"


def _check_time(world: World, played: Played) -> None:
    deadline = world.request.deadline_s
    if deadline is None:
        return
    # Calls in flight get some seconds to commit each time somebody interrupts the run.
    allowed = deadline + DRAIN_S * played.interrupts + 0.001
    assert played.report.timing.wall_s <= allowed
    # The time people take is theirs.
    assert played.cuts or world.request.ask or sum(played.seconds) <= allowed


def _check_usage(world: World, played: Played) -> None:
    """The report counts every reply on the record, and the world never saw more tokens than the run may use."""
    replies = [e for e in played.events if e.kind == "model_replied" and e.data["result"].get("sent", True)]
    # Calls that were sent and broken off: nobody knows what they used, so they count at the most.
    unknown = [e.data["tokens"] for e in played.events if e.kind == "budget_settled" and e.data["estimated"]]
    usage = played.report.usage
    doubted = [e.data["key"] for e in replies if (e.data["result"].get("reply") or {}).get("usage_problem")]
    assert not doubted, "the world tells no lies"
    assert sum(_tokens(replies)) <= usage.tokens <= sum(_tokens(replies)) + sum(unknown)
    assert len(replies) <= usage.calls <= len(replies) + len(unknown)
    if not played.cuts:
        _check_bill(world, played)


def _check_bill(world: World, played: Played) -> None:
    """What was billed for each call is what was settled for it, and all that was settled is within the budget.

    Of a call that was broken off or told no usage nobody but the world knows what it used: that one is settled at what
    was set aside, and by how much it was estimated too low is the only part of the bill that may be over the budget.
    """
    settled: Counter[str] = Counter()
    unknown: set[str] = set()
    for event in played.events:
        if event.kind == "budget_settled":
            settled[event.data["key"]] += event.data["tokens"]
            if event.data["estimated"]:
                unknown.add(event.data["key"])
    begun = {(e.data["key"], e.data["fingerprint"]) for e in played.events if e.kind == "model_called"}
    billed: Counter[str] = Counter()
    for key, fingerprint in begun:
        for sent in (key, f"{key}/hedge"):
            billed[sent] += world.billed[idempotency_key(RUN, sent, fingerprint)]
    assert billed.total() == world.billed.total(), "a call was sent that is not on the record"
    told = (billed.keys() | settled.keys()) - unknown
    assert {key: billed[key] for key in told} == {key: settled[key] for key in told}
    stated = f"Calls used {played.short:,} tokens more than was estimated before they were made."
    assert (stated in played.report.notes) == (played.short > 0)
    if world.request.budget.tokens is not None:
        assert settled.total() <= world.request.budget.tokens + played.short


def _tokens(replies: list[Event]) -> tuple[int, int]:
    results = [event.data["result"] for event in replies]
    counts = [(result.get("reply") or {}).get("usage") or result.get("estimated") or {} for result in results]
    return sum(c.get("input_tokens", 0) for c in counts), sum(c.get("output_tokens", 0) for c in counts)
