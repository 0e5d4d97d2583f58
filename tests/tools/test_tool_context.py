"""`context.read` and `context.open`: a tool of a user's own reads the material, nothing else, and it is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from chargehand import ToolContext, tool
from chargehand.errors import ToolError
from chargehand.tools import call, still_valid
from chargehand.values.request import Material


@pytest.fixture(name="context")
def _context(tmp_path: Path) -> ToolContext:
    """A folder `docs` with a text, some data and ways out."""
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "docs"
    root.mkdir()
    (root / "notes.md").write_text("# Oslo\n717,710 people\n")
    (root / "data.bin").write_bytes(b"\x00\x01\n\xff")
    (root / "out").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(root / "pipe")
    return ToolContext(material=(Material(name="docs", path=str(root)),))


def test_a_text_is_read_by_its_name(context: ToolContext) -> None:
    """As the worker knows it; what was read, and how many lines it has, is noted."""
    assert context.read("docs/notes.md") == "# Oslo\n717,710 people\n"
    digest = hashlib.sha256(b"# Oslo\n717,710 people\n").hexdigest()
    assert (context.reads.hashes, context.reads.lines) == ({"docs/notes.md": digest}, {"docs/notes.md": 2})


def test_data_is_opened_by_its_name(context: ToolContext) -> None:
    """From its beginning, though it was hashed first."""
    with context.open("docs/data.bin") as file:
        assert file.read() == b"\x00\x01\n\xff"
    assert context.reads.hashes == {"docs/data.bin": hashlib.sha256(b"\x00\x01\n\xff").hexdigest()}
    assert context.reads.lines == {"docs/data.bin": 2}


def test_data_is_not_read_as_text(context: ToolContext) -> None:
    """The error says what to do."""
    with pytest.raises(ToolError) as refused:
        context.read("docs/data.bin")
    assert refused.value.code == "not_readable"
    assert "context.open" in str(refused.value)


@pytest.mark.parametrize(
    "name", ["docs/out", "docs/../secret.txt", "/etc/passwd", "docs/pipe", "docs", "docs/none", "other/notes.md", ""]
)
def test_nothing_else_is_reached(context: ToolContext, name: str) -> None:
    """Links, pipes, folders and other places are refused by both, and nothing is noted."""
    for reach in (context.read, context.open):
        with pytest.raises(ToolError):
            reach(name)
    assert context.reads.hashes == {}


def test_a_wrong_name_is_answered_with_names_of_files(context: ToolContext, tmp_path: Path) -> None:
    """A bounded number of them, and no tool that the worker may not have."""
    with pytest.raises(ToolError) as refused:
        context.read("docs/none")
    assert "docs/data.bin, docs/notes.md" in str(refused.value)
    assert "list_files" not in str(refused.value)
    for number in range(100):
        (tmp_path / "docs" / f"{number:03}.txt").touch()
    with pytest.raises(ToolError) as refused:
        context.read("other")
    assert "docs/009.txt" in str(refused.value)
    assert "docs/010.txt" not in str(refused.value)


@tool(effect="read")
def first_line(context: ToolContext, name: str) -> str:
    """The first line of a file."""
    with context.open(name) as file:
        return file.readline().decode()


def test_a_result_holds_until_what_was_read_changes(context: ToolContext) -> None:
    """A rerun takes the result of a tool only while the file is the same."""
    result = asyncio.run(call(first_line, {"name": "docs/notes.md"}, context))
    assert (result.text, result.lines) == ("# Oslo\n", {"docs/notes.md": 2})
    assert still_valid(result.reads, context)
    (Path(context.material[0].path) / "notes.md").write_text("# Bergen\n")
    assert not still_valid(result.reads, context)
