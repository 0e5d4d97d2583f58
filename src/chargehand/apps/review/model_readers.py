"""What models read in a review: numbered source, and what each reader looks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from chargehand.apps.review.analyzers.lens import Lens
from chargehand.apps.review.analyzers.source_files import decode_source, split
from chargehand.apps.review.patch import Ranges

GUIDELINES = "guideline-reader"
# The worker that says what a change is for; the readers get its answer.
INTENT = "intent-reader"
# Worker -> its lens, and what its task says it looks for.
READERS: dict[str, tuple[Lens, str]] = {
    "security-reader": ("security", "Look for ways an attacker could misuse the code"),
    "bug-reader": ("bugs", "Look for code that does not do what it is meant to do"),
    "performance-reader": ("performance", "Look for needless work that users will notice"),
    "maintenance-reader": ("style", "Look for what will mislead the next person who changes the code"),
    GUIDELINES: ("comments", "Look for code that breaks a written rule of the project"),
    "test-reader": ("tests", "Look for changed behaviour whose failure no test would show"),
}
# Prose and data: analyzers check them, but readers of code do not need them.
_NOT_CODE = frozenset(
    {".adoc", ".csv", ".ipynb", ".json", ".jsonl", ".lock", ".md", ".po", ".rst", ".svg", ".tsv", ".txt", ".xml"}
)
# Lines shown around each changed one.
AROUND = 20
_LONGEST_LINE = 400


def excerpt(root: Path, path: str, changed: Ranges | None) -> str:
    """The lines of a file with their numbers: all, or those around changes; `...` replaces the others."""
    try:
        lines = split(decode_source((root / path).read_bytes()))
    except OSError:
        return ""
    shown = range(len(lines)) if changed is None else sorted(_near(changed, len(lines)))
    parts: list[str] = []
    last = -1
    for index in shown:
        if index != last + 1:
            parts.append("...")
        parts.append(f"{index + 1}: {lines[index][:_LONGEST_LINE]}")
        last = index
    if parts and last != len(lines) - 1:
        parts.append("...")
    return "\n".join(parts)


def is_code(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() not in _NOT_CODE


def _near(changed: Ranges, count: int) -> Iterator[int]:
    seen = -1
    for first, last in changed:
        for index in range(max(first - 1 - AROUND, seen + 1), min(last + AROUND, count)):
            yield index
            seen = index
