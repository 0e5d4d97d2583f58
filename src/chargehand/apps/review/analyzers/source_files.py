"""Files of a scope become text and syntax trees, with the reason for each file that could not be read.

Runs in a child process: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

# A larger file is data or generated; analyzers would take minutes over it.
from chargehand.engine.analyzer_port import UNREAD

MAX_BYTES = 2 * 1024 * 1024
PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
# The most files that are read in a tree for one language.
MAX_FILES = 20_000
# The syntax trees that are kept for the next analyzer of the same files: a tree takes a hundred times as much memory as
# its text.
KEPT_TREES = 20
KEPT_TEXT = 25_000
# Folders of code that is not the project's own.
VENDORED = frozenset(
    {".eggs", ".nox", ".tox", ".venv", "__pycache__", "_vendor", "bower_components", "node_modules", "site-packages"}
    | {"third-party", "third_party", "thirdparty", "vendor", "vendored", "venv"}
)
# A search of a whole tree also leaves out built files.
FOREIGN = VENDORED | {"build", "dist", "env"}
LOCKS = frozenset(
    {"Cargo.lock", "Gemfile.lock", "Pipfile.lock", "bun.lock", "bun.lockb", "composer.lock", "flake.lock", "go.sum"}
    | {"gradle.lockfile", "mix.lock", "npm-shrinkwrap.json", "package-lock.json", "packages.lock.json", "pdm.lock"}
    | {"pixi.lock", "pnpm-lock.yaml", "poetry.lock", "pubspec.lock", "pylock.toml", "uv.lock", "yarn.lock"}
)
_SHEBANG = re.compile(rb"#!.{0,80}\bpython[\d.]*\b")
# Why a file could not be checked. All analyzers use the same words, so that one cause is reported once.
UNPARSED = "Could not be parsed (a syntax error, or another version of Python)"
UNDECODED = "Could not be decoded"
TEST_PARTS = frozenset({"test", "tests", "spec", "specs", "__tests__", "fixtures", "testdata"})


@dataclass(frozen=True)
class SourceFile:
    """One file's text; lines end with \\n whatever they ended with on disk."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Line n is `lines[n - 1]`; only \\n ends a line, as for git and compilers."""
        return self.text.split("\n")

    @cached_property
    def python(self) -> bool:
        """Whether it is Python, by its name or, without an ending, by its first line."""
        named = "." in self.path.rpartition("/")[2]
        return is_python(self.path) or (not named and _SHEBANG.match(self.text[:120].encode()) is not None)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None when the text is not Python that this interpreter can parse.

        Several analyzers may get the same tree: none of them changes it.
        """
        return _parse_once(self.text) if len(self.text) <= KEPT_TEXT else _parse(self.text)

    @cached_property
    def comments(self) -> dict[int, str]:
        """Python comments by line; found in the tokens, so never inside a string."""
        found: dict[int, str] = {}
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT:
                    found[token.start[0]] = token.string
        except (tokenize.TokenError, SyntaxError, RecursionError):
            # Comments after a place that cannot be read are missing.
            return found
        return found


def _parse(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


_parse_once = lru_cache(KEPT_TREES)(_parse)


class SourceReader:
    """Reads files, and records why it left some out."""

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self._unchecked: dict[str, str] = {}
        self._real = os.path.realpath(root)
        self._folders: dict[str, bool] = {}

    def fits(self, path: str) -> bool:
        """Whether the file exists and is small enough; a symlink out of the root is not followed."""
        full = os.path.join(self.root, path)
        try:
            about = os.stat(full)
            inside = self._inside(os.path.realpath(full)) if os.path.islink(full) else self._folder(full)
        except (OSError, ValueError):
            self.count_unchecked(UNREAD, path)
            return False
        if not inside or not stat.S_ISREG(about.st_mode):
            self.count_unchecked("Not a file inside of the tree", path)
            return False
        if about.st_size > self.max_bytes:
            self.count_unchecked(f"Over {self.max_bytes // (1024 * 1024)} MB", path)
            return False
        return True

    def _folder(self, full: str) -> bool:
        """Whether the folder of a file is inside the root. Links are resolved once for all its files."""
        folder = os.path.dirname(full)
        if folder not in self._folders:
            self._folders[folder] = self._inside(os.path.realpath(folder))
        return self._folders[folder]

    def _inside(self, real: str) -> bool:
        return os.path.commonpath([self._real, real]) == self._real

    def each(self, paths: Iterable[str]) -> Iterator[SourceFile]:
        """The sources of the files that can be read."""
        for path in paths:
            if self.fits(path) and (source := self.read(path)):
                yield source

    def read(self, path: str) -> SourceFile | None:
        try:
            data = (self.root / path).read_bytes()
        except OSError:
            self.count_unchecked(UNREAD, path)
            return None
        if b"\0" in data[:8192] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self.count_unchecked("Not text", path)
            return None
        return SourceFile(path, _with_one_end(decode_source(data)))

    def parse_files(self, paths: Iterable[str]) -> Iterator[tuple[SourceFile, ast.Module]]:
        """Sources with their trees. ruff reports the place of a syntax error."""
        for source in self.each(paths):
            if source.tree is None:
                self.note_unparsed(source.path)
            else:
                yield source, source.tree

    def note_unparsed(self, path: str) -> None:
        """Record why a file could not be parsed: its bytes are not text, or the text is not Python."""
        try:
            data = (self.root / path).read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            data.decode(encoding)
        except OSError:
            self.count_unchecked(UNREAD, path)
        except (SyntaxError, ValueError, LookupError):
            self.count_unchecked(UNDECODED, path)
        else:
            self.count_unchecked(UNPARSED, path)

    def count_unchecked(self, reason: str, path: str) -> None:
        """Record why a file could not be checked; the first reason is kept."""
        self._unchecked.setdefault(path, reason)

    def unchecked_files(self) -> dict[str, str]:
        """The files that were left out, each with the reason."""
        return dict(self._unchecked)


def decode_source(data: bytes) -> str:
    """Text of any encoding: by byte order mark, as UTF-8, else byte by byte, so that every line keeps its number."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def split(text: str) -> list[str]:
    """The lines of a text without their ends, as compilers number them: form feed and U+2028 do not end a line."""
    lines = _with_one_end(text).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _with_one_end(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.With() | ast.AsyncWith():
            yield statement.body
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield statement.body
            yield statement.orelse
        case ast.Try() | ast.TryStar():
            yield from (statement.body, statement.orelse, statement.finalbody)
            yield from (handler.body for handler in statement.handlers)
        case ast.Match():
            yield from (case.body for case in statement.cases)
        case _:
            return


def tree_files(root: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Files of the tree with one of these endings, in a fixed order, without code from other projects."""
    count = 0
    base = os.path.join(root, "")
    for folder, folders, names in os.walk(root):
        within = os.path.join(folder, "").removeprefix(base).replace(os.sep, "/")
        folders[:] = sorted(name for name in folders if name not in FOREIGN and not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(suffixes):
                count += 1
                if count > MAX_FILES:
                    return
                yield f"{within}{name}"


def is_python(path: str, root: Path | str | None = None) -> bool:
    """Whether it is Python, by its ending in any letter case; without one, by its first line if a root is given."""
    if path.lower().endswith(PYTHON_SUFFIXES):
        return True
    if root is None or "." in path.rpartition("/")[2]:
        return False
    try:
        with open(os.path.join(root, path), "rb") as file:
            return _SHEBANG.match(file.read(120)) is not None
    except (OSError, ValueError):
        return False


def is_test(path: str) -> bool:
    """Whether a path is test code, by the conventions of pytest, unittest, jest and go."""
    *folders, name = path.lower().split("/")
    stem = name.partition(".")[0]
    return (
        not TEST_PARTS.isdisjoint(folders)
        or stem in ("conftest", "tests", "test")
        or stem.startswith(("test_", "test-"))
        or stem.endswith(("_test", "_spec", "_tests", "-test", "-tests"))
        or ".test." in name
        or ".spec." in name
    )


def text_key(path: str) -> str:
    """A path in the form that a tool writes to JSON: bytes that are not UTF-8 become the replacement character."""
    return os.fsencode(path).decode("utf-8", "replace")
