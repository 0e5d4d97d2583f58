"""The reviewed files as lines, read once each: for excerpts, and for fingerprints that survive moved lines."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from chargehand.apps.review.analyzers.source_files import decode_source, split
from chargehand.text.redaction import MARK
from chargehand.values.outcome import Finding

# The rest of a secret after its redacted part: in quotes, up to the closing quote; elsewhere, after a sign that a
# secret may contain, up to the next space.
_REST = re.compile(
    r"""(?P<quote>["'`])(?P<mark>\[redacted[^\]]*\])(?:\\.|(?!(?P=quote)).)+|(?P<bare>\[redacted[^\]]*\])[,;&<>\\][^\s"'`]+"""
)


class SourceLines:
    """The text of the reviewed files. `hide` removes possible secrets from a line."""

    def __init__(self, root: Path, hide: Callable[[str], str] = str) -> None:
        self.root = root
        self.hide = hide
        self._lines = cache(self._read)
        self._printable = cache(self._hide_secrets)

    def line_of(self, finding: Finding) -> str:
        """The line of a finding in a printable form: any line may also hold a secret."""
        return self._printable(finding.path, finding.line)

    def has_secret(self, text: str) -> bool:
        """Whether a part of the text would be hidden, or was hidden when the text was recorded."""
        # Line by line too: what spans two lines can keep a pattern from matching in the second.
        return MARK in text or any(self.hide(each) != each for each in (text, *text.split("\n")))

    def _hide_secrets(self, path: str | None, number: int | None) -> str:
        # A value in quotes is removed as a whole, even if the pattern matched only a part of it.
        return _REST.sub(r"\g<quote>\g<mark>\g<bare>", self.hide(self.line(path, number)))

    def text(self, path: str) -> str:
        return "\n".join(self._lines(path))

    def count(self, path: str) -> int:
        """The number of lines of a file."""
        return len(self._lines(path))

    def line(self, path: str | None, number: int | None) -> str:
        """One line without its end; empty if there is none."""
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
    """A fingerprint for each finding: the problem, the file and the words of the code, without the line number.

    The same words twice in a file are numbered, so that the other stays known when one is fixed.
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
