"""Work of the supervisor's own under the run's deadline -> its result, or the verdict that it came too late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from chargehand.engine import Engine

T = TypeVar("T")


async def in_time(engine: Engine, where: str, seconds: float | None, work: Callable[[], Awaitable[T]]) -> T | None:
    """What the work comes to; None when its seconds were over first, in this session or in one before.

    The verdict is on the record under `where/deadline` before it is acted on; a later deadline takes it back.
    """
    key = f"{where}/deadline"
    if engine.decided(key) is not None:
        return None
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await work()
    except TimeoutError:
        if not clock.expired():
            raise
    await engine.decide(key, "deadline", lambda: {"after_s": seconds}, f"It was not ready in the {seconds:g} s left.")
    return None
