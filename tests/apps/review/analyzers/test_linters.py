"""Linters of other languages, and notebooks: findings at the lines of the file; a missing linter is no error."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.apps.review.analyzers.linters import installed_languages
from chargehand.apps.review.analyzers.notebooks import code_lines
from chargehand.apps.review.languages import count_unanalysed
from tests.apps.review.analyzers.running import analyzed, write

SHELLCHECK = {
    "comments": [
        {
            "file": "$FILE",
            "line": 2,
            "endLine": 2,
            "column": 1,
            "endColumn": 4,
            "level": level,
            "code": code,
            "message": "m",
        }
        for level, code in (("error", 1089), ("warning", 2034), ("style", 2006), ("warning", 2115))
    ]
}
BIOME = {
    "diagnostics": [
        {
            "severity": "error",
            "message": "m",
            "category": "lint/suspicious/noDebugger",
            "location": {"path": "$FILE", "start": {"line": 1, "column": 3}, "end": {"line": 1, "column": 9}},
        }
    ]
}
HADOLINT = [{"file": "$FILE", "line": 1, "column": 1, "level": "error", "code": "DL3000", "message": "m"}]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, but for the shell's own."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    # What is installed here must not decide.
    found = {name: str(folder / name) for name in ("shellcheck", "hadolint", "biome")}
    monkeypatch.setattr(
        shutil, "which", lambda name: path if (path := found.get(name)) and Path(path).exists() else None
    )
    return folder


def install(programs: Path, name: str, output: object) -> None:
    """A program that says this of the last file it is given."""
    text = json.dumps(output) if not isinstance(output, str) else output
    path = programs / name
    path.write_text(f"#!/bin/sh\nfor FILE; do :; done\ncat <<EOF\n{text}\nEOF\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("program", "output", "file", "found"),
    [
        ("shellcheck", SHELLCHECK, "a.sh", [("likely-bug", 2, 90)]),
        ("biome", BIOME, "a.ts", [("debug-leftover", 1, 86)]),
        ("hadolint", HADOLINT, "Dockerfile", [("likely-bug", 1, 86)]),
    ],
)
def test_a_linter_that_is_installed_looks_at_its_language(
    tmp_path: Path, programs: Path, program: str, output: object, file: str, found: list[tuple[str, int, int]]
) -> None:
    """Of one category on a line the surest is kept, with all rules as sources."""
    install(programs, program, output)
    root = tmp_path / "tree"
    said = analyzed("linters", root, {file: "one\ntwo\n", "b.rs": "x\n"}).findings
    assert [(f.category, f.line, f.confidence) for f in said] == found


def test_without_a_linter_nothing_is_said_and_the_language_is_not_analysed(tmp_path: Path, programs: Path) -> None:
    root = tmp_path / "tree"
    result = analyzed("linters", root, {"a.sh": "x\n"})
    assert (result.findings, result.unchecked) == ((), {})
    assert count_unanalysed(["a.sh"], root) == {"Shell": 1}
    install(programs, "shellcheck", SHELLCHECK)
    assert count_unanalysed(["a.sh"], root) == {}


@pytest.mark.parametrize("output", ["", "not JSON", "[1]", "{}"])
def test_a_linter_that_gives_no_result_leaves_a_gap(tmp_path: Path, programs: Path, output: str) -> None:
    install(programs, "shellcheck", output)
    assert list(analyzed("linters", tmp_path / "tree", {"a.sh": "x\n"}).unchecked) == ["a.sh"]


def test_a_program_of_the_reviewed_tree_is_not_started(tmp_path: Path, programs: Path) -> None:
    """It is part of what is reviewed."""
    install(programs, "shellcheck", SHELLCHECK)
    write(tmp_path, {"a.sh": "x\n"})
    assert analyzed("linters", tmp_path, ("a.sh",)).findings == ()
    assert installed_languages(tmp_path) == frozenset()


def test_another_linter_is_another_version(programs: Path) -> None:
    before = ANALYZERS["linters"].version()
    install(programs, "shellcheck", SHELLCHECK)
    assert ANALYZERS["linters"].version() != before


def notebook(*cells: tuple[str, list[str]], indent: int | None = 1) -> str:
    more = {"code": {"outputs": [], "execution_count": None}}
    made = [{"cell_type": kind, "metadata": {}, "source": lines, **more.get(kind, {})} for kind, lines in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent)


def test_a_notebook_is_read_cell_by_cell_at_the_lines_of_its_file(tmp_path: Path) -> None:
    """A value alone on a line is usual there; text and output are no code."""
    code = ["import subprocess\n", "def f(items=[]):\n", "    subprocess.call(items, shell=True)\n", "f"]
    text = notebook(("markdown", ["def f(items=[]):\n"]), ("code", code))
    found = analyzed("notebooks", tmp_path, {"a.ipynb": text}).findings
    lines = text.split("\n")
    assert [(f.category, lines[(f.line or 0) - 1].strip()[1:8]) for f in found if (f.confidence or 0) >= 80] == [
        ("mutable-default", "def f(i"),
        ("command-injection", "    sub"),
    ]


@pytest.mark.parametrize("text", ["", "{}", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{"source": 4}]}', "[" * 9000])
def test_what_is_not_a_notebook_is_a_gap(tmp_path: Path, text: str) -> None:
    assert analyzed("notebooks", tmp_path, {"a.ipynb": text}).unchecked.keys() == {"a.ipynb"}


def test_a_notebook_on_one_line_has_one_line() -> None:
    text = notebook(("code", ["a = 1\n", "b = 'é'\n"]), indent=None)
    assert code_lines(text) == {(1, 1): 1, (1, 2): 1}
