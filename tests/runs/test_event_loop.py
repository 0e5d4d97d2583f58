"""What a run changes in its process while it is under way, and restores: the collector and the loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.runs.event_loop import less_collecting, run_in_loop, wait_to_begin
from chargehand.testing import ScriptedModel

USUAL = (700, 10, 10)
RAISED = (10_000, 100, 20)
PLAN: dict[str, Any] = {
    "goal": "Write",
    "tasks": [{"id": "t1", "worker": "writer", "instruction": "Write two words.", "success_criterion": "Two words."}],
}


@pytest.fixture(autouse=True)
def _usual_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_the_last_run_to_end_restores_the_collector() -> None:
    """Runs that overlap share the raised thresholds."""
    with less_collecting():
        with less_collecting():
            assert gc.get_threshold() == RAISED
        assert gc.get_threshold() == RAISED
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [(0, 0, 0), (50_000, 10, 10)])
def test_a_collector_that_is_off_or_looks_less_often_is_left_alone(own: tuple[int, int, int]) -> None:
    """The caller's own choice counts."""
    gc.set_threshold(*own)
    with less_collecting():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_thresholds_set_meanwhile_are_kept() -> None:
    """Somebody else's change is not undone."""
    with less_collecting():
        gc.set_threshold(5, 5, 5)
    assert gc.get_threshold() == (5, 5, 5)


def test_runs_that_begin_together_do_so_a_few_in_each_turn_of_the_loop() -> None:
    """Whoever else is on the loop gets through between them; one by itself begins at once."""

    async def main() -> tuple[list[int], int]:
        begun: list[int] = []

        async def begin() -> None:
            await wait_to_begin()
            begun.append(turn)

        turn = 0
        runs = [asyncio.create_task(begin()) for _ in range(200)]
        while len(begun) < len(runs):
            await asyncio.sleep(0)
            turn += 1
        await asyncio.sleep(0)
        last = turn
        await begin()
        return [begun.count(each) for each in range(last)], begun[-1] - last

    in_each, later = asyncio.run(main())
    assert max(in_each) <= 8
    assert later == 0


def test_a_run_from_python_raises_the_thresholds_and_restores_them(tmp_path: Path) -> None:
    """As one from the command line does; nothing is frozen."""
    seen: list[tuple[int, int, int]] = []
    model = ScriptedModel([{"reply": {"json": {"summary": "Done.", "output": "two words", "confidence": 90}}}])
    supervisor = Supervisor(Team([Worker("writer", "Writes")]), model=model, home=tmp_path)
    frozen = gc.get_freeze_count()
    report = supervisor.run_sync("Write", plan=PLAN, on_event=lambda _: seen.append(gc.get_threshold()))
    assert report.status == "complete"
    assert set(seen) == {RAISED}
    assert gc.get_threshold() == USUAL
    # Nothing was frozen; what a test before froze may have been freed meanwhile.
    assert gc.get_freeze_count() <= frozen


def test_what_a_run_made_is_freed_at_its_end_without_the_collector(tmp_path: Path) -> None:
    """Else the collector goes through all of it, in the loop, as soon as the thresholds are restored."""
    done = {"summary": "Done.", "output": "two words", "confidence": 90}
    script = [{"when": {"role": "worker"}, "reply": {"json": done}}, {"reply": {"json": {"answer": "Two words [t1]."}}}]

    def count_garbage(tasks: int) -> int:
        plan = PLAN | {"tasks": [PLAN["tasks"][0] | {"id": f"t{number}"} for number in range(1, tasks + 1)]}
        supervisor = Supervisor(Team([Worker("writer", "Writes")]), model=ScriptedModel(script), home=tmp_path)
        gc.collect()
        gc.disable()
        try:
            report = supervisor.run_sync("Write", plan=plan)
            assert len(report.outcomes) == tasks
            del report
            return gc.collect()
        finally:
            gc.enable()

    count_garbage(2)
    more = count_garbage(42) - count_garbage(2)
    assert more < 2 * 40, f"{more / 40} values for each task"


def test_a_run_is_on_uvloop_where_it_is_installed() -> None:
    """And on the loop of the standard library where it is not."""

    async def loop_class() -> str:
        return type(asyncio.get_running_loop()).__module__

    pytest.importorskip("uvloop")
    assert run_in_loop(loop_class()).startswith("uvloop")
