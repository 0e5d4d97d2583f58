"""Short commands load little: a bound on modules, not on seconds. `python -m bench --only startup` has the seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.startup import COMMANDS, prepare
from tests.cli.terminal import ROOT

LOADED = (
    "import sys; from chargehand.cli import main\ntry: main({args!r})\nfinally: print(*sys.modules, file=sys.stderr)"
)
# Neither a client nor a renderer nor a database nor an app has to do with any of these; the registry of apps says so.
NEVER = {"aiohttp", "pydantic", "rich", "duckdb", "chargehand.evaluation", "chargehand.models.transport"}
APPS = {"chargehand.apps.app_port", "chargehand.apps.review", "chargehand.apps.testgen"}
NEVER |= APPS
STAGES = {"chargehand.flow", "chargehand.planner", "chargehand.dispatcher", "chargehand.synthesizer"}
# What is on record is printed as it is.
RECORD_ONLY = {"asyncio", "chargehand.team", "chargehand.engine"}
# The most modules of the command, Python's own included, and what is not among them.
BOUNDS: dict[str, tuple[int, set[str]]] = {
    "show last": (176, NEVER | STAGES | RECORD_ONLY),
    "show last --json": (176, NEVER | STAGES | RECORD_ONLY),
    "check plan.json": (236, NEVER | STAGES | {"asyncio", "chargehand.engine", "chargehand.values.effect"}),
    "run --plan plan.json, one task, scripted": (
        408,
        NEVER | {"chargehand.models.http_model", "chargehand.synthesizer.synthesis_flow"},
    ),
    "runs": (158, NEVER | STAGES | RECORD_ONLY | {"pydantic_core"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a plan, a script and one run on record."""
    made = tmp_path_factory.mktemp("startup")
    _loaded("run --plan plan.json, one task, scripted", made)
    return made


def _loaded(command: str, folder: Path) -> set[str]:
    env = {**prepare(folder), "PYTHONPATH": str(ROOT / "src")}
    code = LOADED.format(args=COMMANDS[command][0])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.splitlines()[-1].split())
    # An extra: it is loaded only where it is installed.
    return {name for name in loaded if not name.startswith(("uvloop", "_cython", "cython_runtime"))}


@pytest.mark.parametrize("command", BOUNDS)
def test_a_short_command_loads_only_what_it_needs(command: str, folder: Path) -> None:
    """`runs` loaded 175 modules of ours, the planner and the synthesizer among them, to print a table."""
    most, without = BOUNDS[command]
    loaded = _loaded(command, folder)
    assert not loaded & without
    assert len(loaded) <= most


def test_a_review_without_a_model_loads_nothing_that_asks_one(tmp_path: Path) -> None:
    """Its answer is a list that code makes from the results of several tasks."""
    (tmp_path / "a.py").write_text("def f(x=[]):\n    return eval(x)\n")
    env = {**prepare(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    code = LOADED.format(args=["review", "a.py"])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "chargehand.synthesizer.synthesis_flow" in loaded
    parts = ("writer", "critic", "contradictions_by_model", "select", "rate_findings", "quoted_results")
    assert not loaded & ({f"chargehand.synthesizer.{part}" for part in parts} | NEVER - APPS)
