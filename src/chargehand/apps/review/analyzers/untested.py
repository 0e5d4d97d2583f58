"""Changed Python functions, coverage data and the imports of the tests, as hits: behaviour that no test can have run.

If there is coverage data newer than the change, lines that no test ran are reported. Without it, a module is reported
only if no test imports it, directly or through other modules: the names of functions in tests say little.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from chargehand.apps.review.analyzers import suppression
from chargehand.apps.review.analyzers.coverage_data import COVERAGE_FILES, RecordedCoverage, read_coverage
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.import_graph import ImportGraph
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, is_python, is_test, tree_files
from chargehand.engine.analyzer_port import Ranges

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Functions that a finding names.
MOST_NAMED = 3
NO_TESTS = "The tree has no Python tests: changed behaviour was not compared with them."


def examine(order: AnalysisOrder) -> Hits:
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
        (source, functions)
        for source, tree in reader.parse_files(paths)
        if (functions := list(_changed_functions(tree, order.changed_ranges(source.path))))
    ]
    if not changed:
        return Hits(unchecked=reader.unchecked_files())
    coverage, notes = _newest_coverage(order.root, [source.path for source, _ in changed])
    files = list(tree_files(order.root, (".py",)))
    tests = [path for path in files if is_test(path)]
    if not tests and coverage is None:
        return Hits(notes=(*notes, NO_TESTS), unchecked=reader.unchecked_files())
    graph = ImportGraph(SourceReader(order.root), files, tests)
    hits: list[Hit] = []
    for source, functions in changed:
        if coverage is not None and coverage.lines_missed(source.path, ()) is not None:
            found = _never_run(source, functions, coverage)
        else:
            found = _never_imported(source, functions, graph)
        hits += suppression.drop_silenced(found, source.lines)
    return Hits(tuple(hits), notes, reader.unchecked_files())


def _newest_coverage(root: Path, paths: list[str]) -> tuple[RecordedCoverage | None, tuple[str, ...]]:
    """The coverage data that fits the present files, and why other data was not used."""
    newest = max(os.stat(root / path).st_mtime for path in paths)
    notes: list[str] = []
    for name in COVERAGE_FILES:
        path = root / name
        if not path.is_file() or path.is_symlink():
            continue
        if path.stat().st_mtime < newest:
            notes.append(f"{name} is older than the change and was not used: run the tests with coverage again.")
        elif (coverage := read_coverage(path, name)) is None:
            notes.append(f"{name} could not be read as coverage data and was not used.")
        else:
            return coverage, ()
    return None, tuple(notes)


def _never_run(source: SourceFile, functions: list[tuple[str, list[int]]], coverage: RecordedCoverage) -> Iterator[Hit]:
    for function, changed in functions:
        if missed := coverage.lines_missed(source.path, changed):
            lines = f"{'lines' if len(missed) > 1 else 'line'} {', '.join(_ranges(missed))}"
            message = f"`{function}` changed and no test ran its {lines}, by {coverage.name}."
            yield Hit("untested:uncovered", source.path, missed[0], message)


def _never_imported(source: SourceFile, functions: list[tuple[str, list[int]]], graph: ImportGraph) -> Iterator[Hit]:
    if graph.is_left_out(source.path):
        names = ", ".join(f"`{name}`" for name, _ in functions[:MOST_NAMED])
        more = f" and {len(functions) - MOST_NAMED:,} more" if len(functions) > MOST_NAMED else ""
        message = f"No test imports this module, in which {names}{more} changed."
        at_most = None if graph.is_widely_tested else "info"
        yield Hit("untested:unimported", source.path, functions[0][1][0], message, at_most=at_most)


def _ranges(lines: list[int]) -> Iterator[str]:
    """Lines in order as `3, 5-7`."""
    for _, group in groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        numbers = [line for _, line in group]
        yield str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _changed_functions(tree: ast.Module, ranges: Ranges) -> Iterator[tuple[str, list[int]]]:
    """Functions of the top level and of classes, with the first line of each of their changed statements."""
    for name, function in _functions(tree):
        if not _touches(function.lineno, function.end_lineno or function.lineno, ranges):
            continue
        lines = sorted({first for first, last in _statements(function) if _touches(first, last, ranges)})
        if lines:
            yield name, lines


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, Function))


def _touches(first: int, last: int, ranges: Ranges) -> bool:
    return any(begin <= last and first <= end for begin, end in ranges)


def _statements(function: Function) -> Iterator[tuple[int, int]]:
    """First and last line of each statement that does something; for a compound statement, only its head."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and not _is_idle(node):
            inner = [each.lineno for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            last = min(inner) - 1 if inner else node.end_lineno
            yield node.lineno, max(last or node.lineno, node.lineno)


def _is_idle(statement: ast.stmt) -> bool:
    """Docstrings, annotations and statements such as `pass`."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.AnnAssign() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Try():
            return True  # the statements inside count
        case _:
            return False
