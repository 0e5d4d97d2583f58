"""What users get for their own tests."""

from __future__ import annotations

import asyncio

import pytest

from chargehand import testing


def test_a_deadlock_says_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of each task, and the coroutines that it is in."""
    monkeypatch.setattr(testing, "LONGEST_REAL_WAIT_S", 0.0)

    async def wait_for_nothing() -> None:
        await asyncio.Event().wait()

    with pytest.raises(testing.Deadlock, match=r"wait_for_nothing > Event\.wait"):
        testing.run_virtual(wait_for_nothing())
