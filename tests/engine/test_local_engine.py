"""What the local engine promises about effects, the record, budgets, slots, people and stopping."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest

from chargehand.engine.deadline import in_time
from chargehand.engine.engine_session import DRAIN_S, Opening, Parked, Prior
from chargehand.engine.local.retry_rule import RETRIES_AFTER_PAGE, TRANSPORT_RETRIES
from chargehand.errors import ModelError, OwnershipLost, StorageError
from chargehand.events import AttemptStarted, Event, ModelCalled, QuestionAnswered, ToolReturned
from chargehand.events.body import fields_of
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.testing import run_virtual
from chargehand.tools import Tool, tool
from chargehand.values.budget import Budget
from chargehand.values.effect import (
    Effect,
    ModelCall,
    ModelResult,
    Question,
    ToolCall,
    ToolEffect,
    ToolResult,
    usage_of,
)
from chargehand.values.message import Reply
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan, Task
from chargehand.workers.agent import Agent
from tests.kernel import MODEL, FunctionModel, SlowJournal, after, engine, failing, kinds, question, run_plan, stored


def mailer(log: list[str], seconds: float = 1.0) -> dict[str, Tool]:
    @tool(effect="once")
    async def send(to: str) -> str:
        """Sends a letter."""
        log.append(to)
        await asyncio.sleep(seconds)
        return f"sent to {to}"

    return {"send": send}


def letter(to: str = "Ada") -> ToolCall:
    return ToolCall(worker="clerk", tool="send", arguments={"to": to}, effect="once")


# -- the record ------------------------------------------------------------------------------------------------------


def test_a_reply_that_is_committed_as_the_supervisors_time_is_over_is_counted_by_this_session_too() -> None:
    """It was paid: the report that is written without it tells what it used, as does the session that reads it."""
    model = FunctionModel(after(1))

    async def session(journal: SlowJournal) -> tuple[int, int]:
        used: list[Usage] = []

        async def work() -> None:
            used.append(usage_of(await local.perform("@extend/1/1", question()), MODEL))

        async with engine(model, journal, replay=replay(stored(journal.store))) as local:
            if journal.gate is not None:
                asyncio.get_running_loop().call_later(0.5, journal.gate.clear)
                asyncio.get_running_loop().call_later(3, journal.gate.set)
            assert await in_time(local, "@extend/1", 2.0, work) is None
            return Usage.total(used).calls, local.spent.used.calls

    async def main() -> None:
        gate = asyncio.Event()
        gate.set()
        first = SlowJournal(gate=gate)
        assert await session(first) == (0, 1)
        assert kinds(first.store)[-2:] == ["model_replied", "decision"]
        assert await session(SlowJournal(first.store)) == (1, 1)
        assert len(model.asked) == 1

    run_virtual(main())


def test_an_effect_returns_only_after_its_commit() -> None:
    """While the append is held open, the reply is there and `perform` has not returned."""

    async def main() -> None:
        gate = asyncio.Event()
        gate.set()
        journal = SlowJournal(gate=gate)
        model = FunctionModel(after(1))
        async with engine(model, journal) as local:
            work = asyncio.create_task(local.perform("t/1/model/1", question()))
            await asyncio.sleep(0.5)
            assert kinds(journal.store)[-1] == "model_called"
            gate.clear()
            await asyncio.sleep(5)
            assert not work.done()
            assert "model_replied" not in kinds(journal.store)
            gate.set()
            assert (await work).ok
            assert kinds(journal.store)[-1] == "model_replied"

    run_virtual(main())


def test_the_request_is_on_the_record_before_it_is_sent() -> None:
    """A call whose intent cannot be committed is never made."""

    async def main() -> None:
        model = FunctionModel(after(1))
        journal = SlowJournal(gate=asyncio.Event())
        async with engine(model, journal) as local:
            work = asyncio.create_task(local.perform("t/1/model/1", question()))
            await asyncio.sleep(5)
            assert model.asked == []
            assert journal.gate is not None
            journal.gate.set()
            assert (await work).ok

    run_virtual(main())


def test_five_hundred_effects_at_once_cost_about_ten_commits() -> None:
    """Events gather while one batch is in flight; 500 concurrent calls do not cost 500 appends."""
    journal = SlowJournal(seconds=0.01)

    async def main() -> None:
        async with (
            engine(FunctionModel(after(0.2)), journal, max_concurrent=500) as local,
            asyncio.TaskGroup() as group,
        ):
            for n in range(500):
                group.create_task(local.perform(f"t{n}/1/model/1", question()))

    _, seconds = run_virtual(main())
    assert kinds(journal.store).count("model_replied") == 500
    assert journal.appends <= 10
    assert seconds < 0.3


def test_an_effect_that_returned_is_committed_although_its_task_is_cancelled() -> None:
    """Cancellation in the moment between the reply and its commit loses nothing."""

    async def main() -> MemoryStore:
        gate = asyncio.Event()
        gate.set()
        journal = SlowJournal(gate=gate)
        async with engine(FunctionModel(after(1)), journal) as local:
            work = asyncio.create_task(local.perform("t/1/model/1", question()))
            await asyncio.sleep(0.5)
            gate.clear()
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            assert work.cancelled()
            gate.set()
        return journal.store

    store, _ = run_virtual(main())
    assert replay(stored(store)).committed["t/1/model/1"].result["reply"]["text"] == "ok"


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (StorageError("The disk is full."), StorageError),
        (OwnershipLost(), OwnershipLost),
        (RuntimeError("a bug in a journal"), StorageError),
    ],
)
def test_a_broken_record_is_told_to_everybody_who_waits(at: int, raised: Exception, told: type[Exception]) -> None:
    """Whatever an append raises, no effect hangs: each ends with the storage's own error."""

    async def main() -> None:
        journal = SlowJournal(breaks_at=at, error=raised)
        async with engine(FunctionModel(after(1)), journal) as local:
            works = [asyncio.create_task(local.perform(f"t{n}/1/model/1", question())) for n in range(5)]
            for outcome in await asyncio.gather(*works, return_exceptions=True):
                assert isinstance(outcome, told)
            with pytest.raises(told):
                await local.perform("late/1/model/1", question())

    run_virtual(main())


