"""The Python files of a tree and its tests -> which modules no test imports, directly or through others.

Names are compared loosely: a module that may be meant counts as imported. Runs in a child process: nothing here
imports more than the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath

from chargehand.apps.review.analyzers.source_files import SourceReader

# `import a.b, c as d`, `from ..a import (b, c`: names up to the end of the statement, which may be on later lines.
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n#;]+)", re.MULTILINE)
_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(?:\(([^)]*)\)|([^\n#;]+))", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_COMMENT = re.compile(r"#[^\n]*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PACKAGE = "__init__"
# A shorter name may occur in any text.
_LEAST_NAME = 4


class ImportGraph:
    """Made for one change. Files are read when they are reached."""

    def __init__(self, reader: SourceReader, files: Iterable[str], tests: Iterable[str]) -> None:
        self._reader = reader
        self._tests = list(tests)
        self._files = list(files)

    def is_left_out(self, path: str) -> bool:
        """Whether no test reaches the module, although tests directly import a third of the others in its folder.

        Scripts, documentation, examples, plugins and pages are not a gap: tests import few of them, and nobody expects
        tests. Indirect imports say nothing about a folder.
        """
        at = PurePosixPath(path)
        if path in self._reached or at.stem in ("__main__", "conftest", "setup"):
            return False
        # A command or a plugin is run by its name.
        if at.stem != _PACKAGE and len(at.stem) >= _LEAST_NAME and at.stem in self._said:
            return False
        beside = [other for other in self._folders.get(str(at.parent), ()) if other != path and not _is_package(other)]
        return bool(beside) and 3 * sum(other in self._imported for other in beside) >= len(beside)

    @cached_property
    def is_widely_tested(self) -> bool:
        """Whether tests directly import a quarter of all modules. If not, one more untested module is not reported."""
        modules = [path for paths in self._folders.values() for path in paths if not _is_package(path)]
        return 4 * sum(path in self._imported for path in modules) >= len(modules)

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        """Folder -> its modules that are not tests."""
        tests = set(self._tests)
        found: dict[str, list[str]] = {}
        for path in self._files:
            if path not in tests:
                found.setdefault(str(PurePosixPath(path).parent), []).append(path)
        return found

    @cached_property
    def _modules(self) -> dict[str, list[str]]:
        """Every name under which a file may be imported -> files. A name may start at the root or at any folder."""
        found: dict[str, list[str]] = {}
        for path in self._files:
            parts = PurePosixPath(path).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == _PACKAGE else parts
            for begin in range(len(parts)):
                found.setdefault(".".join(parts[begin:]), []).append(path)
        return found

    @cached_property
    def _said(self) -> set[str]:
        """All words of the tests."""
        return {word for source in self._reader.each(self._tests) for word in _WORD.findall(source.text)}

    @cached_property
    def _imported(self) -> set[str]:
        """The modules that tests import directly."""
        return {
            path
            for source in self._reader.each(self._tests)
            for name in _imports_of(source.path, source.text)
            for path in self._modules.get(name, ())
        }

    @cached_property
    def _reached(self) -> set[str]:
        reached, waiting = set(self._tests), list(self._tests)
        while waiting:
            for source in self._reader.each([waiting.pop()]):
                for name in _imports_of(source.path, source.text):
                    new = [path for path in self._files_behind(name) if path not in reached]
                    reached.update(new)
                    waiting += new
        return reached

    def _files_behind(self, name: str) -> Iterator[str]:
        """The files behind a dotted name: the module, and the packages around it."""
        while name:
            yield from self._modules.get(name, ())
            name = name.rpartition(".")[0]


def _is_package(path: str) -> bool:
    return PurePosixPath(path).stem == _PACKAGE


def _imports_of(path: str, text: str) -> Iterator[str]:
    """The dotted names that a module imports; relative imports are resolved from the root of the tree."""
    for found in _IMPORT.finditer(text):
        yield from (name[0] for part in found[1].split(",") if (name := _NAME.match(part.strip())))
    folder = PurePosixPath(path).parent.parts
    for found in _FROM.finditer(text):
        dots, module = len(found[1]), found[2]
        around = folder[: len(folder) - dots + 1] if dots else ()
        base = ".".join([*around, *filter(None, [module])])
        if base:
            yield base
        names = _COMMENT.sub("", found[3] or found[4] or "")
        for part in names.split(","):
            if name := _NAME.match(part.strip()):
                yield f"{base}.{name[0]}" if base else name[0]
