"""No hostile path leads any tool out of the request's material and the run's folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pytest

from chargehand.tools import BUILTIN, call, sql
from tests.tools.hostile import SECRET, paths, trapped

# What means something allowed to one of the tools: all material, the file itself, a pipe that lists as nothing.
HARMLESS = {
    "write_document": (),
    "read_file": ("docs/a.txt/",),
    "list_files": ("", "docs/a.txt/", "docs/pipe"),
}


def everything(folder: Path) -> list[tuple[str, float]]:
    return sorted((str(path), path.lstat().st_mtime) for path in folder.rglob("*"))


def test_the_list_of_hostile_paths_is_long(tmp_path: Path) -> None:
    """At least 100 of them, no two the same."""
    found = paths(tmp_path)
    assert len(found) == len(set(found)) >= 150


@pytest.mark.parametrize(
    ("tool", "argument", "more"),
    [
        ("write_document", "name", {"text": "hello"}),
        ("read_file", "path", {}),
        ("list_files", "path", {}),
    ],
)
def test_every_hostile_path_is_refused(tmp_path: Path, tool: str, argument: str, more: dict[str, str]) -> None:
    """By every tool that takes one: nothing outside is shown, and nothing anywhere is changed."""
    context = trapped(tmp_path)
    before = everything(tmp_path)
    for path in paths(tmp_path):
        if path in HARMLESS[tool]:
            continue
        result = asyncio.run(call(BUILTIN[tool], {argument: path, **more}, context))
        assert result.error is not None, (path, result.text)
        assert SECRET not in result.error.message
        if str(tmp_path) not in path:
            assert str(tmp_path) not in result.error.message, "the real path is nobody's to know"
    assert everything(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["list_files", "search_files", "search_documents"])
def test_no_hostile_pattern_finds_anything_outside(tmp_path: Path, tool: str) -> None:
    """A pattern chooses among the material's own files: it is a test of names, never a path that is opened."""
    context = trapped(tmp_path)
    query = {} if tool == "list_files" else {"query": "outside-and-secret outside secret"}
    for path in paths(tmp_path):
        result = asyncio.run(call(BUILTIN[tool], {"pattern": path or "*", **query}, context))
        told = result.text if result.error is None else result.error.message
        assert SECRET not in told
        assert "secret.txt" not in told.replace(path, "")


def test_no_hostile_path_is_opened_by_sql(tmp_path: Path) -> None:
    """Where queries run no file can be opened, under whatever name and by whatever function."""
    trapped(tmp_path)
    with sql._connection() as base:  # pyright: ignore[reportPrivateUsage]
        sql._lock(base)  # pyright: ignore[reportPrivateUsage]
        for path in [*paths(tmp_path), str(tmp_path / "secret.txt")]:
            name = path.encode("utf-8", "replace").decode().replace("\0", "").replace("'", "''")
            for reader in ("read_text", "read_csv", "read_blob", "read_json", "read_parquet", "glob"):
                with pytest.raises(duckdb.Error) as refused:
                    base.execute(f"FROM {reader}('{name}')").fetchall()
                assert SECRET not in str(refused.value)