# -- replay ----------------------------------------------------------------------------------------------------------


def test_a_committed_effect_is_returned_and_never_repeated() -> None:
    """The next session gets the recorded result under the same key, at once and without a call."""
    store = MemoryStore()

    async def first() -> ModelResult:
        async with engine(FunctionModel(after(1)), MemoryJournal(store)) as local:
            return await local.perform("t/1/model/1", question())

    async def second() -> ModelResult:
        model = FunctionModel(after(1, "never"))
        async with engine(model, MemoryJournal(store), replay=replay(stored(store))) as local:
            again = await local.perform("t/1/model/1", question())
        assert model.asked == []
        return again

    assert run_virtual(first())[0] == run_virtual(second())[0]


def test_what_workers_wrote_before_is_held_back_for_the_synthesis_after_a_resume() -> None:
    """The synthesizer will read it, whichever session wrote it."""
    store = MemoryStore()

    async def work(number: int) -> tuple[int, int | None]:
        replayed = replay(stored(store))
        async with engine(
            FunctionModel(after(1)), MemoryJournal(store), replay=replayed, budget=Budget(tokens=9_000)
        ) as local:
            await local.perform(f"t/{number}/model/1", question())
            return local.ledger.held_back, local.ledger.tokens_left()

    assert run_virtual(work(1))[0] == (5, 9_000 - 15 - 5)
    assert run_virtual(work(2))[0] == (10, 9_000 - 30 - 10)


def test_what_was_paid_for_stands_though_it_would_be_asked_differently_today() -> None:
    """A resumed run takes the recorded result under its key and says that the question has changed since."""
    store = MemoryStore()

    async def ask(text: str) -> ModelResult:
        async with engine(FunctionModel(after(1, text)), MemoryJournal(store), replay=replay(stored(store))) as local:
            return await local.perform("t/1/model/1", question(text))

    run_virtual(ask("one"))
    reply = run_virtual(ask("two"))[0].reply
    assert reply is not None
    assert reply.text == "one"
    assert "warning" in kinds(store)


