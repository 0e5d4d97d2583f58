"""A scope of files becomes findings: one analyzer per tool and lens, none of which imports or runs what it reads.

Importing this package imports no analyzer: each is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from pathlib import Path

    from chargehand.values.base import JSON
    from chargehand.values.outcome import Finding

Lens = Literal["security", "bugs", "performance", "style", "history", "comments", "tests", "shape"]
Ranges = tuple[tuple[int, int], ...]

PYTHON: frozenset[str] = frozenset({"python"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What one analysis looks at: files under `root`, relative, posix, confined, text."""

    root: Path
    files: tuple[str, ...]
    # Lines of the new version that the change wrote, by path; None when a whole tree is reviewed.
    changed: Mapping[str, Ranges] | None = None
    # The revision the change is measured against.
    base: str | None = None
    options: Mapping[str, JSON] = field(default_factory=dict[str, "JSON"])


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer found, what else is worth saying, and what it could not look at."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    # What it made, if it makes something; the first note then says what that is.
    output: JSON = None
    # Path -> why it could not be checked.
    unchecked: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Analyzer:
    """One way of looking at files; AnalyzerFailed when it cannot."""

    name: str
    lens: Lens
    # None: any text file.
    languages: frozenset[str] | None
    # The findings of a file depend on that file's content alone.
    per_file: bool
    # Part of the fingerprint: the tool's version and that of our mapping of its rules.
    version: Callable[[], str]
    run: Callable[[Scope], Awaitable[Analysis]]
    # It looks through the whole tree the files are in.
    whole_tree: bool = False
    # Besides its files, what its findings in whole files depend on; gets the root and what hashes a file there.
    around: Callable[[Path, Callable[[str], str | None]], Iterator[str]] | None = None


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

    async def run(scope: Scope) -> Analysis:
        return await import_module(f"chargehand.apps.review.analyzers.{module}").analyze(scope, lens)

    def read(root: Path, hash: Callable[[str], str | None]) -> Iterator[str]:
        return import_module(f"chargehand.apps.review.analyzers.{module}").around(root, hash)

    return Analyzer(name, lens, languages, per_file, version, run, whole_tree, read if around else None)


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
