"""Files of a commit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers.git import read_files
from tests.apps.review.analyzers.corpus_run import git

CONTENT = {"z.py": b"z = 1\n", "a b.py": b"", "new\nline.py": b"no end", "*.py": b"\xff\0\n\n", "é.py": b"1\n2\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    for folder in (tmp_path, tmp_path / "inner"):
        folder.mkdir(exist_ok=True)
        for name, content in CONTENT.items():
            (folder / name).write_bytes(content)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "begin")
    return tmp_path


@pytest.mark.parametrize("folder", [".", "inner"])
@pytest.mark.parametrize("at_once", [1, 2, 25])
def test_files_are_read_in_the_given_order(
    repository: Path, folder: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes of any kind under names of any kind, relative to the folder; what is not a file there is left out."""
    monkeypatch.setattr("chargehand.apps.review.analyzers.git.FILES_AT_ONCE", at_once)
    paths = ["gone.py", *CONTENT, "inner", "also gone.py"]
    found = asyncio.run(read_files(repository / folder, "HEAD", paths))
    assert list(found.items()) == list(CONTENT.items())


def test_an_unknown_commit_has_no_files(repository: Path) -> None:
    assert asyncio.run(read_files(repository, "0" * 40, ["z.py"])) == {}


def test_a_file_that_is_too_large_is_left_out(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chargehand.apps.review.analyzers.git.MAX_BYTES", 5)
    assert list(asyncio.run(read_files(repository, "HEAD", ["z.py", "é.py"]))) == ["é.py"]
