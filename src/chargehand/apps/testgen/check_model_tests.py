"""Tests that a model wrote become a verdict: they import their target, and pass three times in the sandbox."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from chargehand.apps.testgen.names import imports
from chargehand.apps.testgen.project import read_project
from chargehand.apps.testgen.sandbox import find_means, room
from chargehand.apps.testgen.verify import verify

# Set by the app, never by a worker. Without it, tests are not run unless there is a sandbox.
unsafe_run: ContextVar[bool] = ContextVar("unsafe_run", default=False)
_LONGEST = 100_000


async def problem_with(output: Mapping[str, Any], path: Path) -> str | None:
    """What is wrong with the tests of a worker's output; None if they are good."""
    source, target = str(output.get("tests") or ""), str(output.get("target") or "")
    if (wrong := _wrong_on_paper(source, target)) is not None:
        return wrong
    project = read_project(path)
    if not any(target.startswith(f"{module.name}.") for module in project.modules):
        return f"there is no {target!r} in this project: give `target` exactly as the task does"
    means = await find_means(unsafe=unsafe_run.get())
    with room(project.root, means) as sealed:
        found = await verify(sealed, source, project.import_roots)
    if found.failures:
        listed = "; ".join(f"{name or 'the file'}: {why}" for name, why in found.failures.items())
        return f"of the tests, these failed: {listed}"
    return None if found.tests else "pytest found no test in it that ran"


def _wrong_on_paper(source: str, target: str) -> str | None:
    if len(source) > _LONGEST:
        return f"the test file is longer than {_LONGEST:,} characters"
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return f"the test file is not Python: {error}"
    if not any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree)):
        return "the test file has no function whose name begins with test_"
    parts = target.split(".")
    names = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    if not names & set(imports([tree]).values()):
        return f"the test file does not import {target}"
    return None
