"""Old and new versions of Python files -> hits: code that is gone from functions that still exist.

Only the shape of the code is compared. A check counts as removed if the rest of its function is unchanged and its
condition is nowhere in the new files. So moved and rewritten code is not reported. Runs in a child process.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from chargehand.apps.review.analyzers import suppression
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, is_test

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Parameters that make a call safer: without them a call may wait forever, trust anybody or ignore a failure.
GUARDING = frozenset({"timeout", "verify", "check", "autoescape", "usedforsecurity"})
# The share of the other statements of a function that must be unchanged.
KEPT = 0.6
_LONGEST_QUOTE = 80


@dataclass(frozen=True)
class _Version:
    """One version of a file: its functions by qualified name, each with its statements in order."""

    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, Function]:
        return dict(_functions_by_name(self.tree, ""))

    @cached_property
    def conditions(self) -> Counter[str]:
        """Every condition and every context manager, as text."""
        return Counter(text for node in ast.walk(self.tree) for text in _guards_of(node))


def examine(order: AnalysisOrder) -> Hits:
    reader = SourceReader(order.root)
    versions: dict[str, tuple[SourceFile, _Version, _Version]] = {}
    for source, tree in reader.parse_files(order.files):
        before = SourceFile(source.path, order.options["before"][source.path]).tree
        if before is not None:
            versions[source.path] = source, _Version(before), _Version(tree)
    anywhere = Counter[str]()
    for _, old, new in versions.values():
        anywhere += new.conditions
        anywhere.subtract(old.conditions)
    hits: list[Hit] = []
    for path, (source, old, new) in versions.items():
        found = _removed_tests(path, old, new) if is_test(path) else _find_removals(path, old, new, anywhere)
        hits += suppression.drop_silenced(found, source.lines)
    return Hits(tuple(hits))


def _find_removals(path: str, old: _Version, new: _Version, anywhere: Counter[str]) -> Iterator[Hit]:
    for name, function in old.functions.items():
        now = new.functions.get(name)
        if now is None or ast.dump(now) == ast.dump(function) or not _is_mostly_kept(function, now):
            continue
        kept = Counter(_text(each) for each in ast.walk(now) if isinstance(each, ast.stmt))
        left = list(_guards(now))
        for text, node in _guards(function):
            if anywhere[text] >= 0 or not _is_fewer(left, _guards(function), type(node)):
                continue  # it was moved, or another one replaces it
            if isinstance(node, ast.If):
                message = f"`{name}` no longer stops when `{_short(text)}`."
                yield Hit("removed:guard", path, now.lineno, message)
            elif any(_text(each) in kept for each in node.body):
                message = f"What was done in `with {_short(text)}` in `{name}` is done without it."
                yield Hit("removed:with", path, now.lineno, message)
        yield from _removed_arguments(path, name, function, now)


def _removed_arguments(path: str, name: str, old: Function, new: Function) -> Iterator[Hit]:
    """Arguments removed from calls that are made as often as before."""
    before, after = _calls(old), _calls(new)
    for called, calls in before.items():
        now = after.get(called, [])
        if len(now) != len(calls):
            continue
        had, have = (Counter(keyword for call in each for keyword in _keywords(call)) for each in (calls, now))
        if have - had or _count_by_place(now) > _count_by_place(calls):
            continue  # another argument may have the same purpose, or the same one is given by its place
        for keyword in sorted(GUARDING & (had - have).keys()):
            message = f"`{_short(called)}` in `{name}` is called without `{keyword}=` now."
            yield Hit("removed:argument", path, now[0].lineno, message)


def _removed_tests(path: str, old: _Version, new: _Version) -> Iterator[Hit]:
    """Removed tests, if fewer tests were added than removed."""
    gone = [name for name in old.functions if _is_test(name) and name not in new.functions]
    come = [name for name in new.functions if _is_test(name) and name not in old.functions]
    if len(gone) > len(come):
        names = ", ".join(f"`{name}`" for name in gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        yield Hit("removed:tests", path, 1, f"Tests were taken out, and fewer put in: {names}.")


def _functions_by_name(node: ast.AST, around: str) -> Iterator[tuple[str, Function]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, Function):
            yield f"{around}{each.name}", each
        elif isinstance(each, ast.ClassDef):
            yield from _functions_by_name(each, f"{around}{each.name}.")


def _is_test(name: str) -> bool:
    return name.rpartition(".")[2].startswith("test")


def _is_mostly_kept(old: Function, new: Function) -> bool:
    """Whether most of a function is unchanged: it was edited, not rewritten."""
    before, after = (Counter(_text(each) for each in _simple(function)) for function in (old, new))
    return sum((before & after).values()) >= KEPT * max(before.total(), 1)


def _simple(function: Function) -> Iterator[ast.stmt]:
    """Statements without other statements inside. Those that only stop are part of their check."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return | ast.Delete):
            yield node


def _guards(function: Function) -> Iterator[tuple[str, ast.If | ast.With | ast.AsyncWith]]:
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.With | ast.AsyncWith):
            yield from ((text, node) for text in _guards_of(node))


def _is_fewer(left: Iterable[tuple[str, ast.AST]], there: Iterable[tuple[str, ast.AST]], kind: type[ast.AST]) -> bool:
    return sum(isinstance(node, kind) for _, node in left) < sum(isinstance(node, kind) for _, node in there)


def _guards_of(node: ast.AST) -> Iterator[str]:
    """The condition under which it stops, or the context manager that it holds."""
    match node:
        case ast.If(test=test, body=[*_, ast.Raise()], orelse=[]):
            yield _text(test)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (_text(each.context_expr) for each in items if each.optional_vars is None)
        case _:
            pass


def _calls(function: Function) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            found.setdefault(_text(node.func), []).append(node)
    return found


def _keywords(call: ast.Call) -> Iterable[str]:
    return (each.arg for each in call.keywords if each.arg is not None)


def _count_by_place(calls: Iterable[ast.Call]) -> int:
    return sum(len(call.args) for call in calls)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}..."
