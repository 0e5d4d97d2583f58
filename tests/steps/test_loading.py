"""What a planned run needs after its plan is loaded while the planner is waited for."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from chargehand.steps import run_steps


def test_what_is_missing_is_loaded_during_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread: the loop may do something else meanwhile."""

    async def wait() -> str:
        loop, loaded = asyncio.get_running_loop(), asyncio.Queue[str]()

        def load(name: str) -> None:
            loop.call_soon_threadsafe(loaded.put_nowait, name)

        monkeypatch.setattr(run_steps, "NEEDED_LATER", ("later",))
        monkeypatch.setattr(run_steps, "import_module", load)
        with run_steps.load_meanwhile():
            return await loaded.get()

    assert asyncio.run(wait()) == "later"


def test_nothing_is_loaded_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that answers at once is not held up: loading is not begun after it."""
    begun: list[bool] = []
    monkeypatch.setattr(run_steps, "load_in_thread", lambda: begun.append(True))
    monkeypatch.setattr(run_steps, "LOAD_AFTER_S", 0.0)

    async def wait() -> None:
        with run_steps.load_meanwhile():
            pass
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(wait())
    assert not begun


def test_what_is_needed_later_is_not_loaded_with_the_steps() -> None:
    """Else there would be nothing to load ahead."""
    code = f"import sys, chargehand.steps.run_steps; print([n for n in {run_steps.NEEDED_LATER} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
