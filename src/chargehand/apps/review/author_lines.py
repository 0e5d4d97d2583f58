"""The changes of a patch -> the lines its author wrote, without lines that were moved, re-indented or respaced.

Where lines were only removed: the lines next to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePosixPath

from chargehand.apps.review.analyzers.source_files import is_python, is_test
from chargehand.apps.review.patch import FilePatch, Hunk, Ranges, ranges

# Shorter lines, such as a single bracket, do not show where they come from.
_TELLING = 4


def changed_lines(files: Sequence[FilePatch]) -> dict[str, Ranges]:
    """New path -> the ranges of lines the change wrote.

    A line counts as moved only between code of the same language: a line that was removed from prose or a test is new
    in code.
    """
    removed = Counter(
        _key(file.old or file.new or "", text)
        for file in files
        for hunk in file.hunks
        for mark, text in hunk.lines
        if mark == "-"
    )
    found: dict[str, Ranges] = {}
    for file in files:
        if file.new is None:
            continue
        numbers: list[int] = []
        for hunk in file.hunks:
            for number, text in hunk.added_lines():
                key = _key(file.new, text)
                if len(key[-1]) >= _TELLING and removed[key] > 0:
                    removed[key] -= 1
                else:
                    numbers.append(number)
        found[file.new] = ranges(numbers)
    return found


def beside_removed(files: Sequence[FilePatch]) -> dict[str, Ranges]:
    """New path -> the lines before and after each place where lines were removed and none was written."""
    found = {file.new: ranges(_beside(file.hunks)) for file in files if file.new is not None}
    return {name: own for name, own in found.items() if own}


def _beside(hunks: Sequence[Hunk]) -> list[int]:
    numbers: set[int] = set()
    for hunk in hunks:
        number = hunk.new
        for mark, run in groupby(hunk.lines, key=lambda line: line[0] if line[0] == " " else "change"):
            marks = [each for each, _ in run]
            if mark == "change" and "+" not in marks:
                numbers |= {max(number - 1, 1), number}
            number += sum(each != "-" for each in marks)
    return sorted(numbers)


def _key(path: str, text: str) -> tuple[bool, str, str]:
    """A key that a moved line keeps: kind of file, and text; in Python without spacing."""
    python = is_python(path)
    kind = ".py" if python else PurePosixPath(path).suffix.lower() or path
    return is_test(path), kind, "".join(text.split()) if python else text.strip()