def test_a_repeat_after_a_crash_is_the_same_request() -> None:
    """A call in flight at a crash is sent again with its idempotency key and output cap, however the shares changed."""
    store = MemoryStore()
    first, second = FunctionModel(after(1)), FunctionModel(after(1))

    async def session(model: FunctionModel, tasks: int) -> None:
        async with engine(
            model, MemoryJournal(store), replay=replay(stored(store)), budget=Budget(tokens=50_000)
        ) as local:
            local.budget.expect(tasks)
            await local.perform("t/1/model/1", question(cap=8_000))

    run_virtual(session(first, 7))
    cut = kinds(store).index("model_called") + 1
    del store.events[cut:]
    run_virtual(session(second, 20))
    (_, cap, sent), (_, cap_again, sent_again) = first.asked[0], second.asked[0]
    assert cap == cap_again
    assert sent.idempotency_key == sent_again.idempotency_key
    assert [e.data["send"] for e in stored(store) if e.kind == "model_called"] == [1, 2]


@pytest.mark.parametrize(("choice", "recorded"), [("auto", {}), ("none", {"tool_choice": "none"})])
def test_whether_tools_may_be_called_is_on_the_record(choice: Any, recorded: dict[str, str]) -> None:
    """What is sent again after a crash is the same to the byte: the record says so where it is not as usual."""
    store = MemoryStore()

    async def main() -> None:
        async with engine(FunctionModel(after(0)), MemoryJournal(store)) as local:
            await local.perform("t/1/model/1", question(tool_choice=choice))

    run_virtual(main())
    called = next(event for event in stored(store) if event.kind == "model_called")
    assert {name: value for name, value in called.data.items() if name == "tool_choice"} == recorded
    assert set(called.data) <= set(fields_of(ModelCalled))


def test_a_rerun_uses_the_committed_successes_of_the_run_it_repeats() -> None:
    """Equal key and fingerprint: recorded here as reused and free; a failure is made again."""
    old, new = MemoryStore(), MemoryStore()

    async def before() -> None:
        refused = ModelError("refused", "no")
        async with engine(FunctionModel(failing(1, refused, after(1))), MemoryJournal(old)) as local:
            assert not (await local.perform("t1/1/model/1", question())).ok
            assert (await local.perform("t2/1/model/1", question())).ok

    async def now() -> None:
        model = FunctionModel(after(1))
        prior = Prior("old", replay(stored(old)))
        async with engine(model, MemoryJournal(new), prior=prior) as local:
            assert (await local.perform("t1/1/model/1", question())).ok
            assert len(model.asked) == 1
            reused = await local.perform("t2/1/model/1", question())
            assert reused.reply is not None
            assert reused.reply.usage is not None
            assert reused.reply.usage.input_tokens == 0
            assert len(model.asked) == 1

    run_virtual(before())
    run_virtual(now())
    assert kinds(new).count("reused") == 1


def test_what_a_reused_tool_returned_counts_as_returned() -> None:
    """The addresses in it are known to a rerun as they were to the run itself."""
    old = MemoryStore()

    @tool(effect="read")
    def look() -> str:
        """Look it up."""
        return "See https://example.org/mills for more."

    async def session(store: MemoryStore, prior: Prior | None = None) -> list[str]:
        async with engine(FunctionModel(after(0)), MemoryJournal(store), {"look": look}, prior=prior) as local:
            await local.perform("t1/1/tool/1", ToolCall(worker="clerk", tool="look", arguments={}, effect="read"))
            return list(local.record.urls())

    first, _ = run_virtual(session(old))
    again, _ = run_virtual(session(new := MemoryStore(), Prior("old", replay(stored(old)))))
    assert kinds(new) == ["reused"]
    assert first == again == ["https://example.org/mills"]


