"""Work under the deadline: in time it gives its result, too late a verdict that no later session takes again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from chargehand.engine.deadline import in_time
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.testing import run_virtual
from chargehand.trace.run_state import fold as run_state
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from tests.kernel import FunctionModel, after, engine, question, stored


def session(store: MemoryStore, seconds: float | None, takes: float = 1.0) -> tuple[str | None, int, float]:
    """What a session that calls a model under the deadline gets, with how many calls and in what time."""
    model = FunctionModel(after(takes, "the answer"))

    async def main() -> str | None:
        async with engine(model, MemoryJournal(store), replay=replay(stored(store))) as local:

            async def work() -> str:
                result = await local.perform("@synthesis/1", question())
                return result.reply.text if result.reply else ""

            return await in_time(local, "@synthesis", seconds, work)

    got, took = run_virtual(main())
    return got, len(model.asked), took


class _Slow(FunctionModel):
    """Writes some words at once and never ends."""

    async def complete(
        self, call: ModelCall, max_output: int, attribution: Attribution, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        assert on_text is not None
        for piece in ("Some ", "", "words"):
            on_text(piece)
        await asyncio.sleep(50)
        return Reply(text="Some words and more")


def test_text_cut_by_a_deadline_is_on_the_record_and_never_a_result() -> None:
    """What had arrived can be read there; the next session, with more time, makes the call again."""
    store = MemoryStore()

    async def main(seconds: float) -> str | None:
        async with engine(_Slow(after(0)), MemoryJournal(store), replay=replay(stored(store))) as local:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    result = await local.perform("t1/1/model/1", question())
                    return result.reply.text if result.reply else None
        return None

    assert run_virtual(main(2.0))[0] is None
    (cut,) = [event.data["result"] for event in stored(store) if event.kind == "model_replied"]
    assert (cut["cut"], cut["text"], cut["error"]["kind"]) == (True, "Some words", "cancelled")
    seen = replay(stored(store))
    assert seen.committed == {}
    assert seen.intents["t1/1/model/1"].send == 1
    (call,) = run_state(stored(store)).by_key.values()
    assert (call.ok, call.ended is not None) == (False, True)
    assert run_virtual(main(100.0))[0] == "Some words and more"


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_work_in_time_gives_its_result(seconds: float | None) -> None:
    """Without a limit it takes what it takes; nothing is put on the record about it."""
    store = MemoryStore()
    assert session(store, seconds)[0] == "the answer"
    assert replay(stored(store)).decisions == {}


def test_too_late_is_decided_once() -> None:
    """The verdict is on the record with what was left; a resumed session reads it and does not even begin."""
    store = MemoryStore()
    assert session(store, 2.0, takes=60) == (None, 1, pytest.approx(2.0))
    (verdict,) = [event for event in stored(store) if event.kind == "decision"]
    assert (verdict.data["key"], verdict.data["decision"]) == ("@synthesis/deadline", "deadline")
    assert verdict.data["value"] == {"after_s": 2.0}
    assert verdict.task is None
    assert session(store, 100.0, takes=0) == (None, 0, 0.0)


def test_what_was_committed_before_the_crash_is_in_time_though_no_time_is_left() -> None:
    """It is on the record and needs no second."""
    store = MemoryStore()
    session(store, 5.0)
    assert session(store, 0.0) == ("the answer", 0, 0.0)


def test_a_later_deadline_takes_the_verdict_back() -> None:
    """Reopening a run forgets that the supervisor's own work came too late; a task's attempts stay as they ended."""
    store = MemoryStore()
    session(store, 2.0, takes=60)
    state = replay(stored(store))
    state.decisions["t1/1/deadline"] = {"after_s": 1.0}
    state.reopen([])
    assert list(state.decisions) == ["t1/1/deadline"]


def test_a_timeout_of_the_works_own_is_not_the_deadline() -> None:
    """It is raised, and nothing is decided."""
    store = MemoryStore()

    async def main() -> None:
        async with engine(FunctionModel(after(0)), MemoryJournal(store)) as local:

            async def work() -> None:
                async with asyncio.timeout(1):
                    await local.clock.sleep(10)

            await in_time(local, "@synthesis", 5.0, work)

    with pytest.raises(TimeoutError):
        run_virtual(main())
    assert replay(stored(store)).decisions == {}
