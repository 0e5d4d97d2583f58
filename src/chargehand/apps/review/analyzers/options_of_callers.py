"""A statement -> whether it runs only if a caller asks for it: under a condition on a parameter that is off by default.

Runs in a child process: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_option(statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the nearest condition around a statement is on a parameter whose default does not lead to it."""
    inner: ast.AST = statement
    while (outer := parents.get(inner)) is not None and not isinstance(outer, Function):
        if isinstance(outer, ast.If):
            function = _function_around(outer, parents)
            return function is not None and _is_chosen(outer.test, function.args, runs_if=inner in outer.body)
        inner = outer
    return False


def _function_around(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Function | None:
    around = parents.get(node)
    while around is not None and not isinstance(around, Function):
        around = parents.get(around)
    return around


def _is_chosen(test: ast.expr, takes: ast.arguments, *, runs_if: bool) -> bool:
    name, holds = _read_condition(test)
    defaults = _defaults(takes)
    if name not in defaults:
        return False
    default = defaults[name]
    # Without a default every caller decides. Of a default that is not a constant nothing is known.
    return default is None or (isinstance(default, ast.Constant) and holds(default.value) is not runs_if)


def _read_condition(test: ast.expr) -> tuple[str, Callable[[object], bool]]:
    """The name that a simple condition is about, and whether it holds for a value; no name for any other condition."""
    match test:
        case ast.Name(id=name):
            return name, bool
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            return name, lambda given: not given
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=value)]):
            return name, lambda given: given == value
        case _:
            return "", bool


def _defaults(takes: ast.arguments) -> dict[str, ast.expr | None]:
    """Parameter -> its default."""
    places = [*takes.posonlyargs, *takes.args]
    needed = [None] * (len(places) - len(takes.defaults))
    found = {each.arg: default for each, default in zip(places, [*needed, *takes.defaults], strict=True)}
    return found | {each.arg: default for each, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True)}
