"""Python that cannot do what it says, as hits: coroutines that never run, calls that do not fit, results thrown away.

Only what one file shows for certain counts: a function defined once and not decorated, a name that nothing binds again.
Runs in a child process.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, blocks
from chargehand.apps.review.analyzers.syntax_nodes import child_nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Methods that only texts have. They return a new text and do not change the old one.
TEXT_METHODS = frozenset(
    {"capitalize", "casefold", "lower", "lstrip", "removeprefix", "removesuffix", "rstrip", "strip", "swapcase"}
    | {"upper", "zfill"}
)
LEVELS = frozenset({"critical", "debug", "error", "exception", "info", "warning"})
_FIELD = re.compile(r"(?<!\{)\{([a-z_]\w*)(?:![rsa])?(?::[^{}]*)?\}(?!\})")


def examine(order: AnalysisOrder) -> Hits:
    return examine_trees(order, _hits)


def _hits(source: SourceFile, tree: ast.Module) -> Iterator[Hit]:
    outline = Outline(tree)
    for node, scope in outline.statements:
        for rule, message in chain(
            find_misfits(node, scope),
            find_unawaited(node, scope),
            _find_discarded_text(node),
            _find_unfilled_text(node, scope),
        ):
            yield Hit(rule, source.path, node.lineno, message)
        if isinstance(node, ast.For):
            yield from _changed_while_read(source.path, node)


@dataclass
class NameScope:
    """A module, class or function: what its body binds, how often, and the functions defined in it."""

    node: ast.Module | ast.ClassDef | Function | ast.Lambda
    outer: NameScope | None
    outline: Outline
    bound: Counter[str] = field(default_factory=Counter[str])
    defined: dict[str, Function] = field(default_factory=dict[str, Function])

    def find(self, name: str) -> Function | None:
        """The function of the module that a name certainly means here."""
        scope = self
        while scope.outer is not None:
            if name in scope.bound and not isinstance(scope.node, ast.ClassDef):
                return None
            scope = scope.outer
        return None if name in self.outline.shared else scope.only(name)

    def find_method(self, name: str) -> Function | None:
        """The method of the enclosing class that `self.name` certainly means here."""
        scope = self
        while isinstance(scope.node, ast.Lambda) and scope.outer:
            scope = scope.outer
        around = scope.outer
        if around is None or not isinstance(around.node, ast.ClassDef) or name in self.outline.stored:
            return None
        return around.only(name)

    def only(self, name: str) -> Function | None:
        function = self.defined.get(name)
        return function if function and self.bound[name] == 1 and not function.decorator_list else None

    def names(self) -> frozenset[str]:
        return frozenset(self.bound) if isinstance(self.node, Function) else frozenset()


class Outline:
    """One walk through a file: its scopes, and the statements and calls that rules look at, each with its scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.statements: list[tuple[ast.Call | ast.Expr | ast.For | ast.Raise, NameScope]] = []
        # Names that functions share, and attributes that are assigned: both may have another value later.
        self.shared: set[str] = set()
        self.stored: set[str] = set()
        self.top = NameScope(tree, None, self)
        waiting: list[tuple[ast.AST, NameScope]] = [(each, self.top) for each in tree.body]
        while waiting:
            node, scope = waiting.pop()
            inner = self._enter(node, scope)
            waiting += [(each, inner) for each in child_nodes(node)]

    def _enter(self, node: ast.AST, scope: NameScope) -> NameScope:
        match node:
            case ast.Constant() | ast.Name(ctx=ast.Load()):
                pass  # the most frequent ones, which no rule needs
            case ast.Call() | ast.Expr() | ast.For() | ast.Raise():
                self.statements.append((node, scope))
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                scope.bound[name] += 1
            case ast.Attribute(attr=name, ctx=ast.Store()):
                self.stored.add(name)
            case ast.alias(name=name, asname=short):
                scope.bound[short or name.partition(".")[0]] += 1
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.shared.update(names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                scope.bound[name] += 1
                if isinstance(node, Function):
                    scope.defined[name] = node
                return NameScope(node, scope, self)
            case ast.Lambda():
                return NameScope(node, scope, self)
            case _:
                pass
        return scope


def _find_function(call: ast.Call, scope: NameScope) -> tuple[Function, int] | None:
    """The function that a call certainly means, and how many of its parameters are filled implicitly (`self`)."""
    match call.func:
        case ast.Name(id=name):
            function, filled = scope.find(name), 0
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            function, filled = scope.find_method(name), 1
        case _:
            return None
    return None if function is None else (function, filled)


def find_misfits(node: ast.AST, scope: NameScope) -> Iterator[tuple[str, str]]:
    """A call with arguments that its function does not take, or without one that it needs."""
    if not isinstance(node, ast.Call) or (found := _find_function(node, scope)) is None:
        return
    if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
        return
    function, filled = found
    takes = function.args
    places = [each.arg for each in (*takes.posonlyargs, *takes.args)]
    named = [each.arg for each in node.keywords if each.arg]
    by_place = places[: filled + len(node.args)]
    known = {*(each.arg for each in takes.args), *(each.arg for each in takes.kwonlyargs)}
    needed = [*places[: len(places) - len(takes.defaults)]]
    needed += [each.arg for each, value in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if value is None]
    if not places and filled and not takes.vararg:
        return  # another rule reports a method without self
    if takes.vararg is None and filled + len(node.args) > len(places):
        message = (
            f"`{function.name}` takes {len(places) - filled} arguments by place, and is called with {len(node.args)}."
        )
        yield "mistakes:arguments", message
    elif takes.kwarg is None and (unknown := [name for name in named if name not in known]):
        yield "mistakes:arguments", f"`{function.name}` has no parameter `{unknown[0]}`."
    elif missing := [name for name in needed if name not in by_place and name not in named]:
        yield "mistakes:arguments", f"`{function.name}` is called without `{missing[0]}`, which has no default."


def find_unawaited(node: ast.AST, scope: NameScope) -> Iterator[tuple[str, str]]:
    """A coroutine that is created and never awaited."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        found = _find_function(node.value, scope)
        if found and isinstance(found[0], ast.AsyncFunctionDef) and not _yields(found[0]):
            yield "mistakes:unawaited", f"`{found[0].name}` is a coroutine that nobody awaits: it never runs."


def _find_discarded_text(node: ast.AST) -> Iterator[tuple[str, str]]:
    """A new text whose value is not used."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return
    match node.value.func:
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in TEXT_METHODS:
            yield "mistakes:discarded", f"`{method}` gives a new text, which is thrown away: `{name}` stays as it is."
        case _:
            pass


def _yields(function: Function) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(function))