def test_urls_of_a_record_that_does_not_list_them_are_read_from_its_texts() -> None:
    """Records written before results listed their urls resume with the same urls known."""
    store = MemoryStore()

    async def session() -> set[str]:
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=replay(stored(store))) as local:
            return set(local.record.urls())

    result = {"text": "See https://Example.org/mills/ and (www.example.net)."}
    older = Event("run", 1, 0.0, "t1", 1, ToolReturned(key="t1/1/tool/1.1", fingerprint="f", result=result))
    run_virtual(MemoryJournal(store).append([older], {}))
    assert run_virtual(session())[0] == {"https://example.org/mills", "https://www.example.net"}


def test_the_engine_records_how_a_session_opens() -> None:
    """Each session is one `run_started`, with its number; without an opening nothing is recorded of it."""
    store, opening = MemoryStore(), Opening({"text": "x"}, {"name": "t"}, {}, warnings=("Mind the gap.",))

    async def session(opening: Opening | None) -> None:
        earlier = replay(stored(store)) if stored(store) else None
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=earlier, opening=opening):
            pass

    for each in (opening, opening, None):
        run_virtual(session(each))
    assert kinds(store) == ["run_started", "warning"] * 2
    started = [event.data for event in stored(store) if event.kind == "run_started"]
    assert [(data["epoch"], data["resumed"]) for data in started] == [(1, False), (2, True)]


def test_work_ends_when_the_time_of_its_engine_is_over() -> None:
    """An engine may be given a time of day at which all of its work has to be over."""
    plan, model = Plan(tasks=(Task(id="a", worker="clerk", instruction="i"),)), FunctionModel(after(60))
    clerk = Agent("clerk", "", "", dict.fromkeys((None, "small", "medium", "large"), MODEL))

    async def main() -> Outcome:
        async with engine(model, wall_clock=lambda: 1_000.0, deadline_at=1_005.0) as local:
            return (await run_plan(plan, {"clerk": clerk}, local))["a"]

    outcome, seconds = run_virtual(main())
    assert outcome.error is not None
    assert (outcome.error.kind, seconds) == ("deadline", 5.0)


def test_a_decision_is_read_from_the_record() -> None:
    """What was decided is never decided again, in whatever session."""
    store = MemoryStore()

    async def decide(value: str) -> Any:
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=replay(stored(store))) as local:
            return await local.decide("t/1/route", "route", lambda: value, "because")

    assert run_virtual(decide("left"))[0] == "left"
    assert run_virtual(decide("right"))[0] == "left"


# -- tools that must not run twice -----------------------------------------------------------------------------------


def test_a_once_tool_in_doubt_after_a_crash_is_never_repeated() -> None:
    """Its intent is on the record and its result is not: the worker is told so, and nothing is sent."""
    store = MemoryStore()
    log: list[str] = []

    async def session() -> ToolResult:
        model = FunctionModel(after(0))
        async with engine(model, MemoryJournal(store), mailer(log), replay=replay(stored(store))) as local:
            return await local.perform("t/once/send/1", letter())

    assert run_virtual(session())[0].ok
    del store.events[kinds(store).index("tool_called") + 1 :]
    for _ in range(2):
        again = run_virtual(session())[0]
        assert again.error is not None
        assert again.error.kind == "in_doubt"
    assert log == ["Ada"]


@pytest.mark.parametrize(("effect", "before"), [("once", ["tool_called"]), ("idempotent", []), ("read", [])])
def test_only_what_must_not_run_twice_is_on_the_record_before_it_runs(effect: ToolEffect, before: list[str]) -> None:
    """Any other tool goes to disk with its result, in one commit."""
    store = MemoryStore()
    seen: list[list[str]] = []

    @tool(effect=effect)
    async def look() -> str:
        """Looks."""
        seen.append(kinds(store))
        return "seen"

    async def main() -> None:
        async with engine(FunctionModel(after(0)), MemoryJournal(store), {"look": look}) as local:
            call = ToolCall(worker="clerk", tool="look", arguments={}, effect=effect)
            await local.perform("t1/1/tool/1.1", call)
            assert kinds(store) == ["tool_called", "tool_returned"]

    run_virtual(main())
    assert seen == [before]


