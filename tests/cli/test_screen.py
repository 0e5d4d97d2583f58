"""What is printed, and how wide."""

from __future__ import annotations

import shutil

import pytest

from chargehand.cli.screen import terminal_columns


@pytest.mark.parametrize("columns", ["0", "-5", "wide", "", "37", None])
def test_the_width_is_what_the_standard_library_says(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without loading it: a width that is no number, or none, is that of the terminal, and else 80."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert terminal_columns() == shutil.get_terminal_size().columns
