"""The analyzer port: a scope of files -> what was found in it, without a model. Analyzers are found by entry points.

A distribution offers analyzers under the group `chargehand.analyzers`: each entry names a mapping from the name of an
analyzer to an `Analyzer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from chargehand.values.base import JSON
    from chargehand.values.outcome import Finding

GROUP = "chargehand.analyzers"
Ranges = tuple[tuple[int, int], ...]
# Why a file was not checked that is there.
UNREAD = "Could not be read"


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
class AnalyzerResult:
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
    # What kind of defect it looks for.
    lens: str
    # The languages it reads; None: any text file.
    languages: frozenset[str] | None
    # The findings of a file depend on that file's content alone.
    per_file: bool
    # Part of the fingerprint: the tool's version and that of our mapping of its rules.
    version: Callable[[], str]
    run: Callable[[Scope], Awaitable[AnalyzerResult]]
    # It looks through the whole tree the files are in.
    whole_tree: bool = False
    # What else its findings in whole files depend on; gets the root and a function that hashes a file there.
    around: Callable[[Path, Callable[[str], str | None]], Iterator[str]] | None = None
    # Whether it looks at a file, by its root and its path there; None: at every text file.
    accepts: Callable[[str, str], bool] | None = None


@cache
def find_analyzers() -> Mapping[str, Analyzer]:
    """Everything an analysis may name, from all installed distributions."""
    from importlib.metadata import entry_points

    found: dict[str, Analyzer] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found |= entry.load()
    return found
