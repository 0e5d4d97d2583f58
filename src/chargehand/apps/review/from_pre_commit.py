"""What pre-commit asks a hook about -> the change to review: what is staged, a range of commits, or all files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chargehand.apps.review.change import Change, read_tree
from chargehand.apps.review.from_git import read_range, read_staged


def read_hooked(path: Path, keep: Path, environment: Mapping[str, str]) -> Change:
    """What is staged, unless pre-commit runs the hook on something else.

    With `--from-ref` it says so in variables. It starts no hook that has no file to look at: where nothing is staged,
    all files are meant.
    """
    if base := environment.get("PRE_COMMIT_FROM_REF"):
        return read_range(path, base, environment.get("PRE_COMMIT_TO_REF") or "HEAD", keep)
    staged = read_staged(path, keep)
    if environment.get("PRE_COMMIT") and not staged.changed and not staged.skipped:
        return read_tree(path)
    return staged
