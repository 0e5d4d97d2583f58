"""Finds matching lines: as a plain function, and as a child process that can be killed when an expression never ends.

The child is this file alone, run without site packages: it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable

# How much of a matching line is shown, starting a little before the match.
WIDTH = 160
BEFORE = 60


def matches(expression: str, *, ignore_case: bool, texts: Iterable[tuple[str, str]], limit: int) -> list[list[str]]:
    """`[name, line number, excerpt]` of each matching line, at most `limit` of them."""
    search = re.compile(expression, re.IGNORECASE if ignore_case else 0).search
    found: list[list[str]] = []
    for name, text in texts:
        for number, line in enumerate(text.split("\n"), 1):
            hit = search(line)
            if hit is None:
                continue
            start = max(0, hit.start() - BEFORE) if len(line) > WIDTH else 0
            found.append([name, str(number), line[start : start + WIDTH].rstrip("\r")])
            if len(found) >= limit:
                return found
    return found


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    json.dump(matches(**order), sys.stdout)


if __name__ == "__main__":
    main()
