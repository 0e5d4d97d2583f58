"""write_document writes into the run's own folder and nowhere else, whatever name it is given."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from chargehand.tools import BUILTIN, ToolContext, call
from chargehand.tools import write_document as write
from chargehand.values.effect import ToolResult
from tests.tools.hostile import SECRET


def put(context: ToolContext, name: str, text: str = "hello") -> ToolResult:
    return asyncio.run(call(BUILTIN["write_document"], {"name": name, "text": text}, context))


def test_a_document_is_written_for_its_owner_only(tmp_path: Path) -> None:
    """Its place is told; the text is whole; the folder is made at the first one."""
    context = ToolContext(folder=tmp_path / "run")
    result = put(context, "Plan (v1.2) blåbær.md", "# Plan\n\nblåbær ☃\n")
    assert "documents/Plan (v1.2) blåbær.md (21 bytes)" in result.text
    file = tmp_path / "run" / "documents" / "Plan (v1.2) blåbær.md"
    assert file.read_text(encoding="utf-8") == "# Plan\n\nblåbær ☃\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_writing_again_replaces(tmp_path: Path) -> None:
    """So a repeat after a crash is the same as once; no draft is left."""
    context = ToolContext(folder=tmp_path)
    put(context, "a.md", "one")
    put(context, "a.md", "two")
    assert put(context, "a.md", "two").text.startswith("Replaced documents/a.md")
    assert [(each.name, each.read_text()) for each in (tmp_path / "documents").iterdir()] == [("a.md", "two")]


def test_links_in_the_way_are_not_followed(tmp_path: Path) -> None:
    """Neither one in place of the folder nor one in place of the document."""
    (tmp_path / "secret.txt").write_text(SECRET)
    run = tmp_path / "run"
    (run / "documents").mkdir(parents=True)
    (run / "documents" / "a.txt").symlink_to(tmp_path / "secret.txt")
    assert put(ToolContext(folder=run), "a.txt").error is None
    assert (tmp_path / "secret.txt").read_text() == SECRET
    assert not (run / "documents" / "a.txt").is_symlink()
    other = tmp_path / "other"
    other.mkdir()
    (other / "documents").symlink_to(tmp_path)
    assert put(ToolContext(folder=other), "secret.txt").code == "failed"
    assert (tmp_path / "secret.txt").read_text() == SECRET


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document has at most a megabyte, a run at most so many; a run without a folder has none."""
    context = ToolContext(folder=tmp_path)
    assert put(context, "a.md", "é" * 500_001).code == "too_large"
    monkeypatch.setattr(write, "MAX_DOCUMENTS", 2)
    assert [put(context, f"{name}.md").code for name in "abca"] == [None, None, "too_large", None]
    assert put(ToolContext(), "a.md").code == "unavailable"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old document stays whole."""
    context = ToolContext(folder=tmp_path)
    put(context, "a.md", "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert put(context, "a.md", "new").code == "failed"
    assert [(each.name, each.read_text()) for each in (tmp_path / "documents").iterdir()] == [("a.md", "old")]
