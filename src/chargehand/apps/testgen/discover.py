"""A project becomes targets: public functions and methods without tests, each with facts from its source."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from chargehand.apps.testgen.project import Module, Project
from chargehand.apps.testgen.tested_functions import KnownTests

Kind: TypeAlias = Literal["function", "method", "static", "class"]
AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_CALLED = frozenset({"property", "cached_property", "overload", "abstractmethod", "setter", "getter", "deleter"})


@dataclass(frozen=True, slots=True)
class UntestedFunction:
    """One function or method. `name` is its name within the module: `parse`, `Basket.add`."""

    module: str
    path: str
    name: str
    line: int
    end_line: int
    kind: Kind
    source: str
    # Whether it is a coroutine function, whose call must be awaited.
    awaits: bool

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}"


def find_targets(project: Project, evidence: KnownTests) -> tuple[list[UntestedFunction], int]:
    """The functions without tests, in the order of the files, and the number of functions with tests."""
    targets: list[UntestedFunction] = []
    tested = 0
    for module in project.modules:
        if module.name not in project.wanted:
            continue
        lines = list(io.StringIO(module.source, newline=""))  # ends lines where Python does
        for owner, node in functions(module.tree):
            if not _is_public(owner, node):
                continue
            body = (node.body[0].lineno, node.end_lineno or node.lineno)
            if owner is None:
                done = evidence.function_is_tested(module.path, f"{module.name}.{node.name}", body)
            else:
                done = evidence.method_is_tested(module.path, f"{module.name}.{owner.name}", node.name, body)
            tested += done
            if not done:
                targets.append(_target(module, lines, owner, node))
    return targets, tested


def functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, AnyFunction]]:
    """Functions of the module and methods of its classes; of the same name the last counts, as in Python."""
    found: dict[str, tuple[ast.ClassDef | None, AnyFunction]] = {}
    for node in tree.body:
        if isinstance(node, AnyFunction):
            found[node.name] = (None, node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, AnyFunction):
                    found[f"{node.name}.{inner.name}"] = (node, inner)
    yield from found.values()


def decorators(node: AnyFunction) -> set[str]:
    """The last names of its decorators: `functools.cache` is `cache`."""
    found: set[str] = set()
    for each in node.decorator_list:
        named = each.func if isinstance(each, ast.Call) else each
        if isinstance(named, ast.Attribute):
            found.add(named.attr)
        elif isinstance(named, ast.Name):
            found.add(named.id)
    return found


def _is_public(owner: ast.ClassDef | None, node: AnyFunction) -> bool:
    """Private functions are tested through their users; a function that only declares has nothing to test."""
    if node.name.startswith("_") or (owner is not None and owner.name.startswith("_")):
        return False
    return not (_NOT_CALLED & decorators(node)) and not _only_declares(node)


def _only_declares(node: AnyFunction) -> bool:
    rest = [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if not rest or (len(rest) == 1 and isinstance(rest[0], ast.Pass)):
        return True
    raised = rest[0].exc if isinstance(rest[0], ast.Raise) else None
    return raised is not None and "NotImplementedError" in ast.unparse(raised)


def _target(module: Module, lines: Sequence[str], owner: ast.ClassDef | None, node: AnyFunction) -> UntestedFunction:
    kind: Kind = "function"
    if owner is not None:
        marks = decorators(node)
        kind = "static" if "staticmethod" in marks else "class" if "classmethod" in marks else "method"
    return UntestedFunction(
        module=module.name,
        path=module.path,
        name=node.name if owner is None else f"{owner.name}.{node.name}",
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        kind=kind,
        source=_source(lines, node),
        awaits=isinstance(node, ast.AsyncFunctionDef),
    )


def _source(lines: Sequence[str], node: AnyFunction) -> str:
    """As `ast.get_source_segment` gives it, which splits the whole file into lines for each function."""
    *before, last = lines[node.lineno - 1 : node.end_lineno]
    text = "".join([*before, last.encode()[: node.end_col_offset].decode()])
    return text[node.col_offset :]  # only blanks are cut off, which are one byte each
