"""Changed Python functions and the tests of the tree, as hits: behaviour that changed and no test mentions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from chargehand.apps.review.analyzers import suppression
from chargehand.apps.review.analyzers.hit import Hit, Hits, Order
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, is_python, is_test, tree_files
from chargehand.engine.analyzer_port import Ranges

Function = ast.FunctionDef | ast.AsyncFunctionDef
WORD = re.compile(r"[A-Za-z_]\w*")


def examine(order: Order) -> Hits:
    reader = SourceReader(order.root)
    paths = [
        path
        for path in order.files
        if is_python(path, order.root)
        and not path.endswith(".pyi")
        and not is_test(path)
        and order.changed_ranges(path)
    ]
    changed = [
        (source, list(_changed_functions(tree, source, order.changed_ranges(source.path))))
        for source, tree in reader.parse_files(paths)
    ]
    if not any(functions for _, functions in changed):
        return Hits(unchecked=reader.unchecked_files())
    quiet = SourceReader(order.root)
    tests = [path for path in tree_files(order.root, (".py",)) if is_test(path)]
    if not tests:
        note = "The tree has no Python tests: changed behaviour was not compared with them."
        return Hits(notes=(note,), unchecked=reader.unchecked_files())
    mentioned: set[str] = set()
    lately: set[str] = set()
    for test in quiet.each(tests):
        words = set(WORD.findall(test.text))
        mentioned |= words
        if order.changed_ranges(test.path):
            lately |= words
    hits: list[Hit] = []
    for source, functions in changed:
        hits += suppression.drop_silenced(_missing(source, functions, mentioned, lately), source.lines)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def _missing(
    source: SourceFile, functions: list[tuple[str, Function, int]], mentioned: set[str], lately: set[str]
) -> Iterator[Hit]:
    for owner, function, line in functions:
        # A constructor or operator is tested through its class, a private function through its module.
        names = {function.name} if not function.name.startswith("_") else {owner or source.path.rpartition("/")[2][:-3]}
        name = f"{owner}.{function.name}" if owner else function.name
        if not names & mentioned:
            yield Hit("untested:unmentioned", source.path, line, f"`{name}` changed and no test mentions it.")
        elif not names & lately:
            yield Hit("untested:unchanged", source.path, line, f"`{name}` changed and no test that mentions it did.")


def _changed_functions(tree: ast.Module, source: SourceFile, ranges: Ranges) -> Iterator[tuple[str, Function, int]]:
    """Class, function and first changed line of behaviour, for functions of the top level and of classes."""
    touched = {number for first, last in ranges for number in range(first, last + 1)}
    for owner, function in _functions(tree):
        lines = _behaviour(function, source) & touched
        if lines:
            yield owner, function, min(lines)


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((node.name, each) for each in node.body if isinstance(each, Function))


def _behaviour(function: Function, source: SourceFile) -> set[int]:
    """Lines of the body that do something: no docstring, comment, empty line or stub."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if not body or all(isinstance(each, ast.Pass) or _is_stub(each) for each in body):
        return set()
    lines = range(body[0].lineno, (function.end_lineno or function.lineno) + 1)
    return {number for number in lines if (text := source.lines[number - 1].strip()) and not text.startswith("#")}


def _is_stub(statement: ast.stmt) -> bool:
    match statement:
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False
