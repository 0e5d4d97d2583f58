"""Small orders given at about the same time become one child that obeys them all: most of its time is its start."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from chargehand.analyzers import child, process
from chargehand.errors import AnalyzerFailed

# How long an order waits for others to join it.
WAIT_S = 0.02


@dataclass(slots=True, eq=False)
class _Order:
    module: str
    text: bytes
    # None when the child left no answer: each is then asked alone, so that one that fails harms no other.
    answer: asyncio.Future[bytes | None]


# The orders nobody has taken to a child yet, of each loop.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Order]] = WeakKeyDictionary()


async def ask(module: str, text: bytes) -> bytes | None:
    """The answer to one order, or None. Whoever has waited longest goes for all that wait."""
    loop = asyncio.get_running_loop()
    waiting = _waiting.setdefault(loop, [])
    order = _Order(module, text, loop.create_future())
    waiting.append(order)
    try:
        await asyncio.sleep(WAIT_S)
        if order in waiting:
            party, waiting[:] = waiting[:], []
            await _go(party)
        return await order.answer
    finally:
        if order in waiting:
            waiting.remove(order)


async def _go(party: list[_Order]) -> None:
    answers: list[bytes | None] = [None] * len(party)
    try:
        command = child.command(",".join(order.module for order in party))
        ended = await process.run(command, tool="analyzers", stdin=b"\n".join(order.text for order in party))
        lines = ended.stdout.split(b"\n")
        if ended.code == 0 and len(lines) == len(party):
            answers = [*lines]
    except AnalyzerFailed:
        return  # asked alone, each says what is wrong
    finally:
        # Also when this one is cancelled: the others go on by themselves.
        for order, answer in zip(party, answers, strict=True):
            if not order.answer.done():
                order.answer.set_result(answer)
