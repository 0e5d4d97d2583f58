"""The reviewed files as lines, read once each: for excerpts and for fingerprints that outlive a shift of lines."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from chargehand.apps.review.analyzers.source_files import decode_source, split
from chargehand.values.outcome import Finding

# A secret in quotes up to its closing quote; elsewhere up to the next space, where a sign ended it that it may hold.
_REST = re.compile(
    r"""(?P<quote>["'`])(?P<mark>\[redacted[^\]]*\])(?:\\.|(?!(?P=quote)).)+|(?P<bare>\[redacted[^\]]*\])[,;&<>\\][^\s"'`]+"""
)


class SourceLines:
    """The text of what is reviewed. `hide` takes out of a line what may be a secret."""

    def __init__(self, root: Path, hide: Callable[[str], str] = str) -> None:
        self.root = root
        self.hide = hide
        self._lines = cache(self._read)

    def line_of(self, finding: Finding) -> str:
        """The line of a finding as it may be printed: whatever it is about, the line may also hold a secret."""
        # A value in quotes goes as a whole, wherever the pattern that knew it stopped.
        return _REST.sub(r"\g<quote>\g<mark>\g<bare>", self.hide(self.line(finding.path, finding.line)))

    def text(self, path: str) -> str:
        return "\n".join(self._lines(path))

    def count(self, path: str) -> int:
        """How many lines a file has."""
        return len(self._lines(path))

    def line(self, path: str | None, number: int | None) -> str:
        """One line without its end; empty where there is none."""
        if path is None or number is None or number < 1:
            return ""
        lines = self._lines(path)
        return lines[number - 1] if number <= len(lines) else ""

    def _read(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(split(decode_source((self.root / path).read_bytes())))
        except (OSError, ValueError):
            return ()


def fingerprints(findings: Iterable[Finding], source: SourceLines) -> list[str]:
    """One for each finding: what is wrong, in which file, in which words of the code; not at which line number.

    The same words twice in a file are numbered, so that fixing one of them leaves the other known.
    """
    seen: Counter[str] = Counter()
    found: list[str] = []
    for finding in findings:
        words = " ".join(source.line(finding.path, finding.line).split()) or finding.message
        parts = (finding.category, finding.path or "", words)
        plain = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        seen[plain] += 1
        found.append(plain if seen[plain] == 1 else f"{plain}-{seen[plain]}")
    return found
