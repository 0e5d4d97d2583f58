"""A change and a group of its files -> what readers need beside the code: removed lines, messages, callers, rules.

All of it is bounded, and all of it is data of the repository: a reader is told not to obey it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from chargehand.apps.review import work_tree as git
from chargehand.apps.review.analyzers.git import PLAIN
from chargehand.apps.review.analyzers.source_files import SourceReader, is_python
from chargehand.apps.review.change import Change
from chargehand.values.base import JSON

RULES = ("CLAUDE.md", "AGENTS.md", ".github/copilot-instructions.md", "CONTRIBUTING.md")
# Characters of each part that one reader gets.
MOST_REMOVED = 8_000
MOST_MESSAGES = 4_000
MOST_RULES = 12_000
# Functions whose callers are looked up, callers shown of each, and characters of a line.
MOST_FUNCTIONS = 8
MOST_CALLERS = 5
LONGEST_LINE = 200
# A shorter name is found everywhere.
LEAST_NAME = 4
_LARGEST = 5_000_000
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+")


def context_beside(change: Change, group: Iterable[str]) -> dict[str, JSON]:
    """Only what there is: nothing for a tree, or for a patch without its repository."""
    if change.base is None or not change.in_place:
        return {}
    names = list(group)
    parts: dict[str, JSON] = {
        "removed": _removed_lines(change, names),
        "messages": _messages(change),
        "callers": _callers(change, names),
    }
    return {name: part for name, part in parts.items() if part}


def nearest_rules(root: Path, group: Iterable[str]) -> dict[str, str]:
    """The written rules for the files of a group, by file: those of a nearer folder first, then up to the root."""
    folders: dict[str, None] = {}
    for path in group:
        folders.update(dict.fromkeys(str(parent) for parent in PurePosixPath(path).parents))
    ordered = sorted(folders or {".": None}, key=lambda folder: -len(PurePosixPath(folder).parts))
    found: dict[str, str] = {}
    left = MOST_RULES
    for folder in ordered:
        for name in RULES:
            path = root / folder / name
            try:
                if left > 0 and path.is_file() and not path.is_symlink():
                    text = path.read_text(encoding="utf-8", errors="replace")[:left]
                    found[(PurePosixPath(folder) / name).as_posix()] = text
                    left -= len(text)
            except OSError:
                continue
    return found


def _removed_lines(change: Change, names: list[str]) -> dict[str, str]:
    """Path -> the lines that the change took out, each with the number it had."""
    found: dict[str, str] = {}
    left = MOST_REMOVED
    for name in names:
        try:
            said = git.ask(change.root, "diff", *PLAIN, "--no-color", "-M", "-U0", str(change.base), "--", name)
        except git.GitFailed:
            continue
        lines = list(_taken_out(said[:_LARGEST].decode("utf-8", "replace")))
        if lines and left > 0:
            found[name] = "\n".join(lines)[:left]
            left -= len(found[name])
    return found


def _taken_out(diff: str) -> Iterator[str]:
    number = 0
    is_inside = False
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            number, is_inside = int(hunk[1]), True
        elif is_inside and line.startswith("-"):
            yield f"{number}: {line[1:][:LONGEST_LINE]}"
            number += 1
        elif line.startswith("diff "):
            is_inside = False


def _messages(change: Change) -> str:
    """What the commits of the change say, newest first."""
    try:
        said = git.ask(change.root, "log", "--no-merges", "--format=%B", f"{change.base}..HEAD", "--")
    except git.GitFailed:
        return ""
    return said.decode("utf-8", "replace").strip()[:MOST_MESSAGES]


def _callers(change: Change, names: list[str]) -> dict[str, list[str]]:
    """Changed functions -> the places that name them, as `path:line: code`; not their own definitions."""
    functions = dict.fromkeys(name for path in names for name in _changed_functions(change, path))
    found: dict[str, list[str]] = {}
    for name in [name for name in functions if len(name) >= LEAST_NAME][:MOST_FUNCTIONS]:
        try:
            said = git.ask(change.root, "grep", "-I", "-n", "-w", "-F", "-e", name, "--")
        except git.GitFailed:
            continue  # there is none
        lines = said[:_LARGEST].decode("utf-8", "replace").split("\n")
        used = [line[:LONGEST_LINE] for line in lines if line and not re.search(rf"\bdef {name}\b", line)]
        if used:
            found[name] = used[:MOST_CALLERS]
    return found


def _changed_functions(change: Change, path: str) -> Iterator[str]:
    ranges = (change.changed or {}).get(path, ())
    if not ranges or not is_python(path, change.root):
        return
    source = SourceReader(change.root).read(path)
    for node in ast.walk(source.tree) if source and source.tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            last = node.end_lineno or node.lineno
            if any(first <= last and node.lineno <= end for first, end in ranges):
                yield node.name
