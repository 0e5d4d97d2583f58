"""A Python file's imports and an expression -> the full name of what is called: `etree.XMLParser` is lxml's.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable


def imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Names in the file with these nodes -> full names that they were imported from."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update({each.asname: each.name for each in node.names if each.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return found


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """`etree.XMLParser` -> `lxml.etree.XMLParser`; "" for what is not a plain name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([names.get(node.id, node.id), *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last_name(node: ast.expr) -> str:
    """The attribute, or the name; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
