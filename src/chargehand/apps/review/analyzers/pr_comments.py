"""Earlier review comments become hits if the change touches their lines.

The text is a JSON list of `{path, line, body}`, as GitHub's API gives it, or lines of the form `path:line: text`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from chargehand.apps.review.analyzers.hit import Hit

if TYPE_CHECKING:
    from chargehand.engine.analyzer_port import Scope

LINE = re.compile(r"(?P<path>[^\n:]+?)(?::(?P<line>\d+))?:\s+(?P<body>\S.*)")
NEAR = 5
ELSEWHERE = 55


def examine(scope: Scope) -> tuple[list[Hit], tuple[str, ...]]:
    """Hits for remarks on files of the scope, and a note when the text could not be read."""
    text = scope.options.get("pr_comments")
    if not isinstance(text, str) or not text.strip():
        return [], ()
    remarks = list(read_comments(text))
    if not remarks:
        return [], (
            "The review comments were not understood: a JSON list of {path, line, body}, or lines `path:line: text`.",
        )
    return [_hit(scope, *remark) for remark in remarks if remark[0] in scope.files], ()


def read_comments(text: str) -> Iterator[tuple[str, int, str]]:
    """Path, line and text of each comment that can be read."""
    try:
        data: Any = json.loads(text)
    except ValueError:
        for line in text.splitlines():
            if found := LINE.fullmatch(line.strip()):
                yield found["path"], int(found["line"] or 1), found["body"]
        return
    for each in cast(list[Any], data) if isinstance(data, list) else ():
        match each:
            case {"path": str(path), "body": str(body), "line": int(line)}:
                yield path, line, body
            # The line of the comment is not in the newest version any more.
            case {"path": str(path), "body": str(body), "original_line": int(line)}:
                yield path, line, body
            case {"path": str(path), "body": str(body)}:
                yield path, 1, body
            case _:
                continue


def _hit(scope: Scope, path: str, line: int, body: str) -> Hit:
    said = " ".join(body.split())[:240]
    ranges = scope.changed.get(path, ()) if scope.changed is not None else ()
    near = [min(max(line, first), last) for first, last in ranges if first - NEAR <= line <= last + NEAR]
    message = f"An earlier review comment says: {said}"
    if near or scope.changed is None:
        return Hit("history:comment", path, near[0] if near else line, message)
    return Hit("history:comment", path, line, message, confidence=ELSEWHERE)
