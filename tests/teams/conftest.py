"""Whole runs of the shipped teams, each made once, and a shell of its own for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.terminal import Shell
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


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "CHARGEHAND_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, monkeypatch, capsys)
