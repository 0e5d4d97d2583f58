"""Whole runs of the shipped teams, each made once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.teams.plays import Played, play


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Played]:
    """The run of a team's main example."""
    runs: dict[str, Played] = {}

    def run(team: str) -> Played:
        if team not in runs:
            runs[team] = play(team, tmp_path_factory.mktemp(team))
        return runs[team]

    return run
