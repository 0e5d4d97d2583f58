"""An expression -> whether its text consists only of parts written in the code: literals, placeholders, numbers.

A name is constant if everything that is bound to it or added to it by a method is constant. Changes that another
function makes to a list are not followed.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

# Functions whose result cannot be a command to a database.
NUMBERS = frozenset({"len", "int", "float", "round", "abs", "range"})
# Methods that do not change the list or table they are called on.
_READING = frozenset({"copy", "count", "format", "get", "index", "items", "join", "keys", "values"})
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


def enclosing(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Scope:
    """The function around a node, or the module."""
    while not isinstance(node := parents[node], Scope):
        continue
    return node


def is_text(node: ast.AST) -> bool:
    """Whether an expression puts a text together: concatenation, f-string, `%`, `format`."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format")):
            return True
        case _:
            return False


class Constants:
    """The names of one file. It is given the nodes of the file, each with its parent."""

    def __init__(self, parents: Mapping[ast.AST, ast.AST]) -> None:
        self._parents = parents
        # Names that several functions share count as bound by the module.
        self._shared = {name for node in parents if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        self._values: dict[tuple[Scope | None, str], list[ast.expr | None]] = {}
        for node in parents:
            for name, value in _bindings(node):
                self._values.setdefault((self._scope(node, name), name), []).append(value)
        self._added: dict[tuple[Scope | None, str], list[ast.expr | None]] = {}
        for node in parents:
            for name, value in _additions(node):
                self._added.setdefault(self._place(node, name), []).append(value)
        self._known: dict[tuple[Scope | None, str], bool] = {}

    def holds(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return self._is_constant(self._place(node, name))
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.JoinedStr(values=parts):
                return all(map(self.holds, parts))
            case ast.Dict(values=parts):
                return all(map(self.holds, parts))
            case ast.FormattedValue(value=part) | ast.Subscript(value=part):
                return self.holds(part)
            case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part):
                return self.holds(part)
            case ast.BinOp(left=ast.Constant(value=str()) | ast.List() | ast.Tuple() as text, op=ast.Mult()):
                return self.holds(text)  # the number of repeats does not matter
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right) | ast.IfExp(body=left, orelse=right):
                return self.holds(left) and self.holds(right)
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in NUMBERS or (name == "str" and all(map(self.holds, args)))
            case ast.Call(func=ast.Attribute(value=text, attr="join" | "format"), args=args, keywords=named):
                return self.holds(text) and all(map(self.holds, (*args, *(each.value for each in named))))
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[_, *default]):
                return all(map(self.holds, (table, *default)))
            case _:
                return False

    def _is_constant(self, place: tuple[Scope | None, str]) -> bool:
        if place not in self._known:
            # Not constant during its own lookup: a name that is made from itself is not followed.
            self._known[place] = False
            values = [*self._values.get(place, [None]), *self._added.get(place, ())]
            self._known[place] = all(value is not None and self.holds(value) for value in values)
        return self._known[place]

    def _scope(self, node: ast.AST, name: str) -> Scope | None:
        """The function that a name bound at a node belongs to; None for the module."""
        scope = enclosing(node, self._parents)
        return None if isinstance(scope, ast.Module) or name in self._shared else scope

    def _place(self, node: ast.AST, name: str) -> tuple[Scope | None, str]:
        """Where a name used at a node is bound: in the nearest function that binds it, else in the module."""
        scope = self._scope(node, name)
        while scope is not None and (scope, name) not in self._values:
            scope = self._scope(scope, name)
        return scope, name


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """A name and the value that a node binds to it; None for an unknown value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _bound_to(target, value)
        case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
            yield from _bound_to(target, value)
        case ast.NamedExpr(target=target, value=value):
            yield from _bound_to(target, value)
        case ast.For(target=target, iter=many) | ast.AsyncFor(target=target, iter=many):
            yield from _bound_to(target, _element(many))
        case ast.comprehension(target=target, iter=many):
            yield from _bound_to(target, _element(many))
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _bound_to(target, None)
        case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name, None
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name, None
        case ast.alias(name=whole, asname=short):
            yield short or whole.partition(".")[0], None
        case _:
            return


def _bound_to(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    else:
        # `table[key]` binds neither name.
        names = (each for each in ast.walk(target) if isinstance(each, ast.Name))
        yield from ((each.id, None) for each in names if isinstance(each.ctx, ast.Store))


def _element(many: ast.expr) -> ast.expr:
    return ast.Subscript(value=many, slice=ast.Constant(value=0), ctx=ast.Load())


def _additions(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The name of a list or table, and the value added to it."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method), args=args, keywords=named):
            if method not in _READING:
                yield from ((owner, each) for each in (*args, *(each.value for each in named)))
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=owner))], value=value):
            yield owner, value
        case _:
            return
