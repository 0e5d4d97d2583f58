"""Comments that state a rule for the code next to them, as hits if the code changed and the comment did not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chargehand.apps.review.analyzers.examine import examine_texts
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile

# A comment covers its own line and this many lines below it.
REACH = 3
COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*|\*|--|;)\s*(?P<text>\S.*)$")
RULE = re.compile(
    r"(?i)\b(?:must (?:not|stay|remain|be|come|happen|match)|do not|don't|never|always|invariant|order matters"
    r"|keep (?:this|these|the order|sorted)|callers? (?:rely|relies|depend)|(?:not )?thread-?safe|required by"
    r"|assum(?:es|ing)|only call)\b"
)
SYNC = re.compile(
    r"(?i)(?:keep|kept|stay|must be)\s+(?:this\s+|these\s+|it\s+)?"
    r"(?:in[ -]sync|in step|consistent|aligned|identical)\s+(?:with|to)\s+"
    r"[`'\"]?(?P<path>[\w./-]+\.[A-Za-z]{1,5})\b"
)


def examine(order: AnalysisOrder) -> Hits:
    paths = (path for path in order.files if order.changed_ranges(path))
    return examine_texts(order, paths, lambda source: _in_source(source, order))


def _in_source(source: SourceFile, order: AnalysisOrder) -> Iterator[Hit]:
    touched = {number for first, last in order.changed_ranges(source.path) for number in range(first, last + 1)}
    for number, text in _comments(source):
        near = sorted(touched.intersection(range(number, number + REACH + 1)))
        if sync := SYNC.search(text):
            # The comment may be above a whole table.
            near = sorted(touched.intersection(_block(source, number)))
            if near and (other := _partner(sync["path"], source.path, order)):
                message = f"Line {number} asks to keep this in step with {other}, which the change leaves as it was."
                yield Hit("contracts:sync", source.path, near[0], message)
        elif near and number not in touched and RULE.search(text):
            yield Hit(
                "contracts:rule",
                source.path,
                near[0],
                f"Line {number} states a rule for this code: {text.strip()[:160]}",
            )


def _comments(source: SourceFile) -> Iterator[tuple[int, str]]:
    if source.python:
        # Finding comments in the tokens is slow.
        if any("#" in line and (RULE.search(line) or SYNC.search(line)) for line in source.lines):
            yield from ((number, text.lstrip("#").strip()) for number, text in source.comments.items())
        return
    for number, line in enumerate(source.lines, 1):
        if found := COMMENT.search(line):
            yield number, found["text"]


def _block(source: SourceFile, number: int) -> range:
    """From a comment to the next empty line, the next comment of its kind, or a line that is indented less."""
    depth = _indentation(source.lines[number - 1])
    end = number
    while end < len(source.lines) and (line := source.lines[end]).strip():
        if _indentation(line) < depth or SYNC.search(line):
            break
        end += 1
    return range(number, end + 1)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _partner(named: str, path: str, order: AnalysisOrder) -> str | None:
    """The file a comment names, from the root or its folder, if it exists and is not part of the change."""
    folder = path.rpartition("/")[0]
    for candidate in (named.removeprefix("./"), f"{folder}/{named}".lstrip("/")):
        inside = not candidate.startswith("/") and ".." not in candidate.split("/")
        if inside and (order.root / candidate).is_file():
            return None if order.changed_ranges(candidate) or candidate == path else candidate
    return None
