"""How runs use the interpreter: uvloop where installed, rarer garbage collection, and few runs begun in one turn."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from chargehand.limits.event_loop_turns import LoopTurns

T = TypeVar("T")

# How many runs begin in one turn of a loop: each computes for some milliseconds before its first call.
_BEGIN_AT_ONCE = 4
_beginnings: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()

# A wide run makes many values that live to its end: the collector finds little to free among them.
# Each of the frequent collections looks at this many new values: more of them would stop the loop for too long.
_THRESHOLDS = (10_000, 100, 20)
# How many runs are under way in this process, and what the thresholds were before the first of them.
_under_way = 0
_before = (700, 10, 10)


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work` on an event loop of its own: uvloop's if it is installed (`chargehand[fast]`)."""
    make = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(work)


async def wait_to_begin() -> None:
    """Return when a run may begin: at once, or in one of the next turns of the loop if many begin together."""
    loop = asyncio.get_running_loop()
    if (turns := _beginnings.get(loop)) is None:
        turns = _beginnings[loop] = LoopTurns(_BEGIN_AT_ONCE)
    await turns.wait()


@contextmanager
def less_collecting() -> Generator[None]:
    """Raises the collector's thresholds while any run is under way; the last one to end restores them.

    Thresholds that are higher already, or that somebody else sets meanwhile, are left alone.
    """
    global _under_way, _before  # noqa: PLW0603 -- the collector belongs to the process, and so does this count
    if _under_way == 0:
        _before = gc.get_threshold()
        if 0 < _before[0] < _THRESHOLDS[0]:
            gc.set_threshold(*_THRESHOLDS)
    _under_way += 1
    try:
        yield
    finally:
        _under_way -= 1
        if _under_way == 0 and gc.get_threshold() == _THRESHOLDS:
            gc.set_threshold(*_before)
