"""The expressions of a function become the classes of their values, as far as the source shows them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping

from chargehand.apps.testgen.discover import AnyFunction
from chargehand.apps.testgen.names import Exports, dotted_name

# The class of literals and imported objects: not a class of the project.
NOT_OURS = "builtins"
_WRITTEN_OUT = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp,
    ast.GeneratorExp, ast.Compare,
)  # fmt: skip
_CONVERSIONS = frozenset({"str", "int", "float", "bool", "bytes", "list", "dict", "set", "tuple", "frozenset", "repr"})


class Kinds:
    """What the names of one function hold: `s = Store()`, `s: Store`, `with Store() as s`. Two mean unknown."""

    def __init__(self, function: AnyFunction, known: Mapping[str, str], exports: Exports) -> None:
        self._known = known
        self._exports = exports
        self._names: dict[str, str | None] = {}
        arguments = function.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if each.arg not in ("self", "cls"):
                self._bind(each.arg, self._annotated_class(each.annotation))
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, self.of(value))
                case ast.AnnAssign(target=target, annotation=annotation):
                    self._assign(target, self._annotated_class(annotation))
                case ast.NamedExpr(target=target, value=value):
                    self._assign(target, self.of(value))
                case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                    self._assign(target, self.of(value))
                case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                    self._assign(target, None)
                case _:
                    pass

    def of(self, node: ast.expr) -> str | None:
        """The class's full name, NOT_OURS for a class outside the project, None if it is unknown."""
        match node:
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.Name(id=("self" | "cls")):
                return NOT_OURS  # followed by name, elsewhere
            case ast.Call(func=ast.Name(id=name)) if name not in self._known and name in _CONVERSIONS:
                return NOT_OURS
            case ast.Call(func=function):
                return self._class_named(function)
            case ast.Name() | ast.Attribute():
                return self._imported_class(node)
            case _ if isinstance(node, _WRITTEN_OUT):
                return NOT_OURS
            case _:
                return None

    def _imported_class(self, node: ast.expr) -> str | None:
        """A module or class by its name is followed by name, elsewhere."""
        name = dotted_name(node, {})
        return NOT_OURS if name is not None and name.partition(".")[0] in self._known else None

    def _class_named(self, node: ast.expr) -> str | None:
        """The class with that name; None for a function, whose result is unknown."""
        name = dotted_name(node, self._known)
        name = None if name is None else self._exports.origin(name)
        return name if name is not None and name.rpartition(".")[2][:1].isupper() else None

    def _annotated_class(self, node: ast.expr | None) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name) and node.id not in self._known and hasattr(builtins, node.id):
            return NOT_OURS
        return None if node is None else self._class_named(node)

    def _assign(self, target: ast.expr, kind: str | None) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, kind)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._assign(each, None)

    def _bind(self, name: str, kind: str | None) -> None:
        self._names[name] = kind if self._names.get(name, kind) == kind else None
