"""Lines of progress where there is no terminal."""

from __future__ import annotations

import asyncio
import signal
from typing import Any
from unittest.mock import Mock

import pytest

from chargehand.cli import progress_lines
from chargehand.cli.progress_lines import Lines, describe_work
from chargehand.cli.screen import Screen
from chargehand.cli.signals import Signals
from chargehand.text.redaction import Redactor
from chargehand.trace import RunState
from chargehand.trace.event_words import describe_event
from tests.events import make_event


def test_a_run_that_begins_again_in_the_same_process_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A restart of a task begins another session: the line about the restart says it."""
    lines = Lines(Screen(Redactor()), RunState())
    resumed = {"request": {"text": "Say it"}, "team": {"name": "g"}, "resumed": True}
    lines.on_event(make_event("run_started", seq=1, at=1.0, **resumed, epoch=2))
    lines.on_event(make_event("control", "t1", seq=2, at=1.0, order="restart", verdict="accepted"))
    lines.on_event(make_event("run_started", seq=3, at=1.0, **resumed, epoch=3))
    said = capsys.readouterr().err
    assert (said.count("resumed"), "a person restarted t1" in said) == (1, True)


STARTED = {"request": {"text": "Say it"}, "team": {"name": "g"}}
PLAN = {"tasks": [{"id": f"t{n}", "worker": "w", "instruction": "Say it."} for n in range(1, 7)]}


def test_the_plan_of_a_fork_comes_before_the_results_that_it_takes_over(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the plan is new, and so comes after the events that were taken over."""
    lines = Lines(Screen(Redactor()), RunState())
    fork = {"forked_from": {"run": "r1", "at": None}, "copied": 1}
    lines.on_event(make_event("run_started", seq=1, at=1.0, **STARTED, **fork))
    outcome = {"task": "t1", "worker": "w", "status": "done", "summary": "Said.", "usage": {}}
    lines.on_event(make_event("task_ended", "t1", 1, seq=2, at=1.0, outcome=outcome))
    lines.on_event(make_event("plan_approved", seq=3, at=1.0, plan=PLAN, strategy="parallel", notes=[]))
    lines.on_event(make_event("task_ready", "t2", 0, seq=4, at=1.0, worker="w"))
    said = [line.split("s  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert [words.split()[0] for words in said] == ["run", "plan:", "t1"]


@pytest.mark.parametrize("is_paused", [True, False])
def test_ctrl_c_speaks_of_calls_in_flight_only_where_there_may_be_some(
    is_paused: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused run without calls stops at once."""
    view = RunState()
    view.apply(make_event("run_started", seq=1, at=1.0, **STARTED))
    if is_paused:
        view.apply(make_event("control", seq=2, at=1.0, order="pause", verdict="accepted"))
    stopped: list[int] = []
    handlers: dict[int, Any] = {}

    async def press() -> None:
        screen = Screen(Redactor())
        signals = Signals(screen, Lines(screen, view), view)
        session = Mock(interrupt=lambda: stopped.append(1))

        def add(number: int, call: Any, *given: Any) -> None:
            handlers[number] = call, given

        monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", add)
        task = asyncio.ensure_future(asyncio.sleep(0))
        signals.watch(task)
        signals.on_session(session)
        call, given = handlers[signal.SIGINT]
        call(*given)
        await task

    asyncio.run(press())
    assert stopped == [1]
    assert ("in flight" in capsys.readouterr().err) == (not is_paused)


def test_a_long_silence_is_broken_by_what_the_run_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a slow model takes minutes, and a log without a terminal would show nothing."""
    monkeypatch.setattr(progress_lines, "MOST_SILENCE_S", 0.01)
    said: list[str] = []

    async def watch() -> None:
        heard = asyncio.Event()
        lines = Lines(Screen(Redactor()), RunState())
        monkeypatch.setattr(lines, "_say", lambda words, at: (said.append(words), heard.set()))
        async with lines:
            lines.on_event(make_event("run_started", seq=1, at=1.0, **STARTED))
            said.clear()
            heard.clear()
            await asyncio.wait_for(heard.wait(), 30)

    asyncio.run(watch())
    assert said[0] == "still planning"


def test_a_line_after_a_silence_names_a_few_tasks_and_counts_the_rest() -> None:
    """And the calls in flight, so that a slow provider can be told from a slow tool."""
    view = RunState()
    view.apply(make_event("run_started", seq=1, at=1.0, **STARTED))
    view.apply(make_event("plan_approved", seq=2, at=1.0, plan=PLAN, strategy="parallel", notes=[]))
    for number in range(1, 7):
        view.apply(make_event("attempt_started", f"t{number}", 1, seq=2 + number, at=1.0, worker="w"))
    assert describe_work(view) == "still working: t1, t2, t3, t4 and 2 more"


def test_one_plain_call_is_not_called_a_team() -> None:
    """A small model with its material in one prompt is asked directly, and the first line says so."""
    view = RunState()
    event = make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "single"})
    view.apply(event)
    assert describe_event(event, view) == f"run {event.run} with one plain call"
