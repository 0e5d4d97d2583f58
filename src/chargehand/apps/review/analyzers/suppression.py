"""Comments that silence a rule of any tool: `# noqa`, `# nosec`, `chargehand: ignore`, `pylint: disable=`.

`pragma: allowlist secret`, `gitleaks:allow` and `trufflehog:ignore` are for secrets. `chargehand: ignore` works in any
language, for all categories or for those in brackets: `chargehand: ignore[todo]`.

ruff's S rules are bandit's tests under the same number, so `# noqa: S608` and `# nosec B608` both silence both tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chargehand.apps.review.analyzers.hit import Hit

EVERYTHING = "*"
_NOQA = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z][A-Z0-9]*\d(?:[\s,]+[A-Z][A-Z0-9]*\d)*)?", re.IGNORECASE)
_NOSEC = re.compile(
    r"(?:#|//|--|/\*)\s*nosec\b:?(?P<codes>(?:[\s,]*\bB\d{3}\b)*)(?P<names>[\s,]*[a-z_]{4,})?", re.IGNORECASE
)
_SECRET = re.compile(r"pragma:\s*allowlist\s+secret|gitleaks:allow|trufflehog:ignore", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+\d+", re.IGNORECASE)
_OWN = re.compile(r"chargehand:\s*ignore(?:\[(?P<names>[\w\s,-]*)\])?", re.IGNORECASE)
_PYLINT = re.compile(r"#\s*pylint:\s*disable=(?P<names>[\w\s,-]+)")
# Names of pylint -> our categories.
_PYLINT_NAMES = {
    "undefined-variable": "undefined-name",
    "bare-except": "swallowed-error",
    "broad-except": "swallowed-error",
    "broad-exception-caught": "swallowed-error",
    "pointless-statement": "no-effect",
    "dangerous-default-value": "mutable-default",
    "consider-using-with": "resource-leak",
    "cell-var-from-loop": "closure-in-loop",
    "exec-used": "code-injection",
    "eval-used": "code-injection",
    "invalid-name": "naming",
    "fixme": "todo",
    "function-redefined": "redefinition",
}
# What a comment about secrets silences: the rules that look for them.
_SECRETS = ("S105", "S106", "S107", "SECRET")


def silenced_codes(line: str) -> frozenset[str]:
    """The codes a line silences, as ruff writes them; EVERYTHING for a bare `noqa` or `nosec`."""
    if "noqa" not in line.lower() and "nosec" not in line.lower() and not _SECRET.search(line):
        return frozenset()
    codes: set[str] = set()
    if noqa := _NOQA.search(line):
        codes |= {code.upper() for code in _CODE.findall(noqa["codes"] or "")} or {EVERYTHING}
    if nosec := _NOSEC.search(line):
        tests = {f"S{code[1:]}" for code in _CODE.findall(nosec["codes"] or "")}
        # `nosec` is only about security. A test given by name silences all security rules.
        codes |= tests or {"S", "SECRET"}
    if _SECRET.search(line):
        codes |= set(_SECRETS)
    return frozenset(codes)


def silenced_categories(line: str) -> frozenset[str]:
    """The categories that `chargehand: ignore` or pylint's comment silences in a line; EVERYTHING for all of them."""
    if "ignore" not in line and "pylint" not in line:
        return frozenset()
    found = set[str]()
    if own := _OWN.search(line):
        names: list[str] = re.findall(r"[\w-]+", own["names"] or "")
        found |= set(names) or {EVERYTHING}
    if pylint := _PYLINT.search(line):
        disabled: list[str] = re.findall(r"[a-z][\w-]+", pylint["names"])
        found |= {_PYLINT_NAMES.get(name, name) for name in disabled}
    return frozenset(found)


def drop_silenced(hits: Iterable[Hit], lines: Sequence[str]) -> list[Hit]:
    """The hits of one file that no comment on their first or last line silences."""
    return [hit for hit in hits if not _is_silenced(hit, lines)]


def _is_silenced(hit: Hit, lines: Sequence[str]) -> bool:
    tool, _, code = hit.rule.partition(":")
    own = f"S{code[1:]}" if tool == "bandit" else code if tool == "ruff" else "SECRET" if tool == "secrets" else ""
    for number in {hit.line, hit.end_line or hit.line}:
        if not 0 < number <= len(lines):
            continue
        codes = silenced_codes(lines[number - 1])
        if EVERYTHING in codes or own in codes or ("S" in codes and own[:1] == "S" and own[1:2].isdigit()):
            return True
        if own == "SECRET" and not codes.isdisjoint(_SECRETS):
            return True
    return False
