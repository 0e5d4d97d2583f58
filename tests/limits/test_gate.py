"""The gate: never over its limit, lowest order first, and no slot is lost to cancellation."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.limits import Gate
from chargehand.testing import run_virtual
from tests.counts import examples


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32))
def test_the_gate_is_never_over_its_limit_and_loses_no_slot(limit: int, seed: int) -> None:
    """Any interleaving of holding, leaving and being cancelled ends with every slot free and everybody served."""
    chance = random.Random(seed)
    inside = most = served = 0

    async def hold(gate: Gate) -> None:
        nonlocal inside, most, served
        await gate.acquire(chance.randrange(5))
        inside += 1
        most = max(most, inside)
        try:
            await asyncio.sleep(chance.choice((0, 0, 1, 2)))
            served += 1
        finally:
            inside -= 1
            gate.release()

    async def main() -> int:
        gate = Gate(limit)
        tasks = [asyncio.create_task(hold(gate)) for _ in range(15)]
        cancelled = 0
        for task in tasks:
            if chance.random() < 0.4:
                await asyncio.sleep(chance.choice((0, 0, 0.5, 1)))
                cancelled += task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ended)
        assert gate.held == 0
        return cancelled

    cancelled, _ = run_virtual(main())
    assert most <= limit
    assert served >= 15 - cancelled


def test_a_free_slot_goes_to_the_lowest_order() -> None:
    """Not to who came first; equal orders go by arrival."""
    order: list[str] = []

    async def hold(gate: Gate, number: int, name: str) -> None:
        await gate.acquire(number)
        order.append(name)
        await asyncio.sleep(1)
        gate.release()

    async def main() -> None:
        gate = Gate(1)
        async with asyncio.TaskGroup() as group:
            for number, name in ((9, "first"), (5, "late"), (1, "early"), (5, "later"), (0, "earliest")):
                group.create_task(hold(gate, number, name))

    run_virtual(main())
    assert order == ["first", "earliest", "early", "late", "later"]


@pytest.mark.parametrize("turns", [0, 1])
def test_a_slot_handed_over_in_the_moment_of_cancellation_goes_on(turns: int) -> None:
    """The one it was handed to is cancelled before it runs: the next in line gets it."""

    async def main() -> None:
        gate = Gate(1)
        await gate.acquire(0)
        doomed = asyncio.create_task(gate.acquire(1))
        heir = asyncio.create_task(gate.acquire(2))
        await asyncio.sleep(0)
        if turns:
            doomed.cancel()
            gate.release()
        else:
            gate.release()
            doomed.cancel()
        await heir
        assert doomed.cancelled()
        assert gate.held == 1
        gate.release()
        assert gate.held == 0

    run_virtual(main())
