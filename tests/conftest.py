"""A shell for each test of a command: its own folder, its own home, no keys, no settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "CHARGEHAND_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, monkeypatch, capsys)
