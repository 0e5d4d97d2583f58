"""What the engine tells those who watch, and where it says that things happened."""

from __future__ import annotations

import asyncio

from chargehand.engine.local.recorder import Recorder
from chargehand.events import AttemptStarted, Event, QuestionAsked, Warned
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.testing import run_virtual
from chargehand.tools import tool
from chargehand.values.effect import ToolCall
from tests.kernel import FunctionModel, after, engine, question, stored


def test_a_listener_that_raises_is_left_out_and_the_run_goes_on() -> None:
    """One warning on the record, which the others hear after the event itself; the broken one hears no more."""
    store = MemoryStore()
    heard: list[tuple[int, str]] = []
    asked: list[str] = []

    def broken(event: Event) -> None:
        asked.append(event.kind)
        raise RuntimeError("no screen")

    def sound(event: Event) -> None:
        heard.append((event.seq, event.kind))

    async def work() -> bool:
        async with engine(FunctionModel(after(1)), MemoryJournal(store), listeners=(broken, sound)) as local:
            return (await local.perform("t/1/model/1", question())).ok

    assert run_virtual(work())
    assert len(asked) == 1
    events = stored(store)
    warnings = [event.data["message"] for event in events if event.kind == "warning"]
    [warning] = warnings
    assert "RuntimeError: no screen" in warning
    assert heard == [(event.seq, event.kind) for event in events]
    assert [seq for seq, _ in heard] == list(range(1, len(heard) + 1))


def test_a_question_is_on_the_record_when_listeners_get_it() -> None:
    """So an answer that one of them gives at once finds it; the events after it come later still, in order."""
    store = MemoryStore()
    heard: list[tuple[str, int]] = []

    async def work() -> None:
        async with Recorder(
            "run",
            MemoryJournal(store),
            seq=0,
            clock=lambda: 0.0,
            listeners=(lambda e: heard.append((e.kind, len(stored(store)))),),
        ) as recorder:
            recorder.emit(Warned(message="before"))
            recorder.emit(QuestionAsked(key="plan", question={"id": "plan"}))
            recorder.emit(Warned(message="after"))
            assert heard == [("warning", 0)]
            await recorder.commit()

    run_virtual(work())
    assert heard == [("warning", 0), ("question_asked", 3), ("warning", 3)]


def test_a_listener_may_cancel() -> None:
    """What is not an error passes: cancellation is never swallowed."""

    def stop(event: Event) -> None:
        raise asyncio.CancelledError

    async def work() -> bool:
        async with engine(FunctionModel(after(1)), listeners=(stop,)) as local:
            try:
                local.emit(Warned(message="x"))
            except asyncio.CancelledError:
                return True
        return False

    assert run_virtual(work())


def test_the_events_of_a_once_tool_name_their_attempt() -> None:
    """Its key is without the attempt, so that another one does not repeat it; the events still say which it was."""
    store = MemoryStore()

    @tool(effect="once")
    def send(to: str) -> str:
        """Send a letter."""
        return f"sent to {to}"

    async def work() -> None:
        async with engine(FunctionModel(after(1)), MemoryJournal(store), {"send": send}) as local:
            local.emit(AttemptStarted(worker="clerk"), task="t", attempt=2)
            letter = ToolCall(worker="clerk", tool="send", arguments={"to": "Oslo"}, effect="once")
            await local.perform("t/once/send/1", letter)

    run_virtual(work())
    told = [(e.kind, e.task, e.attempt) for e in stored(store) if e.kind.startswith("tool_")]
    assert told == [("tool_called", "t", 2), ("tool_returned", "t", 2)]
