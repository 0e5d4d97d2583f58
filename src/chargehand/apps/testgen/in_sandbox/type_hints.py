"""A function becomes the types of its parameters: from its annotations, from a stub beside its module, one by one.

What cannot be resolved is left out, so that one unknown name does not hide the types of all others.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import sys
import typing
from collections import abc
from functools import cache
from pathlib import Path
from typing import Any


def parameter_types(function: Any, module: str) -> dict[str, Any]:
    """Name -> type, for those that are known."""
    is_class = inspect.isclass(function)
    target = function.__init__ if is_class and not dataclasses.is_dataclass(function) else function
    owner = sys.modules.get(getattr(target, "__module__", None) or module) or sys.modules[module]
    known = getattr(inspect.unwrap(target) if callable(target) else target, "__globals__", None) or vars(owner)
    space = {**vars(abc), **vars(typing), **_checker_names(owner.__name__), **known}
    found: dict[str, Any] = {}
    for name, hint in {**_stub_hints(owner.__name__, function), **_own_hints(target)}.items():
        with contextlib.suppress(Exception):
            holder = type("Holder", (), {"__annotations__": {name: hint}})
            found[name] = typing.get_type_hints(holder, space, {}, include_extras=False)[name]
    return found


def _own_hints(target: Any) -> dict[str, Any]:
    try:
        return dict(inspect.get_annotations(target))
    except Exception:  # noqa: BLE001 -- annotations are code: they may raise anything
        return {}


@cache
def _checker_names(module: str) -> dict[str, Any]:
    """What the module imports for type checkers only."""
    blocks = [node for node in ast.walk(_tree(module, ".py")) if isinstance(node, ast.If) and _is_checking(node.test)]
    return _import_names([each for block in blocks for each in block.body], module)


@cache
def _stub_names(module: str) -> dict[str, Any]:
    return _import_names(_tree(module, ".pyi").body, module)


def _stub_hints(module: str, function: Any) -> dict[str, Any]:
    """The annotations in a `.pyi` file beside the module; an overloaded function has those of its first form."""
    tree: Any = _tree(module, ".pyi")
    name = getattr(function, "__qualname__", "")
    for part in (f"{name}.__init__" if inspect.isclass(function) else name).split("."):
        same = [node for node in getattr(tree, "body", ()) if getattr(node, "name", None) == part]
        if not same:
            return {}
        tree = same[0]
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    space = {**vars(abc), **vars(typing), **vars(sys.modules[module]), **_stub_names(module)}
    found: dict[str, Any] = {}
    for each in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]:
        if each.annotation is not None:
            with contextlib.suppress(Exception):
                found[each.arg] = eval(ast.unparse(each.annotation), space)  # noqa: S307 -- inside of the sandbox
    return found


def _tree(module: str, suffix: str) -> ast.Module:
    file = getattr(sys.modules.get(module), "__file__", None)
    try:
        return ast.parse(Path(file or "").with_suffix(suffix).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _is_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING")


def _import_names(nodes: list[ast.stmt], module: str) -> dict[str, Any]:
    """The names from these imports and assignments, as far as they work here."""
    space: dict[str, Any] = {"__name__": module, "__package__": getattr(sys.modules[module], "__package__", None)}
    before = set(space)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assign):
            with contextlib.suppress(Exception):
                exec(ast.unparse(node), space)  # noqa: S102 -- inside of the sandbox
    return {name: value for name, value in space.items() if name not in before and name != "__builtins__"}
