"""The text of a unified diff -> its change of each file, or the line where it is not a unified diff."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from chargehand.errors import UsageError

L = TypeVar("L")
Ranges = tuple[tuple[int, int], ...]

# No file has more lines. A number of more than ten digits is not read at all.
MOST_LINES = 1_000_000_000
_HUNK = re.compile(r"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@")
_COMBINED = re.compile(r"diff --(?:cc|combined) |@@@+ -\d")
# Prefixes of git before names: a/ and b/, or with diff.mnemonicPrefix other letters.
_PREFIX = re.compile(r"[abciow12]/")
_MOVES = {"rename from ": "old", "rename to ": "new", "copy from ": "old", "copy to ": "new"}
# A name in quotes, up to the closing quote. A quote after a backslash is part of the name.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(slots=True)
class Hunk:
    """Lines from `old` on in the old file become the lines from `new` on in the new one; without line ends."""

    old: int
    new: int
    # (" ", "+" or "-", text)
    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def side(self, marks: str) -> list[str]:
        return [text for mark, text in self.lines if mark in marks]

    def added_lines(self) -> list[tuple[int, str]]:
        """Numbers and texts of the lines it adds, in the new file."""
        found: list[tuple[int, str]] = []
        number = self.new
        for mark, text in self.lines:
            if mark == "+":
                found.append((number, text))
            number += mark != "-"
        return found


@dataclass(slots=True)
class FilePatch:
    """The change of one file. `old` is None for a new file, `new` for one that is deleted."""

    old: str | None
    new: str | None
    binary: bool = False
    # Whether it is a copy of `old`, which stays.
    copied: bool = False
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    # The number of the line where it begins, and whether the names come from its header.
    line: int = 0
    named: bool = False


def parse(text: str, name: str = "the patch") -> list[FilePatch]:
    """All changes of the patch. Raises UsageError with the line where it stops being a unified diff."""
    reader = _Reader(text.split("\n"), name)
    reader.read()
    if not reader.files and text.strip():
        raise UsageError(f"{name} is not a unified diff: it names no file. Make one with `git diff` or `diff -u`.")
    return reader.files


def ranges(numbers: Iterable[int]) -> Ranges:
    """Ascending numbers as (first, last) of each consecutive group."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def fits(lines: Sequence[str], hunks: Sequence[Hunk], marks: str) -> bool:
    """Whether the lines of every hunk on that side are at their numbers."""
    for hunk in hunks:
        start = (hunk.new if "+" in marks else hunk.old) - 1
        side = hunk.side(marks)
        if list(lines[start : start + len(side)]) != side:
            return False
    return True


def apply_hunks(lines: Sequence[L], hunks: Sequence[Hunk], added: Callable[[str], L]) -> list[L]:
    """The lines after applying hunks that fit; `added` makes a line from the text that a hunk adds."""
    result: list[L] = []
    at = 0
    for hunk in hunks:
        result += lines[at : hunk.old - 1]
        at = hunk.old - 1
        for mark, text in hunk.lines:
            if mark == "+":
                result.append(added(text))
                continue
            if mark == " ":
                result.append(lines[at])
            at += 1
    return [*result, *lines[at:]]


