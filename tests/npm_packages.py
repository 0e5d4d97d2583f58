"""Packages of npm that tests drive, where node and they are installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MODULES = Path(__file__).resolve().parents[1] / ".venv" / "npm" / "node_modules"


def npm_package(name: str) -> Path:
    """The folder of a package; the test is skipped where it is not installed."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (MODULES / name).is_dir():
        pytest.skip(f"the npm package {name} is not installed: make npm")
    return MODULES / name


def npm_command(name: str, package: str) -> str:
    """A command from the PATH or of a package; the test is skipped where there is none."""
    return os.environ.get(f"CHARGEHAND_TEST_{name.upper()}") or shutil.which(name) or _command_of(name, package)


def _command_of(name: str, package: str) -> str:
    npm_package(package)
    return str(MODULES / ".bin" / name)
