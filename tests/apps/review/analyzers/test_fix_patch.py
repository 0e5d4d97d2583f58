"""What a tool would edit becomes a patch that git takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.analyzers.fix_patch import changed_text, make_patch
from tests.apps.review.analyzers.running import analyzed

CODE = """import os
import sys


def f(a):
    if a == None:
        return sys.argv
    x = 1
    return [k for k in {}.keys()]
"""


def edit(first: tuple[int, int], last: tuple[int, int], content: str) -> dict[str, Any]:
    start, end = ({"row": row, "column": column} for row, column in (first, last))
    return {"location": start, "end_location": end, "content": content}


def test_every_patch_of_a_review_applies(tmp_path: Path) -> None:
    """To the file as it was reviewed, by git."""
    found = [f for lens in ("ruff-bugs", "ruff-style") for f in analyzed(lens, tmp_path, {"a.py": CODE}).findings]
    patches = [f.patch for f in found if f.patch]
    assert len(patches) >= 3
    for patch in patches:
        check = ["git", "apply", "--check", "--unidiff-zero", "-"]
        done = subprocess.run(check, cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)
        assert done.returncode == 0, f"{patch}\n{done.stderr.decode()}"


@pytest.mark.parametrize(
    ("edits", "shown"),
    [
        ([edit((1, 1), (2, 1), "")], ["-import os"]),
        ([edit((6, 10), (6, 12), "is")], ["-    if a == None:", "+    if a is None:"]),
        ([edit((1, 1), (1, 1), "# new\n")], ["+# new"]),
        ([], None),
        ([edit((1, 1), (1, 4), "a"), edit((1, 2), (1, 3), "b")], None),
        ([edit((1, 1), (1, 7), "import")], None),
        ([edit((99, 1), (99, 2), "x")], None),
    ],
)
def test_only_what_changes_is_shown(edits: list[dict[str, Any]], shown: list[str] | None) -> None:
    """Nothing for edits that overlap, change nothing or lie outside of the file."""
    patch = make_patch("a.py", CODE.split("\n")[:-1], edits)
    assert (None if patch is None else changed_text(patch)) == shown
