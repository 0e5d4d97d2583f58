"""An expression -> whether its text is made of nothing but what the code itself says: literals, placeholders, numbers.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
# Name -> what it is bound to, None for what is not known.
Bindings = dict[str, list[ast.expr | None]]
# What they return says nothing that a database would obey.
NUMBERS = frozenset({"len", "int", "float", "round", "abs", "range"})


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


@dataclass(frozen=True, slots=True)
class Names:
    """What is done to names in one scope: bound there, bound further out (`global`), or given to what may change it."""

    bound: Bindings = field(default_factory=Bindings)
    outward: Bindings = field(default_factory=Bindings)
    changed: Bindings = field(default_factory=Bindings)


class Constants:
    """Looks names up where they are bound; one that anybody else can bind is no constant."""

    def __init__(self, parents: Mapping[ast.AST, ast.AST]) -> None:
        self._parents = parents
        self._names: dict[Scope, Names] = {}
        # A name that is being looked up is no constant yet: what is made from itself is not followed.
        self._known: dict[tuple[Scope, str], bool] = {}

    def holds(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return self._is_bound_to_constants(node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.JoinedStr(values=parts):
                return all(map(self.holds, parts))
            case ast.Dict(keys=keys, values=values):
                return all(self.holds(part) for part in (*keys, *values) if part is not None)
            case ast.FormattedValue(value=value) | ast.Subscript(value=value):
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
                return self._is_constant_call(node)
            case _:
                return False

    def _is_constant_call(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in NUMBERS or (name == "str" and all(map(self.holds, args)))
            case ast.Call(func=ast.Attribute(value=text, attr="join" | "format"), args=args, keywords=named):
                return self.holds(text) and all(map(self.holds, (*args, *(each.value for each in named))))
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[_, *default]):
                return all(map(self.holds, (table, *default)))
            case _:
                return False

    def _is_bound_to_constants(self, name: ast.Name) -> bool:
        """Whether all that a name is bound to, in its function or else further out, is constant."""
        scope = self._scope_of(name)
        place = scope, name.id
        if place not in self._known:
            self._known[place] = False
            values = self._values(name)
            if not all(map(self._is_fixed, values)):
                values = [*values, *self._within(scope).changed.get(name.id, ())]
            self._known[place] = all(value is not None and self.holds(value) for value in values)
        return self._known[place]

    def _scope_of(self, name: ast.Name) -> Scope:
        scope = enclosing(name, self._parents)
        while name.id not in self._within(scope).bound and not isinstance(scope, ast.Module):
            scope = enclosing(scope, self._parents)
        return scope

    def _values(self, name: ast.Name) -> list[ast.expr | None]:
        return self._within(self._scope_of(name)).bound.get(name.id, [None])

    def _is_fixed(self, node: ast.expr | None) -> bool:
        """Whether nobody who is given it can change it: a text, or several in a tuple."""
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.Tuple(elts=parts):
                return all(map(self._is_fixed, parts))
            case ast.Subscript(value=ast.Name() as many):
                return all(map(_has_texts, self._values(many)))
            case ast.Subscript(value=many):
                return _has_texts(many)
            case _:
                return False

    def _within(self, scope: Scope) -> Names:
        if scope not in self._names:
            self._names[scope] = self._names_of(scope)
        return self._names[scope]

    def _names_of(self, scope: Scope) -> Names:
        """What is done to names in a scope, and in those inside of it to names that are not theirs."""
        nodes = list(_own(scope))
        names = Names(bound=_bindings(nodes))
        for name, value in (each for node in nodes for each in _changed_by(node)):
            names.changed.setdefault(name, []).append(value)
        for inner in (self._within(node) for node in nodes if isinstance(node, Scope)):
            for name, values in inner.outward.items():
                here = name in names.bound or isinstance(scope, ast.Module)
                (names.bound if here else names.outward).setdefault(name, []).extend(values)
            for name in inner.changed.keys() - inner.bound.keys():
                names.changed.setdefault(name, []).extend(inner.changed[name])
        for node in nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                for name in names.bound.keys() & set(node.names):
                    names.outward.setdefault(name, []).extend(names.bound.pop(name))
        return names


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.List() | ast.Tuple():
            return True
        case _:
            return False


def _has_texts(node: ast.expr | None) -> bool:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return all(isinstance(part, ast.Constant) for part in parts)
        case _:
            return False


def _own(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope; of a function inside of it only the function."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        yield (node := waiting.pop())
        if not isinstance(node, Scope):
            waiting += ast.iter_child_nodes(node)


def _bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """What every name is bound to; None for what is unknown."""
    found: Bindings = {}
    stored: Counter[str] = Counter()
    for node in nodes:
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
        case ast.comprehension(target=ast.Name(id=name), iter=many) | ast.For(target=ast.Name(id=name), iter=many):
            yield name, ast.Subscript(value=many, slice=ast.Constant(value=0), ctx=ast.Load()), True
        case ast.arg(arg=name):
            yield name, None, False
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, None, False
        case ast.alias(name=whole, asname=short):
            yield short or whole, None, False
        case _:
            return


def _changed_by(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Name of a list or table, and what may be added to it."""
    match node:
        case ast.Call(func=func, args=args, keywords=named):
            given = [*args, *(each.value for each in named)]
            if isinstance(func, ast.Attribute) and func.attr != "get" and (owner := _owner(func.value)):
                yield from ((owner, each) for each in given)
            if not _only_reads(func):
                # A list may get more in there; a text cannot, but which of them it is would take a type checker.
                yield from ((each.id, None) for each in given if isinstance(each, ast.Name))
        case ast.Subscript(value=value, ctx=ast.Store()) if owner := _owner(value):
            yield owner, None
        case _:
            return


def _owner(node: ast.expr) -> str | None:
    """The name that `name[key][key]` begins with."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _only_reads(func: ast.expr) -> bool:
    match func:
        case ast.Attribute(attr="join" | "format" | "execute" | "executemany" | "get"):
            return True
        case ast.Name(id=name):
            return name in NUMBERS
        case _:
            return False
