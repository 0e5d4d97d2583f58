"""Linters that run code of the project: only where it is trusted, and only sealed off."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import project_linters
from chargehand.apps.review.analyzers.project_linters import LINTERS, checked_languages
from chargehand.apps.review.languages import count_unanalysed
from chargehand.engine.analyzer_port import AnalyzerResult
from chargehand.programs.program_environment import find_means
from tests.apps.review.analyzers.running import analyzed

ESLINT = [
    {
        "filePath": "a.js",
        "messages": [
            {"ruleId": "no-undef", "severity": 2, "message": "m", "line": 2, "column": 1, "endLine": 2, "endColumn": 4},
            {"ruleId": "a/style", "severity": 1, "message": "m", "line": 3, "column": 1},
            {"ruleId": None, "fatal": True, "severity": 2, "message": "Parsing error", "line": 1, "column": 5},
        ],
    }
]
SPAN = {"is_primary": True, "file_name": "src/a.rs", "line_start": 3, "line_end": 4, "column_start": 1, "column_end": 2}
CLIPPY = [
    {"reason": "compiler-artifact"},
    {
        "reason": "compiler-message",
        "message": {"code": {"code": "clippy::eq_op"}, "level": "error", "message": "m", "spans": [SPAN]},
    },
    {"reason": "compiler-message", "message": {"code": None, "level": "warning", "message": "1 warning", "spans": []}},
    {"reason": "build-finished", "success": False},
]
VET = '# example.org/a\n{"example.org/a": {"printf": [{"posn": "/a/main.go:6:2", "message": "m"}]}}\n# b\n{"b": {}}\n'


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "eslint",
            json.dumps(ESLINT),
            [("a.js", "eslint:no-undef", 2, 86), ("a.js", "eslint:style", 3, 70), ("a.js", "eslint:parse", 1, 86)],
        ),
        ("clippy", "\n".join(map(json.dumps, CLIPPY)), [("src/a.rs", "clippy:eq_op", 3, 86)]),
        ("go vet", VET, [("/a/main.go", "vet:printf", 6, 86)]),
    ],
)
def test_what_a_linter_writes_is_read(name: str, text: str, found: list[tuple[str, str, int, int]]) -> None:
    """File, rule, line and confidence."""
    (linter,) = (each for each in LINTERS if each.name == name)
    assert [(file, hit.rule, hit.line, hit.confidence) for file, hit in linter.read(text)] == found


def install(root: Path, script: str) -> None:
    """An eslint of the project's own."""
    program = root / "node_modules" / ".bin" / "eslint"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    (root / "package.json").write_text("{}", encoding="utf-8")


def check(root: Path, *, trusted: bool) -> AnalyzerResult:
    options = {"trusted": True} if trusted else {}
    return analyzed("project-linters", root, {"a.js": "one\ntwo\nthree\n"}, options=options)


def test_in_a_folder_that_is_not_trusted_it_is_not_started_and_that_is_said(tmp_path: Path) -> None:
    """One line, and no gap."""
    install(tmp_path, "touch started; exit 1")
    result = check(tmp_path, trusted=False)
    assert (result.findings, result.unchecked) == ((), {})
    assert len(result.notes) == 1
    assert not (tmp_path / "started").exists()
    assert count_unanalysed(["a.js"], tmp_path) == {"JavaScript": 1}


def test_without_a_sandbox_it_is_not_started_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust alone is not enough."""

    async def none(*, network: bool) -> str:
        return "none"

    install(tmp_path, "touch started; exit 1")
    monkeypatch.setattr(project_linters, "find_means", none)
    result = check(tmp_path, trusted=True)
    assert (result.findings, len(result.notes)) == ((), 1)
    assert not (tmp_path / "started").exists()


def test_in_a_trusted_folder_it_looks_and_cannot_write(tmp_path: Path) -> None:
    """Its findings are at the lines of the file; the project stays as it was."""
    if asyncio.run(find_means(network=False)) == "none":
        pytest.skip("no sandbox on this machine")
    said = json.dumps(ESLINT).replace('"a.js"', '"$FILE"')
    install(tmp_path, f"for FILE; do :; done\ntouch started\ncat <<EOF\n{said}\nEOF")
    result = check(tmp_path, trusted=True)
    assert [(each.line, each.category) for each in result.findings] == [
        (1, "syntax-error"),
        (2, "likely-bug"),
        (3, "likely-bug"),
    ]
    assert not (tmp_path / "started").exists()
    assert checked_languages(tmp_path) == {"JavaScript", "TypeScript"}
    assert count_unanalysed(["a.js"], tmp_path, trusted=True) == {}


def test_one_that_gives_no_result_leaves_a_gap(tmp_path: Path) -> None:
    if asyncio.run(find_means(network=False)) == "none":
        pytest.skip("no sandbox on this machine")
    install(tmp_path, "exit 2")
    assert list(check(tmp_path, trusted=True).unchecked) == ["a.js"]


def test_a_project_is_the_nearest_folder_or_for_rust_the_outermost(tmp_path: Path) -> None:
    """A crate of a workspace is built from the top."""
    for path in ("Cargo.toml", "part/Cargo.toml", "go.mod", "part/go.mod"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    clippy, vet = LINTERS[1:]
    projects = project_linters.projects_of
    assert projects(tmp_path, ["part/src/a.rs"], clippy) == {".": ["part/src/a.rs"]}
    assert projects(tmp_path, ["part/a.go"], vet) == {"part": ["part/a.go"]}
    assert projects(tmp_path.parent, ["elsewhere/a.go"], vet) == {}