def test_the_same_once_call_is_made_once_in_a_session() -> None:
    """Asked for twice at a time and once more later, it runs once and all get its result."""
    log: list[str] = []

    async def main() -> None:
        async with engine(FunctionModel(after(0)), tools=mailer(log)) as local:
            both = await asyncio.gather(*(local.perform("t/once/send/1", letter()) for _ in range(2)))
            later = await local.perform("t/once/send/1", letter())
        assert {r.text for r in (*both, later)} == {"sent to Ada"}

    run_virtual(main())
    assert log == ["Ada"]


def test_a_once_call_that_was_broken_off_is_in_doubt_in_the_same_session() -> None:
    """A timeout in the middle of it leaves open whether it happened; a later attempt does not repeat it."""
    log: list[str] = []

    async def main() -> ToolResult:
        async with engine(FunctionModel(after(0)), tools=mailer(log, 60)) as local:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await local.perform("t/once/send/1", letter())
            return await local.perform("t/once/send/1", letter())

    again = run_virtual(main())[0]
    assert again.error is not None
    assert again.error.kind == "in_doubt"
    assert log == ["Ada"]


# -- transport -------------------------------------------------------------------------------------------------------


def test_a_transient_failure_is_sent_again_at_most_four_times() -> None:
    """Five sends under one key, one idempotency key, one result on the record."""
    store = MemoryStore()
    model = FunctionModel(failing(99, ModelError("overloaded", "busy"), after(0)))

    async def main() -> ModelResult:
        async with engine(model, MemoryJournal(store)) as local:
            return await local.perform("t/1/model/1", question())

    result = run_virtual(main())[0]
    assert result.error is not None
    assert result.error.kind == "overloaded"
    assert len(model.asked) == TRANSPORT_RETRIES + 1 == 5
    assert len({attribution.idempotency_key for _, _, attribution in model.asked}) == 1
    assert kinds(store).count("model_called") == kinds(store).count("model_replied") == 1


def test_a_page_instead_of_a_reply_is_asked_for_once_more() -> None:
    """At a wrong address every call gets one: two sends, then the call has failed."""
    model = FunctionModel(failing(99, ModelError("contract", "a page", transient=True), after(0)))

    async def main() -> ModelResult:
        async with engine(model) as local:
            return await local.perform("t/1/model/1", question())

    result, took = run_virtual(main())
    assert result.error is not None
    assert (result.error.kind, len(model.asked), took < 1) == ("contract", RETRIES_AFTER_PAGE + 1, True)


def test_retry_after_is_honoured() -> None:
    """Three times told to wait 7 s, the call takes 21 s and little more, all of it waiting."""
    model = FunctionModel(failing(3, ModelError("rate_limited", "busy", retry_after=7), after(1)))

    async def main() -> ModelResult:
        async with engine(model) as local:
            return await local.perform("t/1/model/1", question())

    result, seconds = run_virtual(main())
    assert 22 <= seconds <= 22.4
    assert result.seconds == pytest.approx(1)
    assert result.waiting_s == pytest.approx(seconds - 1)


def test_what_will_not_get_better_is_not_sent_again() -> None:
    """A wrong key is one call."""
    model = FunctionModel(failing(9, ModelError("auth", "wrong key"), after(1)))

    async def main() -> ModelResult:
        async with engine(model) as local:
            return await local.perform("t/1/model/1", question())

    assert not run_virtual(main())[0].ok
    assert len(model.asked) == 1


