"""Ctrl-C and SIGTERM -> what the session of a run does about them, and the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from chargehand.cli.progress_lines import Progress
from chargehand.cli.screen import Screen
from chargehand.runs.session import Session
from chargehand.trace import RunState

# After an order to stop now, the process ends after this time even if something hangs. The record has all results.
LAST_GRACE_S = 1.0


class Stopped(Exception):
    """A signal came, and no run of this process was under way; the message says what became of the run."""

    def __init__(self, exit_code: int, message: str = "") -> None:
        super().__init__(message or "Interrupted before the run began.")
        self.exit_code = exit_code


class Signals:
    """Passes Ctrl-C and SIGTERM to the session. Belongs to one event loop."""

    def __init__(self, screen: Screen, progress: Progress, view: RunState) -> None:
        self._screen = screen
        self._progress = progress
        self._view = view
        self._session: Session | None = None
        self._task: asyncio.Task[Any] | None = None
        self._received: list[int] = []

    @property
    def exit_code(self) -> int | None:
        """128 + the first signal; None before it."""
        return 128 + self._received[0] if self._received else None

    def watch(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._on, number)

    def on_session(self, session: Session) -> None:
        self._session = session

    def _on(self, number: int) -> None:
        self._received.append(number)
        if len(self._received) == 1 and self._session is not None:
            prompt = "\n" if self._progress.is_held else ""
            finishing = "Finishing the calls in flight (at most 5 s); Ctrl-C again to stop now."
            # A run that is paused or only waits for a person has no calls in flight.
            self._screen.say(f"{prompt}{'Stopping.' if self._view.is_still else finishing}")
        elif len(self._received) == 2:
            self._screen.say("Stopping now.")
            asyncio.get_running_loop().call_later(LAST_GRACE_S, os._exit, 128 + self._received[0])
        if self._session is not None:
            self._session.interrupt()
        elif self._task is not None:
            self._task.cancel()
