"""Parts for tests of testgen: projects written from text, and the sandbox this machine gives, if it gives one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from chargehand.apps.testgen.ghostwrite import GhostwriteJob, Written, ghostwrite
from chargehand.apps.testgen.project import Project, read_project
from chargehand.apps.testgen.sandbox import CommandResult, SandboxLimits, Step, find_means, room
from chargehand.apps.testgen.testgen_plan import survey
from chargehand.errors import UsageError
from chargehand.process.namespaces import Means


@cache
def _means() -> Means | None:
    try:
        return asyncio.run(find_means())
    except UsageError:
        return None


def means() -> Means:
    """How code is sealed off here; the test is skipped where it cannot be."""
    found = _means()
    if found is None:
        pytest.skip("this machine has neither bubblewrap nor user namespaces")
    return found


def project(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *codes: str, limits: SandboxLimits | None = None, by: Means | None = None) -> list[CommandResult]:
    """Each piece of code as a program of its own in one room."""
    steps = [Step((sys.executable, "-c", code)) for code in codes]

    chosen = by or means()

    async def inside() -> list[CommandResult]:
        with room(folder, chosen) as sealed:
            return await sealed.run(steps, limits=limits or SandboxLimits(seconds=10))

    return asyncio.run(inside())


def written(root: Path, name: str) -> Written:
    """What the ghostwriter makes of one function of a project."""
    found = survey(read_project(root))
    target = next(target for target in found.targets if target.full_name == name)
    job = GhostwriteJob(
        module=target.module,
        name=target.name,
        kind=target.kind,
        path=target.path,
        line=target.line,
        end_line=target.end_line,
        raises=found.raises[name],
    )

    chosen = means()

    async def inside() -> Written:
        with room(root, chosen) as sealed:
            return await ghostwrite(sealed, job, found.project.import_roots)

    return asyncio.run(inside())


def reading(folder: Path, files: Mapping[str, str]) -> Project:
    return read_project(project(folder, {"pyproject.toml": "", **files}))
