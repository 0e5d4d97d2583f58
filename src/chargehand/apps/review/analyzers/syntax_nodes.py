"""A syntax tree -> its nodes as `ast.walk` gives them, but faster: contexts and operators are left out.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import cast

# Fields that have no nodes, or only contexts (`Load`) and operators (`Add`).
_PLAIN = frozenset(
    {"ctx", "op", "ops", "id", "attr", "kind", "type_comment", "level", "module", "asname", "conversion", "simple"}
    | {"is_async"}
)


def walk(tree: ast.AST) -> list[ast.AST]:
    """The node and all nodes below it, level by level."""
    found = [tree]
    for node in found:
        found += child_nodes(node)
    return found


def child_nodes(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in fields_with_nodes(type(node)):
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in cast("list[object]", value) if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Each node below the given one, level by level, with the node that contains it."""
    found: dict[ast.AST, ast.AST] = {}
    waiting = [tree]
    for node in waiting:
        own = child_nodes(node)
        found.update(dict.fromkeys(own, node))
        waiting += own
    return found


@cache
def fields_with_nodes(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that have nodes, without contexts and operators."""
    return tuple(name for name in kind._fields if name not in _PLAIN)