def _find_unfilled_text(node: ast.AST, scope: NameScope) -> Iterator[tuple[str, str]]:
    """A text for a reader with names of variables in braces, which is neither an f-string nor given to `format`."""
    match node:
        case ast.Raise(exc=ast.Call(args=[ast.Constant(value=str(text))], keywords=[])):
            pass
        case ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(text))], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str(text))], keywords=[]):
            if level not in LEVELS:
                return
        case _:
            return
    fields = _FIELD.findall(text)
    if fields and scope.names().issuperset(fields):
        yield "mistakes:placeholder", f"`{{{fields[0]}}}` stays in the text as it is: this is not an f-string."


def _changed_while_read(path: str, loop: ast.For) -> Iterator[Hit]:
    """A loop that adds or removes elements of its own list or table, and continues."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="enumerate"), args=[many]):
            pass
        case ast.Call(func=ast.Attribute(value=many, attr="items" | "keys" | "values"), args=[]):
            pass
        case ast.Name() | ast.Attribute():
            many = loop.iter
        case _:
            return
    name = ast.unparse(many)
    for body in _bodies(loop.body):
        for number, statement in enumerate(body):
            if any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in body[number + 1 :]):
                continue
            if _takes_out(statement, name) and not _is_bound_again(loop.body, name):
                message = f"`{name}` changes while the loop goes through it: elements are skipped, or it fails."
                yield Hit("mistakes:loop", path, statement.lineno, message)


def _bodies(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The blocks in which the loop continues after a statement."""
    yield body
    for number, statement in enumerate(body):
        ends = any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in body[number + 1 :])
        if not ends and not isinstance(statement, Function | ast.ClassDef):
            for inner in blocks(statement):
                yield from _bodies(inner)


def _takes_out(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="remove" | "pop" | "insert"))):
            return ast.unparse(owner) == name
        case ast.Delete(targets=[ast.Subscript(value=owner)]):
            return ast.unparse(owner) == name
        case _:
            return False


def _is_bound_again(body: Iterable[ast.stmt], name: str) -> bool:
    return any(
        isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node) == name
        for statement in body
        for node in ast.walk(statement)
    )
