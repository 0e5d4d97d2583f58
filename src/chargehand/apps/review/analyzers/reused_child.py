"""Small orders go one after the other to one child that keeps its tools loaded: most of a child's time is its start.

It is started at the first order or before it, and ends after a time without orders or with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import subprocess
import threading
import time
from weakref import WeakKeyDictionary

from chargehand.apps.review.analyzers import child, tool_process
from chargehand.process import kill_group

# Longer than any small order takes. What takes longer is asked alone, with all the time there is.
SECONDS = 60.0


class _Child:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            child.command("standing", *child.MODULES),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            cwd=os.sep,
            env=tool_process.environment(),
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def obey(self, order: bytes) -> bytes | None:
        """The answer, or None when there is none; then it is not asked again."""
        assert self._process.stdin is not None
        try:
            rest = memoryview(order + b"\n")
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
            answer = self._line(time.monotonic() + SECONDS)
        except (OSError, ValueError):  # it is gone, or was ended meanwhile
            answer = None
        if answer is None:
            self.close()
        return answer or None

    def _line(self, until: float) -> bytes | None:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        parts: list[bytes] = []
        size = 0
        while select.select([pipe], [], [], max(until - time.monotonic(), 0.0))[0]:
            part = os.read(pipe, 65536)
            size += len(part)
            if not part or size > tool_process.MAX_OUTPUT:
                return None
            parts.append(part)
            if part.endswith(b"\n"):
                return b"".join(parts)[:-1]
        return None

    def end(self) -> None:
        """A thread that waits for its answer gets none, at once."""
        # Once it is known to be gone its number may be another's.
        if self.alive:
            kill_group(self._process.pid)

    def close(self) -> None:
        """End it and close its pipes, as its only user: a new pipe may get the number of a closed one."""
        self.end()
        with self._process:
            pass


_child: _Child | None = None
_starting = threading.Lock()
# One order at a time, also when several loops have them; each loop waits for its own turn without a thread.
_busy = threading.Lock()
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def begin() -> _Child | None:
    """The child, started if it is not there; None where it cannot be. Linux ends it with the thread that calls this."""
    global _child  # noqa: PLW0603 -- one for the process, as its children are
    with _starting:
        if _child is None:
            atexit.register(end)
        elif not _child.alive:
            end()
        if _child is None or not _child.alive:
            try:
                _child = _Child()
            except OSError:
                return None
        return _child


def end() -> None:
    if _child is not None:
        _child.end()
        with _busy:
            _child.close()


async def ask(order: bytes) -> bytes | None:
    """The answer to an order, or None: then give it to a child of its own, which reports what is wrong."""
    turn = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with turn:
        standing = begin()
        if standing is None:
            return None
        try:
            return await asyncio.to_thread(_send_order, standing, order)
        except asyncio.CancelledError:
            standing.end()  # so that the thread is free
            raise


def _send_order(standing: _Child, order: bytes) -> bytes | None:
    with _busy:
        return standing.obey(order)
