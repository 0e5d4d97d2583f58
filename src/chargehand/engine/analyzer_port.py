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
# Why an existing file was not checked.
UNREAD = "Could not be read"


@dataclass(frozen=True, slots=True)
class Scope:
    """The files that one analysis reads: text files inside `root`, with relative POSIX paths."""

    root: Path
    files: tuple[str, ...]
    # Lines of the new version that the change wrote, by path; None when a whole tree is reviewed.
    changed: Mapping[str, Ranges] | None = None
    # The revision the change is measured against.
    base: str | None = None
    options: Mapping[str, JSON] = field(default_factory=dict[str, "JSON"])


@dataclass(frozen=True, slots=True)
class AnalyzerResult:
    """The findings of an analyzer, its notes, and the files it could not check."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    # What it produced, if it produces something; the first note then says what that is.
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
    # Part of the fingerprint: the version of the tool and the version of our mapping of its rules.
    version: Callable[[], str]
    run: Callable[[Scope], Awaitable[AnalyzerResult]]
    # It reads the whole tree that contains the files.
    whole_tree: bool = False
    # What else its findings depend on; gets the root and a function that hashes a file there.
    around: Callable[[Path, Callable[[str], str | None]], Iterator[str]] | None = None
    # Whether it looks at a file, by its root and its path there; None: at every text file.
    accepts: Callable[[str, str], bool] | None = None
    # What it finds in a change depends on nothing but the files, the changed lines, the base and `around`.
    by_change: bool = False


@cache
def find_analyzers() -> Mapping[str, Analyzer]:
    """Everything an analysis may name, from all installed distributions."""
    from importlib.metadata import entry_points

    found: dict[str, Analyzer] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found |= entry.load()
    return found
