"""Two thousand runs of random worlds on virtual time keep every invariant, and a crash anywhere changes no outcome.

That many in a soak, a tenth of them else.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from chargehand.record.memory_journal import MemoryStore
from tests.counts import STEP, count
from tests.simulation.play import Played, play
from tests.simulation.world import World

BASE = os.environ.get("CHARGEHAND_SEED", "1")
CHUNKS, WORLDS = 8, count(250)
CRASH_WORLDS = 10
NARROW_WORLDS = count(150)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_simulated_runs_keep_every_invariant(chunk: int) -> None:
    """Random plans, faults, limits, interruptions and crashes: each run ends and breaks no rule."""
    for number in range(WORLDS):
        seed = f"{BASE}/{chunk}/{number}"
        try:
            played = play(World(seed))
            if number % 5 == 0:
                assert play(World(seed)).events == played.events, "the same seed gave another trace"
        except BaseException as error:
            error.add_note(f"world {seed!r}: replay it with play(World({seed!r}))")
            raise


def test_one_call_at_a_time_ends_every_run() -> None:
    """With a single slot nothing waits for what cannot come."""
    for number in range(NARROW_WORLDS):
        seed = f"{BASE}/narrow/{number}"
        try:
            play(World(seed, slots=1))
        except BaseException as error:
            error.add_note(f"world {seed!r}: replay it with play(World({seed!r}, slots=1))")
            raise


@pytest.mark.parametrize("number", range(CRASH_WORLDS))
def test_a_crash_after_any_event_gives_the_same_outcomes(number: int) -> None:
    """Cut after any event (every tenth but in a soak), the resumed run ends as the uninterrupted one did."""
    seed = f"{BASE}/crash/{number}"
    whole = play(World(seed, calm=True))
    expected = _without_time(whole)
    for kept in range(1 + number % STEP, len(whole.store.events), STEP):
        world = World(seed, calm=True)
        resumed = play(world, store=MemoryStore(whole.store.events[:kept], dict(whole.store.blobs)))
        if not _taken_out(whole) and not _taken_out(resumed):  # who fails three in a row depends on the time of day
            assert _without_time(resumed) == expected, f"world {seed!r} cut after event {kept}"


def _taken_out(played: Played) -> bool:
    """Whether a worker was taken out, for a while or for good."""
    return any(e.kind == "breaker_changed" and e.data["name"].startswith("worker ") for e in played.events)


def _without_time(played: Played) -> dict[str, Any]:
    """The report without seconds, and without what is counted, and noted, for calls that a crash broke off."""
    data = played.report.to_json()
    del data["timing"]
    for usage in (data["usage"], *(outcome["usage"] for outcome in data["outcomes"])):
        del usage["seconds"], usage["waiting_s"]
    lost = [e.data["lost"] for e in played.events if e.kind == "budget_settled" and e.data.get("lost")]
    for name in ("input_tokens", "output_tokens", "calls"):
        data["usage"][name] -= sum(usage[name] for usage in lost)
    noted = [note for note in data["notes"] if "broken off" in note]
    assert len(noted) == (1 if lost else 0)
    return data | {"notes": [note for note in data["notes"] if note not in noted]}