def test_no_slot_is_held_while_a_call_waits_to_be_sent_again() -> None:
    """With one slot, a tool is called during a model call's backoff."""
    model = FunctionModel(failing(1, ModelError("rate_limited", "busy", retry_after=10), after(1)))

    async def main() -> float:
        async with engine(model, tools=mailer([]), max_concurrent=1) as local:
            first = asyncio.create_task(local.perform("t1/1/model/1", question()))
            await asyncio.sleep(0.1)
            await local.perform("t2/once/send/1", letter())
            ended = local.clock.now()
            await first
            return ended

    assert run_virtual(main())[0] == pytest.approx(1.1)


def test_a_bug_in_a_handler_is_that_calls_failure() -> None:
    """An untyped exception becomes a result of kind internal that names it."""

    async def broken(call: ModelCall, attribution: Attribution) -> Reply:
        raise ZeroDivisionError("by accident")

    async def main() -> ModelResult:
        async with engine(FunctionModel(broken)) as local:
            return await local.perform("t/1/model/1", question())

    result = run_virtual(main())[0]
    assert result.error is not None
    assert result.error.kind == "internal"
    assert "by accident" in result.error.message


# -- slots and money -------------------------------------------------------------------------------------------------


def test_begun_tasks_end_before_new_ones_start() -> None:
    """A free slot goes to the task that started first, not to the call that came first."""
    order: list[str | None] = []

    async def note(call: ModelCall, attribution: Attribution) -> Reply:
        order.append(attribution.task)
        await asyncio.sleep(1)
        return Reply(text="ok")

    async def main() -> None:
        async with engine(FunctionModel(note), max_concurrent=1) as local:
            for id in ("old", "new", "newest"):
                local.emit(AttemptStarted(worker="w", tier=None, model=None), task=id, attempt=1)
            async with asyncio.TaskGroup() as group:
                for id in ("new", "newest", "old"):
                    group.create_task(local.perform(f"{id}/1/model/1", question()))

    run_virtual(main())
    assert order == ["new", "old", "newest"]


def test_a_call_that_does_not_fit_is_denied_and_not_made() -> None:
    """With nothing open that could free tokens the call fails with `budget`, on the record."""
    store = MemoryStore()
    model = FunctionModel(after(1))

    async def main() -> ModelResult:
        async with engine(model, MemoryJournal(store), budget=Budget(tokens=200)) as local:
            return await local.perform("t/1/model/1", question())

    result = run_virtual(main())[0]
    assert result.error is not None
    assert result.error.kind == "budget"
    assert model.asked == []
    assert [e.data["decision"] for e in stored(store) if e.kind == "decision"] == ["budget_denial"]


def test_a_call_waits_while_others_could_free_enough() -> None:
    """Three calls whose reservations fit one at a time run one after the other; none is denied."""

    async def main() -> list[ModelResult]:
        async with engine(FunctionModel(after(1)), budget=Budget(tokens=1_300)) as local:
            return await asyncio.gather(*(local.perform(f"t{n}/1/model/1", question(cap=1_100)) for n in range(3)))

    results, seconds = run_virtual(main())
    assert all(result.ok for result in results)
    assert seconds == pytest.approx(3)
    assert sorted(result.waiting_s for result in results) == pytest.approx([0, 1, 2])


def test_a_call_stopped_in_the_queue_uses_nothing() -> None:
    """Only what was sent may have been used: a call cancelled while it waits for a slot settles at nothing."""

    async def main() -> int:
        async with engine(FunctionModel(after(10)), max_concurrent=1, budget=Budget(tokens=100_000)) as local:
            first = asyncio.create_task(local.perform("t1/1/model/1", question()))
            second = asyncio.create_task(local.perform("t2/1/model/1", question()))
            await asyncio.sleep(1)
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            assert local.ledger.open == {}
            return local.ledger.spent_tokens

    assert run_virtual(main())[0] == 15


def test_a_call_stopped_in_flight_counts_in_full() -> None:
    """Nobody knows what it used: the whole reservation is settled, marked as estimated."""
    store = MemoryStore()

    async def main() -> None:
        async with engine(FunctionModel(after(10)), MemoryJournal(store), budget=Budget(tokens=100_000)) as local:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await local.perform("t1/1/model/1", question(cap=500))

    run_virtual(main())
    reserved, settled = (
        next(e.data for e in stored(store) if e.kind == k) for k in ("budget_reserved", "budget_settled")
    )
    assert settled["tokens"] == reserved["tokens"] > 500
    assert settled["estimated"]


