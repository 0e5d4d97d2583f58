"""How work that becomes due at once is spread over turns of the event loop."""

from __future__ import annotations

import asyncio

from chargehand.limits.event_loop_turns import LoopTurns


async def turns_taken(turns: LoopTurns, numbers: range) -> list[int]:
    """For each of the tasks in their order, the turn of the loop in which it continued."""
    loop, turn, taken = asyncio.get_running_loop(), 0, dict[int, int]()

    def count() -> None:
        nonlocal turn
        turn += 1
        if len(taken) < len(numbers):
            loop.call_soon(count)

    async def work(number: int) -> None:
        await turns.wait()
        taken[number] = turn

    loop.call_soon(count)
    await asyncio.gather(*(work(number) for number in numbers))
    assert list(taken) == list(numbers)
    return list(taken.values())


def test_only_so_many_continue_in_a_turn_and_in_order() -> None:
    """A burst is spread over as many turns as it needs; none is lost, none overtakes another."""

    async def main() -> None:
        turns = LoopTurns(10)
        taken = await turns_taken(turns, range(95))
        assert max(map(taken.count, taken)) == 10
        assert taken == sorted(taken)
        # Later there is no trace of the burst.
        assert len(set(await turns_taken(turns, range(10)))) == 1

    asyncio.run(main())


def test_one_that_is_cancelled_while_it_waits_takes_no_turn() -> None:
    """Those behind it continue in its place."""

    async def main() -> None:
        turns = LoopTurns(2)
        tasks = [asyncio.create_task(turns.wait()) for _ in range(6)]
        await asyncio.sleep(0)
        for task in tasks[2:4]:
            task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert [type(end) for end in ends] == [type(None)] * 2 + [asyncio.CancelledError] * 2 + [type(None)] * 2

    asyncio.run(main())