class _Reader:
    """Reads the lines in one pass."""

    def __init__(self, lines: Sequence[str], name: str) -> None:
        self._lines = lines
        self._name = name
        self._at = 0
        self.files: list[FilePatch] = []

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at].removesuffix("\r")
            if line.startswith("diff --git "):
                self._begin(*_git_names(line[len("diff --git ") :]))
            elif line.startswith("--- ") and self._next().startswith("+++ "):
                self._names(line, self._next())
                self._at += 1
            elif line.startswith("@@ "):
                self._hunk(line)
                continue
            elif _COMBINED.match(line):
                where = f"{self._name}, line {self._at + 1}"
                advice = "Make one against a single parent: `git diff A...B`."
                raise UsageError(f"{where}: this is the diff of a merge. {advice}")
            elif self.files:
                self._header(line)
            self._at += 1

    def _next(self) -> str:
        return self._lines[self._at + 1].removesuffix("\r") if self._at + 1 < len(self._lines) else ""

    def _begin(self, old: str | None, new: str | None) -> None:
        self.files.append(FilePatch(old, new, line=self._at + 1))

    def _names(self, before: str, after: str) -> None:
        old, new = _name(before[4:]), _name(after[4:])
        file = self.files[-1] if self.files else None
        if file is None or file.hunks or file.named or file.binary:
            self._begin(*_strip_prefixes(old, new))
        else:
            bare = _strip_prefixes(old, new)
            # The line above gave the names without prefixes: keep them if they fit.
            file.old = file.old if _is_prefixed(old, file.old) else bare[0]
            file.new = file.new if _is_prefixed(new, file.new) else bare[1]
        self.files[-1].named = True

    def _header(self, line: str) -> None:
        file = self.files[-1]
        if file.hunks:
            return
        file.copied |= line.startswith("copy from ")
        for prefix, side in _MOVES.items():
            if line.startswith(prefix):
                setattr(file, side, _unquote_name(line[len(prefix) :]))
                return
        if line.startswith("new file mode"):
            file.old = None
        elif line.startswith("deleted file mode"):
            file.new = None
        elif line.startswith(("Binary files ", "GIT binary patch")):
            file.binary = True

    def _hunk(self, line: str) -> None:
        where = f"{self._name}, line {self._at + 1}"
        if not self.files:
            raise UsageError(f"{where}: a hunk without a file before it. Give the whole unified diff.")
        if (match := _HUNK.match(line)) is None:
            raise UsageError(f"{where}: {line[:40]!r} is not a hunk header. One looks like '@@ -1,3 +1,4 @@'.")
        old, old_count, new, new_count = (int(part) if part is not None else 1 for part in match.groups())
        if max(old, old_count, new, new_count) > MOST_LINES or (old == 0 and old_count) or (new == 0 and new_count):
            raise UsageError(f"{where}: {line[:60]!r} names lines that no file has. Make the patch again.")
        # An empty side starts after the line it names.
        hunk = Hunk(old + (old_count == 0), new + (new_count == 0))
        self._at += 1
        while old_count > 0 or new_count > 0:
            text = self._lines[self._at] if self._at < len(self._lines) else None
            if text is None or (text == "" and self._at == len(self._lines) - 1):
                raise UsageError(f"{where}: the hunk ends early. The patch is cut off or was edited: make it again.")
            mark, rest = (text[0], text[1:]) if text.rstrip("\r") else (" ", "")
            if mark == "\\":
                self._at += 1
                continue
            if mark not in " +-":
                said = f"{self._name}, line {self._at + 1}"
                raise UsageError(f"{said}: a line of a hunk begins with ' ', '+' or '-', not with {mark!r}.")
            old_count -= mark != "+"
            new_count -= mark != "-"
            if old_count < 0 or new_count < 0:
                raise UsageError(f"{where}: the hunk has more lines than its header says. Make the patch again.")
            hunk.lines.append((mark, rest.removesuffix("\r")))
            self._at += 1
        before = self.files[-1].hunks[-1] if self.files[-1].hunks else None
        if before is not None and hunk.old < before.old + len(before.side(" -")):
            raise UsageError(f"{where}: the hunk begins before the end of the one above it. Make the patch again.")
        self.files[-1].hunks.append(hunk)


def _git_names(rest: str) -> tuple[str | None, str | None]:
    """`a/x b/x`: the two names are equal, except for renames, which have their own lines."""
    if quoted := _QUOTED.match(rest):
        return _strip_prefixes(_name(quoted[0]), _name(rest[quoted.end() + 1 :]))
    if rest.endswith('"'):
        # A name without quotes around it has no quotes inside.
        first, _, second = rest.partition(' "')
        return _strip_prefixes(_name(first), _name(f'"{second}'))
    middle = len(rest) // 2
    if rest[middle : middle + 1] == " " and rest[2:middle] == rest[middle + 3 :]:
        return _strip_prefixes(_name(rest[:middle]), _name(rest[middle + 1 :]))
    first, _, second = rest.partition(" b/")
    return _strip_prefixes(_name(first), f"b/{second}" if second else None)


def _name(written: str) -> str | None:
    """A path as written after ---, +++ or diff --git; None for /dev/null."""
    # A tab ends a name that contains a space, also after its quotes.
    quoted = _QUOTED.match(written)
    path = written.partition("\t")[0].rstrip("\r") if quoted is None else _unquote_name(quoted[0])
    return None if path == "/dev/null" else path


def _strip_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """The two names of one file without their prefixes; names that are the same have none."""
    if old == new:
        return old, new
    if old and new and old[2:] == new[2:] and _PREFIX.match(old) and _PREFIX.match(new):
        return old[2:], new[2:]
    return old and old.removeprefix("a/"), new and new.removeprefix("b/")


def _is_prefixed(name: str | None, bare: str | None) -> bool:
    return name is not None and (name == bare or (name[2:] == bare and _PREFIX.match(name) is not None))


def _unquote_name(written: str) -> str:
    """A name as git quotes it: C escapes, bytes in octal."""
    if not (written.startswith('"') and written.endswith('"') and len(written) > 1):
        return written
    data = bytearray()
    parts = re.findall(r"\\([0-7]{3})|\\(.)|([^\\]+)", written[1:-1], re.DOTALL)
    for octal, escape, plain in parts:
        if octal:
            data.append(int(octal, 8) & 0xFF)
        else:
            text: str = _ESCAPES.get(escape, str(escape)) if escape else str(plain)
            data += text.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "surrogateescape")
