"""Short ways to run one analyzer over a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.engine.analyzer_port import AnalyzerResult, Ranges, Scope
from chargehand.values.base import JSON


def write(root: Path, files: Mapping[str, str | bytes]) -> tuple[str, ...]:
    """Write files and name them."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tuple(files)


def analyzed(
    name: str,
    root: Path,
    files: Mapping[str, str | bytes] | tuple[str, ...],
    *,
    changed: Mapping[str, Ranges] | None = None,
    base: str | None = None,
    options: Mapping[str, JSON] | None = None,
) -> AnalyzerResult:
    """What an analyzer says of files, which are written first when their content is given."""
    names = files if isinstance(files, tuple) else write(root, files)
    return asyncio.run(ANALYZERS[name].run(Scope(root, names, changed, base, options or {})))


def all_analyzed(scope: Scope, names: Iterable[str] = ANALYZERS) -> dict[str, AnalyzerResult]:
    """What each analyzer says of a scope, two at a time."""

    async def run() -> dict[str, AnalyzerResult]:
        gate = asyncio.Semaphore(2)

        async def one(name: str) -> AnalyzerResult:
            async with gate:
                return await ANALYZERS[name].run(scope)

        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(one(name)) for name in names}
        return {name: task.result() for name, task in tasks.items()}

    return asyncio.run(run())


def places(analysis: AnalyzerResult, category: str | None = None) -> list[tuple[str | None, int | None]]:
    """Path and line of each finding, of one category if it is named."""
    return [(f.path, f.line) for f in analysis.findings if category in (None, f.category)]
