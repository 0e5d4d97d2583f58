"""A scope of files becomes findings: one analyzer per tool and lens, none of which imports or runs what it reads.

Importing this package imports no analyzer: each is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

from chargehand.engine.analyzer import Analyzer, AnalyzerResult, Ranges, Scope

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ANALYZERS", "LENSES", "PYTHON", "Analyzer", "AnalyzerResult", "Lens", "Ranges", "Scope"]

Lens = Literal["security", "bugs", "performance", "style", "history", "comments", "tests", "shape"]

PYTHON: frozenset[str] = frozenset({"python"})


def _accepts(root: str, path: str) -> bool:
    return import_module("chargehand.apps.review.analyzers.sources").is_python(path, root)


def _analyzer(
    name: str,
    lens: Lens,
    module: str,
    *,
    languages: frozenset[str] | None = PYTHON,
    per_file: bool = True,
    whole_tree: bool = False,
    around: bool = False,
) -> Analyzer:
    """An analyzer whose module is imported at first use; the module has `version()` and `analyze(scope, lens)`."""

    def version() -> str:
        return import_module(f"chargehand.apps.review.analyzers.{module}").version()

    async def run(scope: Scope) -> AnalyzerResult:
        return await import_module(f"chargehand.apps.review.analyzers.{module}").analyze(scope, lens)

    def read(root: Path, hash: Callable[[str], str | None]) -> Iterator[str]:
        return import_module(f"chargehand.apps.review.analyzers.{module}").around(root, hash)

    accepts = _accepts if languages else None
    return Analyzer(name, lens, languages, per_file, version, run, whole_tree, read if around else None, accepts)


ANALYZERS: Mapping[str, Analyzer] = {
    each.name: each
    for each in (
        _analyzer("bandit", "security", "bandit"),
        _analyzer("ruff-security", "security", "ruff"),
        _analyzer("secrets", "security", "secrets", languages=None),
        _analyzer("ruff-bugs", "bugs", "ruff"),
        _analyzer("ruff-performance", "performance", "ruff"),
        _analyzer("loops", "performance", "loops"),
        _analyzer("ruff-style", "style", "ruff"),
        _analyzer("unreachable", "style", "unreachable"),
        _analyzer("dead-code", "style", "dead", per_file=False, whole_tree=True, around=True),
        _analyzer("history", "history", "history", languages=None, per_file=False, around=True),
        _analyzer("comments", "comments", "comments", languages=None),
        _analyzer("contracts", "comments", "contracts", languages=None, per_file=False),
        _analyzer("untested", "tests", "untested", per_file=False, whole_tree=True),
        _analyzer("leftovers", "shape", "leftovers", languages=None),
        _analyzer("extent", "shape", "extent", languages=None, per_file=False),
    )
}

LENSES: Mapping[Lens, tuple[str, ...]] = {
    lens: tuple(each.name for each in ANALYZERS.values() if each.lens == lens) for lens in get_args(Lens)
}
