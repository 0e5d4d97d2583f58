"""Events as they happen -> one readable line each on stderr, where there is no terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Protocol, Self

from chargehand.cli.screen import Screen
from chargehand.events import Control, Decided, Event, RunStarted, TaskEnded, Warned
from chargehand.trace import RunState
from chargehand.trace.event_words import describe_event, detail, phase_words
from chargehand.trace.number_text import several, short

LONGEST = 160
# After so many seconds without a line, a line says that the run is still at work.
MOST_SILENCE_S = 30.0
_MOST_NAMED = 4


class Progress(Protocol):
    """Shows a run while it runs. Replies are streamed only if it shows drafts."""

    shows_drafts: bool

    def on_event(self, event: Event) -> None: ...

    def on_draft(self, number: int, text: str) -> None:
        """Takes more text of a draft of the answer; a higher number begins another draft."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Shows nothing while a person is asked, and shows what was missed afterwards."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a person is being asked: the cursor is behind a prompt."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


# Where the text beside a time begins.
COLUMN = 11


class Lines:
    """One line per noteworthy event, and one after a long silence; every event with -v, none with -q."""

    shows_drafts = False

    def __init__(self, screen: Screen, view: RunState) -> None:
        self._screen = screen
        self._view = view
        # Task -> why its call was last sent again; None means the supervisor.
        self._again: dict[str | None, str] = {}
        # Whether the run has begun here. A restart of tasks begins it again in the same process.
        self._begun = False
        # Lines about results that a fork took over, until it has a plan.
        self._taken_over: list[str] = []
        # Lines to print once no person is being asked.
        self._kept: list[str] | None = None
        self._last_line = time.monotonic()
        self._ticking: asyncio.Task[None] | None = None

    @contextmanager
    def hold(self) -> Generator[None]:
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for line in kept:
                self._screen.say(line, below=COLUMN)

    @property
    def is_held(self) -> bool:
        return self._kept is not None

    def on_event(self, event: Event) -> None:
        self._view.apply(event)
        if self._screen.quiet:
            return
        again, self._begun = self._begun, self._begun or isinstance(event.body, RunStarted)
        line = None if again and isinstance(event.body, RunStarted) else describe_event(event, self._view)
        if line is None and self._screen.verbose:
            line = detail(event)
        if line is not None:
            line = self._shorten_repeated(line, event)
            # Not shortened: a warning, a verdict or the reason of a retry ends with what to do about it.
            line = line if isinstance(event.body, Warned | Decided | Control) else short(line, LONGEST)
            if event.seq <= self._view.copied_to and isinstance(event.body, TaskEnded) and not self._view.strategy:
                self._taken_over.append(line)  # a fork with a plan of its own: the plan first
            else:
                self._say(line, event.at)
        if self._taken_over and self._view.strategy:
            taken_over, self._taken_over = self._taken_over, []
            for line in taken_over:
                self._say(line, event.at)

    def _say(self, words: str, at: float) -> None:
        line = f"{self._view.elapsed_seconds(at):7.1f} s  {words}"
        self._last_line = time.monotonic()
        if self._kept is None:
            self._screen.say(line, below=COLUMN)
        else:
            self._kept.append(line)

    def _shorten_repeated(self, line: str, event: Event) -> str:
        """Gives the reason of a retry only once: later retries of the task often have the same reason."""
        match event.body:
            case Decided(decision="transport_retry", reason=reason):
                same = self._again.get(event.task) == reason
                self._again[event.task] = reason
                return line.replace(reason, "the same error") if same and not self._screen.verbose else line
            case _:
                return line

    def on_draft(self, number: int, text: str) -> None:
        """Shows nothing: lines are only for completed events."""

    async def __aenter__(self) -> Self:
        if not self._screen.quiet:
            self._ticking = asyncio.create_task(self._tick(), name="signs of life")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            silent = time.monotonic() - self._last_line
            if silent >= MOST_SILENCE_S:
                if self._kept is None and self._view.sessions:
                    self._say(describe_work(self._view), time.time())
                silent = 0.0
            await asyncio.sleep(MOST_SILENCE_S - silent)


def describe_work(view: RunState) -> str:
    """What a run does now: `still working: t1, t2; 2 calls in flight`."""
    running = [task.id for task in view.tasks.values() if view.status_of(task) == "running"]
    more = f" and {len(running) - _MOST_NAMED:,} more" if len(running) > _MOST_NAMED else ""
    named = f": {', '.join(running[:_MOST_NAMED])}{more}" if running else ""
    calls = f"; {several(view.calls_in_flight, 'call')} in flight" if view.calls_in_flight else ""
    return f"still {phase_words(view)}{named}{calls}"
