"""A run -> lines about its progress, until it ends, needs a person, or the time is over.

For callers with an open connection, which need regular output: programs end a silent call after 45 to 60 seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import NamedTuple, TypeAlias

from chargehand.apps.shown_report import waiting_json
from chargehand.errors import RunOwned
from chargehand.events import Event
from chargehand.server.access import Caller
from chargehand.server.change_runs import continue_run
from chargehand.server.run_states import current_status
from chargehand.server.shared_state import Server
from chargehand.trace.event_words import describe_event, phase_words
from chargehand.trace.number_text import duration, several, short
from chargehand.trace.run_state import RunState
from chargehand.values.status_words import FINISHED

# The longest and the shortest time between two lines. Of several lines within the shortest, the last is sent.
SILENCE_S = 8.0
BETWEEN_S = 0.5
LONGEST_LINE = 300
_STOPPED = frozenset({*FINISHED, "cancelled", "paused"})

# Sends a line, which may take time.
Say: TypeAlias = Callable[[str], Awaitable[None]]
# Whether to stop waiting, given the state of the run and its status.
Enough: TypeAlias = Callable[[RunState, str], bool]


class Watched(NamedTuple):
    """A run at the end of the watch."""

    view: RunState
    status: str


def is_over(view: RunState, status: str) -> bool:
    """Whether nothing more happens unless somebody continues the run."""
    return status in _STOPPED


def is_over_or_asks(view: RunState, status: str) -> bool:
    """Whether the run is over or asks a person."""
    return is_over(view, status) or bool(view.questions)


async def wait_for_run(
    server: Server, caller: Caller, run: str, seconds: float, say: Say, enough: Enough = is_over
) -> Watched:
    """Watch a run for at most `seconds`. A run that was interrupted, or got its answers, continues here."""
    until = time.monotonic() + seconds
    lines = _Lines(say, server.redactor.text)
    view = RunState()
    newest = await server.feeds.last_event(run)
    async with server.feeds.watch(run, newest) as feed:
        while True:
            changed = feed.changed
            for event in await server.reading.run(_read_events, server, run, view.seq):
                view.apply(event)
                if event.seq > newest:
                    lines.add(event, view)
            status = await server.reading.run(current_status, server.source, run, view)
            left = until - time.monotonic()
            if enough(view, status) or left <= 0 or feed.broken or server.feeds.closed:
                return Watched(view, status)
            if not server.started.is_here(run) and await server.reading.run(_may_continue, server, run, view, status):
                with contextlib.suppress(RunOwned):  # another process was first
                    await continue_run(server, run, caller, partial(server.supervisor.resume, run))
            await lines.say_due(view)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(left, lines.pause()))


def _may_continue(server: Server, run: str, view: RunState, status: str) -> bool:
    """Whether a run is idle although it waits neither for a person nor for a provider."""
    if status == "interrupted":
        return True
    if status != "waiting" or view.questions or view.ended is None or server.source.owner(run) is not None:
        return False
    return waiting_json(server.source, run, status).get("waiting", {"until": 0.0})["until"] <= time.time()


def _read_events(server: Server, run: str, after: int) -> list[Event]:
    with closing(server.source.events(run, after)) as events:  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        return list(events)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class _Lines:
    """Sends the last due line, within the shortest and the longest time between lines."""

    def __init__(self, say: Say, redact: Callable[[str], str]) -> None:
        self._say = say
        self._redact = redact
        self._due: str | None = None
        self._said_at = time.monotonic() - BETWEEN_S

    def add(self, event: Event, view: RunState) -> None:
        self._due = describe_event(event, view) or self._due

    def pause(self) -> float:
        """Seconds until the next line is sent, whether or not anything happens."""
        wait = BETWEEN_S if self._due is not None else SILENCE_S
        return max(self._said_at + wait - time.monotonic(), 0.01)

    async def say_due(self, view: RunState) -> None:
        passed = time.monotonic() - self._said_at
        if passed < (BETWEEN_S if self._due is not None else SILENCE_S):
            return
        head = describe_progress(view)
        line = head if self._due is None else f"{head}; {self._due}"
        self._due, self._said_at = None, time.monotonic()
        await self._say(short(self._redact(line), LONGEST_LINE))


def describe_progress(view: RunState) -> str:
    """How far a run has come, in a few words."""
    if not view.seq:
        return "waiting for its turn"
    if view.waiting is not None:
        return f"waiting for {view.waiting['provider']}"
    if view.questions:
        return f"{several(len(view.questions), 'question')} to a person open"
    took = duration(view.elapsed_seconds(time.time()))
    if not view.tasks:
        return f"planning, {took}"
    counts = view.counts()
    ended = sum(counts.get(status, 0) for status in ("done", "failed", "escalated", "skipped"))
    working = counts.get("running", 0)
    phase = phase_words(view)
    doing = "" if phase == "working" else f", {phase}"
    return f"{ended} of {several(len(view.tasks), 'task')} ended, {working} running{doing}, {took}"
