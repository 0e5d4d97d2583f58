"""Help: cheap to get, complete, and the same in the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.cli import COMMANDS
from scripts.reference import cli_reference, write_reference
from tests.cli.terminal import ROOT, Shell, finished, process

HEAVY = {"asyncio", "aiohttp", "pydantic", "pydantic_core", "rich", "sqlite3", "chargehand.runs.supervisor"}
LOADED = (
    "import sys; from chargehand.cli import main\ntry: main({args!r})\nfinally: print(*sys.modules, file=sys.stderr)"
)


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    """Neither an event loop nor a client nor a validator is imported."""
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(args=args)], env=given, capture_output=True, text=True, check=True
    )
    loaded = HEAVY & set(done.stderr.split())
    assert loaded <= ({"sqlite3"} if args[0] == "doctor" else set[str]())


def test_the_reference_is_what_the_commands_say() -> None:
    """docs/reference/cli.md is current; `make docs` makes it so."""
    assert (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8") == cli_reference()


def test_the_published_schemas_are_current(tmp_path: Path) -> None:
    """docs/reference/schemas holds exactly what `chargehand schema` prints; `make docs` makes it so."""
    write_reference(tmp_path)
    published = ROOT / "docs" / "reference" / "schemas"
    fresh = {path.name: path.read_text() for path in (tmp_path / "schemas").iterdir()}
    assert {path.name: path.read_text() for path in published.iterdir()} == fresh


def test_every_command_says_what_it_does_in_one_line(shell: Shell) -> None:
    """The list in `--help` names all and no others; each line is short."""
    listed = shell("--help")
    assert listed.code == 0
    for name, (_, line) in COMMANDS.items():
        assert name in listed.out
        assert len(line) < 80
    assert shell("-h").out == listed.out


def test_without_a_command_there_is_a_short_help_with_three_examples(shell: Shell) -> None:
    """It fits on a small terminal, each example is a command there is, and it is wrong use all the same."""
    got = shell()
    assert (got.code, got.err) == (2, "")
    lines = got.out.splitlines()
    assert max(map(len, lines)) <= 60
    assert [line.split()[1] for line in lines if line.startswith("  chargehand ")] == ["demo", "review", "run"]


def test_python_m_chargehand_is_the_command(tmp_path: Path) -> None:
    """With its version."""
    got = finished(process("--version", home=tmp_path))
    assert (got.code, got.out) == (0, "chargehand 0.1.0\n")
