"""Reads a TOML file into data with the place of each key, so that errors can name it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chargehand.errors import UsageError
from chargehand.text.json_schema import MAX_DEPTH, too_deep
from chargehand.values.lazy_regex import lazy_regex

_TABLE = lazy_regex(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_ENTRY = lazy_regex(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_DEEP = f"lists and tables are nested more than {MAX_DEPTH} levels deep."
_PART = lazy_regex(r""""([^"]*)"|'([^']*)'|([\w-]+)""")


class TomlFile(NamedTuple):
    """`label` is how messages name the file."""

    label: str
    path: Path
    data: dict[str, Any]
    text: str

    def position(self, key: Sequence[str]) -> tuple[int, int]:
        """Line and column of the key, or else of the nearest table around it. `[[x]]` is under ("x", "0"), ..."""
        best, table, place = 0, (), (1, 1)
        seen: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := _TABLE.match(line):
                here = table = _parts(header[1])
                if line.lstrip().startswith("[["):
                    seen[table] = seen.get(table, -1) + 1
                    here = table = (*table, str(seen[table]))
            elif entry := _ENTRY.match(line):
                here = (*table, *_parts(entry[1]))
            else:
                continue
            shared = _shared_length(here, key)
            if shared > best and shared >= min(len(here), len(key)):
                best, place = shared, (number, len(line) - len(line.lstrip()) + 1)
        return place

    def place(self, key: Sequence[str]) -> str:
        line, column = self.position(key)
        return f"{self.label}:{line}:{column}"


def read(path: Path, label: str | None = None) -> TomlFile:
    """The file as data; if it is unreadable or not TOML, a UsageError names the file and the line."""
    label = label or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{label} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{label}:{line_of(error)}:1: not UTF-8 text: save it as UTF-8.") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error), re.DOTALL)
        line = int(found[2]) if found and found[2] else max(len(text.splitlines()), 1)
        column = int(found[3]) if found and found[3] else 1
        raise UsageError(f"{label}:{line}:{column}: not valid TOML: {found[1] if found else error}.") from None
    except RecursionError:
        raise UsageError(f"{label}:1:1: {_DEEP}") from None
    except ValueError as error:
        # An integer of thousands of digits: the parser does not say where.
        raise UsageError(f"{label}:1:1: not valid TOML: {str(error).partition(';')[0]}.") from None
    if too_deep(data):
        raise UsageError(f"{label}:1:1: {_DEEP}")
    return TomlFile(label, path, data, text)


def line_of(error: UnicodeDecodeError) -> int:
    """The line of the byte that is not text."""
    return error.object.count(b"\n", 0, error.start) + 1


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """`Did you mean 'x'?` with a space before it, or the known keys."""
    names = sorted(known)
    if near := close_name(wrong, names):
        return f" Did you mean {near!r}?"
    return f" There {'is' if len(names) == 1 else 'are'}: {', '.join(names)}." if names else ""


def close_name(wrong: str, known: Iterable[str]) -> str | None:
    """The known name that is most like the wrong one, if one is."""
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(wrong.lower(), by_lower, n=1, cutoff=0.61)
    return by_lower[close[0]] if close else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))


def _shared_length(here: Sequence[str], key: Sequence[str]) -> int:
    count = 0
    for mine, wanted in zip(here, key, strict=False):
        if mine != wanted:
            break
        count += 1
    return count
