"""The comparison with other libraries still runs: in the soak, where its environments were made."""

from __future__ import annotations

import os

import pytest

from bench.peers.__main__ import PEERS, compare_faults, compare_speed, is_made


@pytest.mark.skipif("CHARGEHAND_SOAK" not in os.environ, reason="starts a dozen processes: make soak")
@pytest.mark.skipif(
    not all(is_made(peer) for peer in PEERS if peer.requirements), reason="python -m bench.peers makes the environments"
)
def test_every_library_does_the_job_and_says_how_it_failed() -> None:
    """A row for each in both tables; after kill -9 all of them end, and a record spares calls that were answered."""
    fast = list(compare_speed(4, 1))
    assert [row.split(" | ")[0] for row in fast[2:]] == [f"| {peer.name}" for peer in PEERS]
    ends = {row.split(" | ")[0]: row for row in compare_faults(4, statuses=())}
    assert "complete; 2 of 2 answered calls made again" in ends["| openai and gather"]
    assert "complete; 0 of 2 answered calls made again" in ends["| chargehand"]
