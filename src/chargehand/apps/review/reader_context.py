"""A change and a group of its files -> what readers need in addition to the code: removed lines, messages, callers,
rules, earlier comments.

All parts are limited in size, and all are data of the repository: the prompt tells readers not to obey them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from chargehand.apps.review import work_tree as git
from chargehand.apps.review.analyzers.git import PLAIN
from chargehand.apps.review.analyzers.pr_comments import read_comments
from chargehand.apps.review.analyzers.source_files import SourceReader, is_python
from chargehand.apps.review.change import Change
from chargehand.apps.review.patch import FilePatch, parse
from chargehand.errors import UsageError
from chargehand.values.base import JSON

RULES = ("CLAUDE.md", "AGENTS.md", ".github/copilot-instructions.md", "CONTRIBUTING.md")
# Characters of each part that one reader gets.
MOST_REMOVED = 8_000
MOST_MESSAGES = 4_000
MOST_RULES = 12_000
MOST_COMMENTS = 4_000
# The most functions to look up callers for, callers of each, and characters of a line.
MOST_FUNCTIONS = 8
MOST_CALLERS = 5
LONGEST_LINE = 200
# A shorter name would be found everywhere.
LEAST_NAME = 4
_LARGEST = 5_000_000
_LARGEST_DIFF = 50_000_000


def context_beside(change: Change, group: Iterable[str]) -> dict[str, JSON]:
    """The parts that exist: none for a whole tree, or for a patch without its repository."""
    if change.base is None or not change.in_place:
        return {}
    names = list(group)
    parts: dict[str, JSON] = {
        "messages": _messages(change),
        "callers": _callers(change, names),
    }
    return {name: part for name, part in parts.items() if part}


def nearest_rules(root: Path, group: Iterable[str]) -> dict[str, str]:
    """The written rules for the files of a group, by file: rules of the nearest folder first, then up to the root."""
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


def removed_lines(change: Change) -> dict[str, str]:
    """Path -> the lines that the change removed, each with its old number; only with a git repository."""
    if change.base is None or not change.in_place:
        return {}
    flags = (*PLAIN, "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "-M", "-U0")
    try:
        said = git.ask(change.root, "diff", *flags, change.base, "--", largest=_LARGEST_DIFF)
        files = parse(said.decode("utf-8", "surrogateescape"), "git diff")
    except UsageError:
        return {}
    found = {file.new: _taken_out(file) for file in files if file.new in change.files}
    return {path: text for path, text in found.items() if path and text}


def _taken_out(file: FilePatch) -> str:
    lines: list[str] = []
    for hunk in file.hunks:
        number = hunk.old
        for mark, text in hunk.lines:
            if mark == "-":
                lines.append(f"{number}: {text[:LONGEST_LINE]}")
            number += mark != "+"
    return "\n".join(lines).encode("utf-8", "replace").decode()[:MOST_REMOVED]


def comments_on(group: Iterable[str], pr_comments: str | None) -> dict[str, list[str]]:
    """Path -> earlier review comments about files of a group, each with its line."""
    found: dict[str, list[str]] = {}
    left = MOST_COMMENTS
    names = set(group)
    for path, line, body in read_comments(pr_comments or ""):
        if path in names and left > 0:
            said = f"{line}: {' '.join(body.split())}"[:left]
            found.setdefault(path, []).append(said)
            left -= len(said)
    return found


def _messages(change: Change) -> str:
    """The messages of the commits of the change, newest first."""
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