# -- people and stopping ---------------------------------------------------------------------------------------------


def test_a_run_parks_only_when_nothing_else_can_go_on() -> None:
    """The question waits beside a call and a task that follows it; Parked comes when both are over."""
    store = MemoryStore()
    ended: list[float] = []

    async def main() -> None:
        async with engine(FunctionModel(after(3)), MemoryJournal(store)) as local:

            async def others() -> None:
                await local.perform("t2/1/model/1", question())
                await local.clock.sleep(2)
                await local.perform("t2/1/model/2", question("more"))
                ended.append(local.clock.now())

            async def work() -> None:
                async with asyncio.TaskGroup() as group:
                    group.create_task(local.ask("t1/1/ask", Question(id="q", kind="task", prompt="Which?")))
                    group.create_task(others())

            with pytest.raises(Parked):
                await local.until_parked(work())

    assert run_virtual(main())[1] == pytest.approx(8)
    assert ended == pytest.approx([8])
    assert kinds(store).count("question_asked") == 1


def test_an_answer_on_the_record_is_returned() -> None:
    """A question that was answered between the sessions is not asked again."""
    store = MemoryStore()

    async def answered() -> Any:
        async with engine(FunctionModel(after(0)), MemoryJournal(store)) as local:
            local.emit(QuestionAnswered(key="t1/1/ask", answer="the left one"))
        async with engine(FunctionModel(after(0)), MemoryJournal(store), replay=replay(stored(store))) as local:
            return await local.until_parked(local.ask("t1/1/ask", Question(id="q", kind="task", prompt="Which?")))

    assert run_virtual(answered())[0] == "the left one"
    assert "question_asked" not in kinds(store)


def test_draining_lets_calls_in_flight_commit_and_begins_nothing() -> None:
    """The call in flight ends and is committed; the queued one, the backing-off one and a new one are never sent."""
    store = MemoryStore()

    async def answer(call: ModelCall, attribution: Attribution) -> Reply:
        if attribution.task == "t3":
            raise ModelError("connection", "later")
        await asyncio.sleep(3)
        return Reply(text="ok")

    model = FunctionModel(answer)

    async def main() -> float:
        async with engine(model, MemoryJournal(store), max_concurrent=1) as local:
            works = [asyncio.create_task(local.perform("t3/1/model/1", question()))]
            await asyncio.sleep(0)
            works += [asyncio.create_task(local.perform(f"t{n}/1/model/1", question())) for n in (1, 2)]
            await asyncio.sleep(1)
            await local.drain()
            ended = local.clock.now()
            works.append(asyncio.create_task(local.perform("t4/1/model/1", question())))
            await asyncio.sleep(1)
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
            return ended

    assert run_virtual(main())[0] == pytest.approx(3)
    assert [attribution.task for _, _, attribution in model.asked] == ["t3", "t1"]
    assert set(replay(stored(store)).committed) == {"t1/1/model/1"}


def test_draining_leaves_calls_that_take_too_long() -> None:
    """After five seconds the session goes on without them, and says so on the record."""
    store = MemoryStore()

    async def main() -> float:
        async with engine(FunctionModel(after(60)), MemoryJournal(store)) as local:
            work = asyncio.create_task(local.perform("t1/1/model/1", question()))
            await asyncio.sleep(1)
            await local.drain()
            ended = local.clock.now()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            return ended

    assert run_virtual(main())[0] == pytest.approx(1 + DRAIN_S)
    assert "warning" in kinds(store)


def test_every_type_of_effect_has_a_handler() -> None:
    """An effect is carried out by what is registered for its type: there is no type without."""
    local = engine(FunctionModel(after(0)))
    assert set(get_args(Effect)) == set(local._handlers)  # pyright: ignore[reportPrivateUsage]
