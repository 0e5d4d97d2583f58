"""The names in a file become dotted names: what `np.mean`, `helper` or `self.save` mean, across the project."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from chargehand.apps.testgen.project import Module

_MOST_HOPS = 10


def imports(nodes: Sequence[ast.AST], module: str = "", *, package: bool = False) -> dict[str, str]:
    """Local name -> what it was imported as, for imports anywhere below the nodes; `from x import *` is `*`."""
    found: dict[str, str] = {}
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Import):
                for name in node.names:
                    local = name.asname or name.name.partition(".")[0]
                    found[local] = name.name if name.asname else local
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(node, module, package)
                for name in node.names:
                    if name.name == "*":
                        found.setdefault("*", base)
                    else:
                        found[name.asname or name.name] = f"{base}.{name.name}"
    return found


def _absolute(node: ast.ImportFrom, module: str, package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    up = node.level - 1 if package else node.level
    base = parts[: len(parts) - up] if up else parts
    return ".".join([*base, *([node.module] if node.module else [])])


def dotted_name(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """`a.b.c` with its first name replaced by what that was imported as; None if it is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([known.get(node.id, node.id), *reversed(parts)])


class Exports:
    """Finds the definition of a name that modules import from each other."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._moved: dict[str, str] = {}
        for module in modules:
            package = module.path.endswith("__init__.py")
            for local, name in imports([module.tree], module.name, package=package).items():
                if local != "*":
                    self._moved[f"{module.name}.{local}"] = name

    def origin(self, name: str) -> str:
        """The full name under which it was defined."""
        for _ in range(_MOST_HOPS):
            head, tail = name, ""
            while head and head not in self._moved:
                head, _, last = head.rpartition(".")
                tail = f".{last}{tail}"
            if not head or self._moved[head] + tail == name:
                return name
            name = self._moved[head] + tail
        return name
