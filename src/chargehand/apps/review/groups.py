"""Files and their sizes -> groups of about equal size, none larger than one worker can hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def group_files(files: Mapping[str, int], largest: int, *, at_least: int = 1) -> tuple[tuple[str, ...], ...]:
    """Neighbouring files stay together. A file larger than `largest` is its own group. No group is empty."""
    total = sum(files.values())
    count = max(-(-total // largest), at_least)
    share = max(total / count, 1)
    groups: list[list[str]] = [[]]
    size = taken = 0
    for path, bytes in files.items():
        full = size + bytes > largest or (taken >= share * len(groups) and len(groups) < count)
        if groups[-1] and full:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += bytes
        taken += bytes
    return tuple(tuple(group) for group in groups if group)


def name_group(group: tuple[str, ...]) -> str:
    """A name for a group in sentences."""
    if len(group) == 1:
        return group[0]
    common = os.path.commonpath(group)
    return f"{len(group):,} files{f' under {Path(common).as_posix()}' if common else ''}"
