"""A scope of files becomes findings: one analyzer per tool and lens. No analyzer imports or runs what it reads.

Importing this package imports no analyzer: each is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

from chargehand.apps.review.analyzers.lens import Lens
from chargehand.engine.analyzer_port import Analyzer, AnalyzerResult, Scope

__all__ = ["ANALYZERS", "LENSES"]

_LINTED: frozenset[str] = frozenset({"shell", "docker", "javascript", "typescript"})
_RUN: frozenset[str] = frozenset({"javascript", "typescript", "rust", "go"})
_PYTHON: frozenset[str] = frozenset({"python"})


def _accepts(root: str, path: str) -> bool:
    from chargehand.apps.review.analyzers.source_files import is_python

    return is_python(path, root)


def _accepts_notebook(root: str, path: str) -> bool:
    return path.lower().endswith(".ipynb")


def _accepts_linted(root: str, path: str) -> bool:
    return _language(root, path) in _LINTED


def _accepts_run(root: str, path: str) -> bool:
    return _language(root, path) in _RUN


def _language(root: str, path: str) -> str:
    from chargehand.apps.review.analyzers.language_names import language

    return language(path, Path(root)).lower()


def _analyzer(
    name: str,
    lens: Lens,
    module: str,
    *,
    tool: str | None = None,
    languages: frozenset[str] | None = _PYTHON,
    per_file: bool = True,
    whole_tree: bool = False,
    only_changes: bool = False,
    around: bool = False,
    by_change: bool = False,
    accepts: Callable[[str, str], bool] | None = None,
) -> Analyzer:
    """An analyzer whose module is imported at first use.

    `tool`: the installed package whose rules it applies. `only_changes`: it finds nothing where whole files are
    reviewed. `around`: the module has a function of that name, for `Analyzer.around`.
    """

    def version() -> str:
        from chargehand.apps.review.analyzers.versions import version_of

        return version_of(name, tool)

    is_accepted = accepts or (_accepts if languages else None)

    async def run(scope: Scope) -> AnalyzerResult:
        from chargehand.apps.review.analyzers.run_analysis import run_analysis

        if not scope.files or (only_changes and scope.changed is None):
            return AnalyzerResult()
        return await run_analysis(module, scope, lens)

    def read(root: Path, hash: Callable[[str], str | None]) -> Iterator[str]:
        return import_module(f"{__name__}.{module}").around(root, hash)

    reads = read if around else None
    return Analyzer(name, lens, languages, per_file, version, run, whole_tree, reads, is_accepted, by_change)


async def _recall(scope: Scope) -> AnalyzerResult:
    """Findings of readers from an earlier review, which are in the options of the task."""
    from chargehand.values.outcome import Finding

    told = cast("list[Any]", scope.options.get("findings") or [])
    return AnalyzerResult(tuple(Finding.model_validate(each) for each in told))


ANALYZERS: Mapping[str, Analyzer] = {
    each.name: each
    for each in (
        Analyzer("earlier-readings", "readings", None, per_file=False, version=lambda: "1", run=_recall),
        _analyzer("bandit", "security", "bandit", tool="bandit"),
        _analyzer("ruff-security", "security", "ruff", tool="ruff"),
        _analyzer("unsafe-calls", "security", "unsafe_calls"),
        _analyzer("request-flow", "security", "request_flow"),
        _analyzer("secrets", "security", "secrets", languages=None),
        _analyzer("ruff-bugs", "bugs", "ruff", tool="ruff"),
        _analyzer("mistakes", "bugs", "mistakes"),
        _analyzer("project-names", "bugs", "project_names", per_file=False, only_changes=True),
        _analyzer("linters", "bugs", "linters", languages=_LINTED, accepts=_accepts_linted),
        _analyzer("project-linters", "bugs", "project_linters", languages=_RUN, per_file=False, accepts=_accepts_run),
        _analyzer("notebooks", "bugs", "notebooks", tool="ruff", accepts=_accepts_notebook),
        _analyzer("ruff-performance", "performance", "ruff", tool="ruff"),
        _analyzer("loops", "performance", "loops"),
        _analyzer("ruff-style", "style", "ruff", tool="ruff"),
        _analyzer("unreachable", "style", "unreachable"),
        _analyzer("dead-code", "style", "dead_code", per_file=False, whole_tree=True, around=True),
        _analyzer("history", "history", "history", languages=None, per_file=False, around=True, by_change=True),
        _analyzer("removals", "history", "removals", per_file=False, only_changes=True, by_change=True),
        _analyzer("comments", "comments", "comments", languages=None),
        _analyzer("contracts", "comments", "contract_comments", languages=None, per_file=False, only_changes=True),
        _analyzer("untested", "tests", "untested", per_file=False, whole_tree=True, only_changes=True),
        _analyzer("leftovers", "shape", "leftovers", languages=None),
        _analyzer("extent", "shape", "change_size", languages=None, per_file=False, only_changes=True, by_change=True),
    )
}

# Lens -> the names of its analyzers.
LENSES: Mapping[Lens, tuple[str, ...]] = {
    lens: tuple(each.name for each in ANALYZERS.values() if each.lens == lens) for lens in get_args(Lens)
}
