"""The supervisor's own work under the run's deadline -> its result, or the verdict that it came too late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from chargehand.engine.port import Engine

T = TypeVar("T")


async def in_time(engine: Engine, where: str, seconds: float | None, work: Callable[[], Awaitable[T]]) -> T | None:
    """The result of the work; None when its time ended first, in this session or in an earlier one.

    Results on the record take no time: the work reads them again to restore its state. It is cut off where it would
    begin something new too late. The verdict is on the record under `where/deadline` before it is acted on; a later
    deadline takes it back.
    """
    key = f"{where}/deadline"
    over = engine.record.decision(key) is not None
    if seconds is None and not over:
        return await work()
    loop = asyncio.get_running_loop()
    until = engine.clock.now() + (0.0 if over or seconds is None else seconds)
    begun = False
    clock: asyncio.Timeout | None = None

    def time_left() -> float | None:
        return max(until - engine.clock.now(), 0.0) if begun else None

    async def begin() -> None:
        nonlocal begun
        assert clock is not None
        if not begun:
            begun = True
            clock.reschedule(loop.time() + (time_left() or 0.0))
        if not time_left():
            await loop.create_future()  # until the deadline

    try:
        async with engine.clock.timeout(key, time_left) as clock:
            with engine.clock.gate(begin):
                made = await work()
        if not over:
            return made
    except TimeoutError:
        if clock is None or not clock.expired():
            raise
    if not over:
        reason = f"It was not ready in the {round(seconds or 0, 1):g} s left."
        await engine.decide(key, "deadline", lambda: {"after_s": seconds}, reason)
    return None
