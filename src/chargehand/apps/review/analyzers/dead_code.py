"""Private Python names that the whole tree mentions only where they are defined, as hits.

Every mention counts, also in strings and comments: a name in `getattr`, `__all__` or a doctest is used.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from chargehand.apps.review.analyzers import suppression
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import (
    PYTHON_SUFFIXES,
    SourceFile,
    SourceReader,
    is_python,
    tree_files,
)

READ = (*PYTHON_SUFFIXES, ".toml", ".cfg")
PRIVATE = re.compile(r"(?<!\w)_[A-Za-z0-9]\w*")
# Matches possible definitions of private names at the top level. Only files with a name mentioned once are parsed.
DEFINED = re.compile(r"(?m)^(?:(?:async )?def |class )?(_[A-Za-z0-9]\w*)")


def around(root: Path, hash: Callable[[str], str | None]) -> Iterator[str]:
    """All files that may mention a name."""
    for path in tree_files(root, READ):
        yield path
        yield hash(path) or ""


def examine(order: AnalysisOrder) -> Hits:
    reader = SourceReader(order.root)
    suspects: list[tuple[SourceFile, set[str]]] = []
    for source in reader.each(path for path in order.files if is_python(path, order.root)):
        defined = set(DEFINED.findall(source.text))
        mentions = Counter[str](PRIVATE.findall(source.text) if defined else ())
        if once := {name for name in defined if mentions[name] == 1}:
            suspects.append((source, once))
    hits: list[Hit] = []
    used = _names_used_elsewhere(order, suspects)
    for source, once in suspects:
        if not once - used:
            continue
        if source.tree is None:
            reader.note_unparsed(source.path)
        else:
            hits += suppression.drop_silenced(_find_unused(source, once - used), source.lines)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def _names_used_elsewhere(order: AnalysisOrder, suspects: list[tuple[SourceFile, set[str]]]) -> set[str]:
    """The suspected names that are in more than one file of the tree."""
    names = {name for _, once in suspects for name in once}
    if not names:
        return set()
    quiet = SourceReader(order.root)
    files: Counter[str] = Counter()
    for source in quiet.each(dict.fromkeys([*order.files, *tree_files(order.root, READ)])):
        files.update(names.intersection(PRIVATE.findall(source.text)))
    return {name for name in names if files[name] > 1}


def _find_unused(source: SourceFile, names: set[str]) -> Iterator[Hit]:
    for name, node, what in _private(source.tree):
        if name in names:
            yield Hit("dead:private", source.path, node.lineno, f"Nothing mentions the private {what} `{name}`.")


def _private(tree: ast.Module | None) -> Iterator[tuple[str, ast.stmt, str]]:
    """Private names of the top level, without decorated ones: a decorator may register them."""
    for node in tree.body if tree else ():
        match node:
            case ast.FunctionDef(name=name, decorator_list=[]) | ast.AsyncFunctionDef(name=name, decorator_list=[]):
                yield name, node, "function"
            case ast.ClassDef(name=name, decorator_list=[], keywords=[]):
                yield name, node, "class"
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name, node, "name"
            case _:
                continue
