"""Small orders go one after the other to one child that keeps its tools loaded, because starting a child is slow.

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

# Longer than any small order takes. An order that takes longer goes to its own child without this limit.
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
        """The answer; None if there is none. After that, this child is not used again."""
        assert self._process.stdin is not None
        try:
            rest = memoryview(order + b"\n")
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
            answer = self._line(time.monotonic() + SECONDS)
        except (OSError, ValueError):  # the child is gone or was ended meanwhile
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
        """End the child. A thread that waits for its answer gets None at once."""
        # After it has ended, its process id may belong to another process.
        if self.alive:
            kill_group(self._process.pid)

    def close(self) -> None:
        """End it and close its pipes. Only for its last user: a new pipe may get the number of a closed one."""
        self.end()
        with self._process:
            pass


_child: _Child | None = None
_starting = threading.Lock()
# One order at a time, also with several event loops. Each loop waits for its turn without a thread.
_busy = threading.Lock()
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def begin() -> _Child | None:
    """The child, started if necessary; None if that fails. Linux ends it with the thread that calls this."""
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
    """The answer to an order, or None: then give the order to its own child, which reports the error."""
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
