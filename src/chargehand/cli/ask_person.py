"""Questions of a run -> a person at the terminal, one at a time, and the words they type."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from typing import TYPE_CHECKING

from chargehand.cli import read_inputs as inputs
from chargehand.cli.open_questions import typed_choices
from chargehand.cli.screen import fit
from chargehand.engine.people import Later, describe_question
from chargehand.errors import UsageError

if TYPE_CHECKING:
    from chargehand.cli.progress_lines import Progress
    from chargehand.cli.screen import Screen
    from chargehand.values.effect import Question

# Pasted lines arrive together: lines within this time belong to the same answer.
PASTE_S = 0.05


class Terminal:
    """Asks while the progress display is paused. Ctrl-D leaves a question for later."""

    def __init__(self, screen: Screen, progress: Progress) -> None:
        self._screen = screen
        self._progress = progress

    @staticmethod
    def is_available() -> bool:
        """Whether a person reads stderr and types to stdin, and this program is in the foreground."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except OSError:
            return False  # not the controlling terminal of this process

    async def __call__(self, question: Question, wrong: str | None) -> str:
        with self._progress.hold():
            if wrong is None:
                self._show(question)
            while True:
                if wrong is not None:
                    self._write(f"{wrong}\n")
                # Keys typed before the question was shown do not answer it.
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
                self._write(f"{question.id}> ")
                try:
                    words = await _line(sys.stdin.fileno())
                except asyncio.CancelledError:
                    self._write("\n")  # answered elsewhere, or the run stops: the cursor is still behind the prompt
                    raise
                if words is None:
                    self._write("\n")
                    raise Later
                try:
                    return inputs.words_of(words.strip())
                except UsageError as error:
                    wrong = str(error)

    def _show(self, question: Question) -> None:
        self._write(f"\n{describe_question(question)}\n\n")
        self._write(f"Answer with: {' | '.join(typed_choices(question))}   (Ctrl-D: later)\n")

    def _write(self, text: str) -> None:
        print(fit(self._screen.clean(text), sys.stderr), end="", file=sys.stderr, flush=True)


async def _line(terminal: int) -> str | None:
    """The text typed until Enter; None when the input ends."""
    loop = asyncio.get_running_loop()
    parts: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # Called only when there is something to read, so that it does not block.
        try:
            parts.put_nowait(os.read(terminal, 65536))
        except OSError:
            parts.put_nowait(b"")  # the terminal is gone

    loop.add_reader(terminal, read)
    typed = b""
    try:
        while True:
            async with asyncio.timeout(PASTE_S if typed.endswith(b"\n") else None):
                part = await parts.get()
            if not part:
                return typed.decode("utf-8", "replace") if typed else None
            typed += part
    except TimeoutError:
        return typed.decode("utf-8", "replace")
    finally:
        loop.remove_reader(terminal)
