"""Which language a file is in, and which of them nothing analysed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.apps.review.languages import count_unanalysed, language
from tests.apps.review.world import write


@pytest.mark.parametrize(
    ("path", "content", "name"),
    [
        ("a.py", "", "Python"),
        ("tool", "#!/usr/bin/env python3\n", "Python"),
        ("A.JS", "", "JavaScript"),
        ("lib/Makefile", "", "Make"),
        ("run", "#!/bin/sh\n", "Shell"),
        ("run", "#! /usr/bin/env -S bash -e\n", "Shell"),
        ("serve", "#!/usr/bin/env node\n", "JavaScript"),
        ("a.zig", "", ".zig"),
        ("LICENSE", "MIT\n", ""),
        ("README.md", "", ""),
        ("a.b c\nd", "", ""),
        (f"a.{'x' * 50}", "", ""),
    ],
)
def test_a_language_is_known_by_name_or_first_line(tmp_path: Path, path: str, content: str, name: str) -> None:
    """An ending that nobody knows stands for itself, as long as it looks like one; prose and data have none."""
    write(tmp_path, {path: content})
    assert language(path, tmp_path) == name


def test_a_tree_of_any_endings_is_told_in_few_words(tmp_path: Path) -> None:
    """Languages with many files are named, the rest is one number; what analyzers know is not listed."""
    files = [*(f"a.e{number}" for number in range(50)), "a.js", "b.js", "c.py", "d.md"]
    counts = count_unanalysed(files, tmp_path)
    assert next(iter(counts)) == "JavaScript"
    assert (len(counts), counts["other"], counts[""], sum(counts.values())) == (22, 31, 1, 53)
