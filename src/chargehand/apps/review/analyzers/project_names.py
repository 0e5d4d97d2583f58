"""Names that Python files import from the modules of their own project, as hits: names that do not exist, calls that do
not fit.

Nothing is imported: a module is the file that its name leads to, from the root, from `src`, or from the folder of a
script. A module that may have more names than its text shows is not checked. Runs in a child process.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.mistakes import Function, Outline, find_misfits, find_unawaited
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader
from chargehand.apps.review.analyzers.syntax_nodes import child_nodes

# Names that show that a module creates names while it runs.
_MADE = re.compile(r"sys\.modules|globals\(\)|locals\(\)|vars\(\)|setattr\(|exec\(|__getattr__|lazy", re.IGNORECASE)
# Endings of modules that are not source text.
_OTHER_FORMS = (".so", ".pyd", ".pyx", ".pyi", ".c")
# Statements, and the parts of statements that have statements.
_STATEMENTS = ast.stmt | ast.ExceptHandler | ast.match_case


@dataclass(frozen=True)
class _Module:
    path: str
    outline: Outline
    # Whether it may have more names than its text shows.
    is_open: bool

    def has(self, name: str) -> bool:
        return self.is_open or name in self.outline.top.bound or name in self.outline.shared

    def function(self, name: str) -> Function | None:
        return None if self.is_open or name in self.outline.shared else self.outline.top.only(name)


def examine(order: AnalysisOrder) -> Hits:
    modules = _Modules(order)
    return examine_trees(order, modules.hits)


class _Modules:
    """The modules of a project, each read when it is first asked for."""

    def __init__(self, order: AnalysisOrder) -> None:
        self._reader = SourceReader(order.root)
        self._known: dict[str, _Module | None] = {}

    def hits(self, source: SourceFile, tree: ast.Module) -> Iterator[Hit]:
        functions: dict[str, Function] = {}
        for node, is_tried in _imports(tree):
            modules = self._find(source.path, node)
            for alias in node.names if modules else ():
                if alias.name == "*" or self._is_module(modules, alias.name):
                    continue
                if not is_tried and not any(module.has(alias.name) for module in modules):
                    message = f"`{alias.name}` is not in {modules[0].path}."
                    yield Hit("project:import", source.path, alias.lineno, message)
                function = modules[0].function(alias.name) if len(modules) == 1 else None
                if function and node in tree.body:
                    functions[alias.asname or alias.name] = function
        if functions:
            yield from _find_wrong_calls(source.path, tree, functions)

    def _find(self, path: str, node: ast.ImportFrom) -> list[_Module]:
        """The modules that an import may mean."""
        parts = node.module.split(".") if node.module else []
        folder = path.split("/")[:-1]
        if node.level:
            places = [folder[: len(folder) - node.level + 1]] if node.level <= len(folder) + 1 else []
        elif parts[0] in sys.stdlib_module_names:
            return []
        else:
            is_script = not self._is_file("/".join([*folder, "__init__.py"]))
            places = [[], ["src"], *([folder] if is_script and folder not in ([], ["src"]) else [])]
        found = (self._read("/".join([*place, *parts])) for place in places)
        return [module for module in found if module]

    def _is_module(self, modules: list[_Module], name: str) -> bool:
        """Whether a name is a module or a folder in the folder of a package."""
        for module in modules:
            base = os.path.join(self._reader.root, os.path.dirname(module.path), name)
            if os.path.isdir(base) or any(os.path.exists(base + end) for end in (".py", *_OTHER_FORMS)):
                return True
        return False

    def _is_file(self, path: str) -> bool:
        return os.path.isfile(os.path.join(self._reader.root, path))

    def _read(self, name: str) -> _Module | None:
        if name not in self._known:
            paths = [path for path in (f"{name}/__init__.py".lstrip("/"), f"{name}.py") if self._is_file(path)]
            self._known[name] = self._parse(paths[0]) if len(paths) == 1 else None
        return self._known[name]

    def _parse(self, path: str) -> _Module | None:
        source = self._reader.read(path) if self._reader.fits(path) else None
        if source is None or source.tree is None:
            return None
        outline = Outline(source.tree)
        return _Module(path, outline, "*" in outline.top.bound or _MADE.search(source.text) is not None)


def _find_wrong_calls(path: str, tree: ast.Module, functions: dict[str, Function]) -> Iterator[Hit]:
    """Calls of imported functions that do not fit."""
    outline = Outline(tree)
    own = outline.top.defined
    outline.top.defined = {name: each for name, each in functions.items() if name not in own}
    for node, scope in outline.statements:
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            continue
        for rule, message in chain(find_misfits(node, scope), find_unawaited(node, scope)):
            yield Hit(rule, path, node.lineno, message)


def _imports(tree: ast.Module) -> Iterator[tuple[ast.ImportFrom, bool]]:
    """The imports of names, and whether a failure is expected."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, is_tried = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            yield node, is_tried
        inside = is_tried or isinstance(node, ast.Try | ast.If)
        waiting += [(each, inside) for each in child_nodes(node) if isinstance(each, _STATEMENTS)]
