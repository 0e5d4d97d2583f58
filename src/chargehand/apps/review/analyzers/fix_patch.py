"""A tool's edits of a file -> a unified diff of the changed lines that a reader can apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# A patch over more lines is too large to suggest at one line.
MOST_LINES = 30


def make_patch(path: str, lines: Sequence[str], edits: Sequence[dict[str, Any]]) -> str | None:
    """One hunk, or None if there is nothing to show. Edits are in ruff's form: `content`, from `location` on."""
    spans = sorted((_place(each["location"]), _place(each["end_location"]), str(each["content"])) for each in edits)
    if not spans:
        return None
    first, last = spans[0][0][0], max(end[0] for _, end, _ in spans)
    # An edit of a whole line ends at the beginning of the next line.
    last = min(last, len(lines))
    if first > last or last - first >= MOST_LINES:
        return None
    old = "".join(f"{line}\n" for line in lines[first - 1 : last])
    new, at = "", 0
    for start, end, content in spans:
        begin, stop = _offset(lines, first, start), _offset(lines, first, end)
        if begin < at:
            return None  # overlapping edits cannot be separated
        new += old[at:begin] + content.replace("\r\n", "\n")
        at = stop
    new += old[at:]
    before, after = old.split("\n")[:-1], new.split("\n")
    after = after[:-1] if after[-1] == "" else after
    while before and after and before[0] == after[0]:
        before, after, first = before[1:], after[1:], first + 1
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    if not before and not after:
        return None
    start = first if before else first - 1
    begins = first if after else first - 1
    head = f"--- a/{path}\n+++ b/{path}\n@@ -{start},{len(before)} +{begins},{len(after)} @@\n"
    return head + "".join(f"-{line}\n" for line in before) + "".join(f"+{line}\n" for line in after)


def _place(location: dict[str, int]) -> tuple[int, int]:
    return location["row"], location["column"]


def _offset(lines: Sequence[str], first: int, place: tuple[int, int]) -> int:
    """The offset of a row and column in the text that begins with the line `first`."""
    row, column = place
    return sum(len(line) + 1 for line in lines[first - 1 : row - 1]) + column - 1


def changed_text(patch: str) -> list[str]:
    """The lines of a patch after its header."""
    return [line for line in patch.split("\n")[3:] if line]
