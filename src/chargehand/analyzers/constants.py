"""An expression -> whether its text is made of nothing but what the code itself says: literals, placeholders, numbers.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
# Name -> what it is bound to, None for what is not known.
Bindings = dict[str, list[ast.expr | None]]
# What they return says nothing that a database would obey.
NUMBERS = frozenset({"len", "int", "float", "round", "abs"})


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
    """Looks names up where they are bound; one that anybody else can bind is no constant."""

    def __init__(self, parents: Mapping[ast.AST, ast.AST]) -> None:
        self._parents = parents
        self._bindings: dict[Scope, Bindings] = {}
        # A name that is being looked up is no constant yet: what is made from itself is not followed.
        self._known: dict[tuple[Scope, str], bool] = {}

    def holds(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return self._bound(node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return all(map(self.holds, parts))
            case ast.JoinedStr(values=parts):
                return all(map(self.holds, parts))
            case ast.FormattedValue(value=value):
                return self.holds(value)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                # How often it is repeated does not matter.
                return any(_is_literal(side) and self.holds(side) for side in (left, right))
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
                return self.holds(left) and self.holds(right)
            case ast.IfExp(body=left, orelse=right):
                return self.holds(left) and self.holds(right)
            case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part):
                return self.holds(part)
            case ast.Call():
                return self._called(node)
            case _:
                return False

    def _called(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in NUMBERS or (name == "str" and all(map(self.holds, args)))
            case ast.Call(func=ast.Attribute(value=text, attr="join" | "format"), args=args, keywords=named):
                return self.holds(text) and all(map(self.holds, (*args, *(each.value for each in named))))
            case _:
                return False

    def _bound(self, name: ast.Name) -> bool:
        """Whether all that a name is bound to, in its function or else further out, is constant."""
        scope = enclosing(name, self._parents)
        while name.id not in self._within(scope) and not isinstance(scope, ast.Module):
            scope = enclosing(scope, self._parents)
        place = scope, name.id
        if place not in self._known:
            self._known[place] = False
            values = self._within(scope).get(name.id, [None])
            self._known[place] = all(value is not None and self.holds(value) for value in values)
        return self._known[place]

    def _within(self, scope: Scope) -> Bindings:
        if scope not in self._bindings:
            self._bindings[scope] = _bindings(scope)
        return self._bindings[scope]


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.List() | ast.Tuple():
            return True
        case _:
            return False


def _bindings(scope: Scope) -> Bindings:
    """What every name inside of a scope is bound to, and what is added to a list; None for what is unknown."""
    found: Bindings = {}
    stored: Counter[str] = Counter()
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            stored[node.id] += 1
        for name, value, is_store in _bound_by(node):
            stored[name] -= is_store
            found.setdefault(name, []).append(value)
    for name in +stored:
        found.setdefault(name, []).append(None)
    return found


def _bound_by(node: ast.AST) -> Iterator[tuple[str, ast.expr | None, bool]]:
    """Name and value; whether the name is stored to."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name, node.value, True
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            yield name, value, True
        case ast.comprehension(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
            yield name, ast.Constant(value=0), True
        case ast.Call(func=func, args=args):
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
                yield from ((func.value.id, each, False) for each in args)
            if not _only_reads(func):
                # A list may get more in there; a text cannot, but which of them it is would take a type checker.
                yield from ((each.id, None, False) for each in args if isinstance(each, ast.Name))
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) | ast.arg(arg=name):
            yield name, None, False
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, None, False
        case ast.alias(name=whole, asname=short):
            yield short or whole, None, False
        case _:
            return


def _only_reads(func: ast.expr) -> bool:
    match func:
        case ast.Attribute(attr="join" | "format" | "execute" | "executemany"):
            return True
        case ast.Name(id=name):
            return name in NUMBERS
        case _:
            return False
